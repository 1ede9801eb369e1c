import { kinds } from '../kinds/index.ts'
import type { KindDescriptor } from '../kinds/kind.ts'
import { nearest } from './nearest-word.ts'

/** Words of our paths that clients may have other words for. */
export const pathWords: readonly string[] = [...kinds.map(({ name }) => name), 'appliancevm']

/** Words of other programs that are known to be used in their place -> ours. */
const foreign: Readonly<Record<string, string>> = {
  ...Object.fromEntries(kinds.flatMap(({ name, aliases = [] }: KindDescriptor) => aliases.map((it) => [it, name]))),
  gns3vm: 'appliancevm',
  // Of emulators.
  amd64: 'x86_64',
  'x86-64': 'x86_64',
  x64: 'x86_64',
  x86: 'i386',
  arm64: 'aarch64',
  poweroff: 'power_off',
}

/** Our word for a word of another program; undefined for one that is not known. */
export const oursFor = (word: string): string | undefined => (Object.hasOwn(foreign, word) ? foreign[word] : undefined)

/** What is wrong with an alias, and what would be right; undefined when it can be used. */
export function aliasFault(theirs: string, ours: string): string | undefined {
  if (pathWords.includes(theirs)) return `${JSON.stringify(theirs)} is a word of ours, and cannot stand for another one`
  if (pathWords.includes(ours)) return undefined
  const guess = oursFor(theirs) ?? nearest(ours, pathWords)
  const meant = guess === undefined ? '' : ` (did you mean ${guess}?)`
  return `expected one of ${pathWords.join(', ')}, got ${JSON.stringify(ours)}${meant}`
}
