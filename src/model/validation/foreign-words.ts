import { nearest } from '../../lib/text/nearest-word.ts'
import { kinds } from '../kinds/index.ts'
import type { KindDescriptor } from '../kinds/kind.ts'

/** Words of paths that may have aliases. */
const pathWords: readonly string[] = [...kinds.map(({ name }) => name), 'appliancevm']

/** From known words of other programs to ours. */
const foreign: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    kinds.flatMap(({ name, aliases = [] }: KindDescriptor) => aliases.map((alias) => [alias, name])),
  ),
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

/** Why an alias is wrong, and what would be right; undefined when it is valid. */
export function aliasIssue(theirs: string, ours: string): string | undefined {
  if (pathWords.includes(theirs))
    return `${JSON.stringify(theirs)} is a path segment of this service and cannot be an alias`
  if (pathWords.includes(ours)) return undefined
  const guess = oursFor(theirs) ?? nearest(ours, pathWords)
  const meant = guess === undefined ? '' : ` (did you mean ${guess}?)`
  return `expected one of ${pathWords.join(', ')}, got ${JSON.stringify(ours)}${meant}`
}
