import { nearest } from '../../lib/text/nearest-word.ts'
import { oursFor } from '../../model/validation/foreign-words.ts'

const longestPath = 400
const most = 8

/** The likely meaning of a path without an endpoint, as the end of a sentence. */
export function pathHint(path: string, templates: readonly string[]): string {
  if (path.length <= longestPath) {
    const [theirs, ours] = foreignWord(path, templates) ?? []
    if (theirs !== undefined) {
      return `. "${theirs}" is called "${ours}" here: use that, or set aliases = { ${theirs} = "${ours}" } in the configuration`
    }
    const meant = respelt(path).find((candidate) =>
      templates.some((template) => matches(segmentsOf(candidate), segmentsOf(template))),
    )
    if (meant !== undefined) return `. Did you mean ${meant}?`
    const hint = oneWordWrong(segmentsOf(path), templates)
    if (hint !== undefined) return hint
  }
  return '. /docs lists all endpoints, /openapi.json describes them for programs'
}

const segmentsOf = (path: string): string[] => path.split('/').slice(1)
const isParameter = (segment: string): boolean => segment.startsWith('{')

function matches(path: readonly string[], template: readonly string[]): boolean {
  return path.length === template.length && template.every((word, at) => fits(path[at], word))
}

const beginsLike = (path: readonly string[], template: readonly string[]): boolean =>
  path.every((segment, at) => fits(segment, template[at] ?? ''))

const fits = (segment: string | undefined, word: string): boolean =>
  isParameter(word) ? segment !== '' : segment === word

/** A word of another program in the path, whose replacement makes it a path of the service. */
function foreignWord(path: string, templates: readonly string[]): [theirs: string, ours: string] | undefined {
  const segments = segmentsOf(path)
  for (const [at, word] of segments.entries()) {
    const ours = oursFor(word)
    if (ours === undefined) continue
    const translated = segments.map((it, index) => (index === at ? ours : it))
    // The hint is right even when the rest of the path is wrong.
    const isOurs = templates.some((template) => beginsLike(translated.slice(0, at + 1), segmentsOf(template)))
    if (isOurs) return [word, ours]
  }
  return undefined
}

/** The path with another beginning, in lower case, or without its last words, when that is a path of the service. */
function respelt(path: string): string[] {
  const plain = `/${path
    .split('/')
    .filter((it) => it !== '')
    .map((it) => (/^[A-Z]/.test(it) ? it.toLowerCase() : it))
    .join('/')}`
  const rest = plain.replace(/^\/api(?=\/)/, '').replace(/^\/v\d+(\/compute)?(?=\/)/, '')
  const candidates = [plain, plain.replace(/^\/api(?=\/)/, ''), ...['/v2/compute', '/v2', '/v1'].map((it) => it + rest)]
  return candidates.filter((it) => it !== path)
}

/** When all words but one fit: the likely word, or the possible ones. */
function oneWordWrong(path: readonly string[], templates: readonly string[]): string | undefined {
  const all = templates.map(segmentsOf)
  // The first word that no path has at its position is the wrong one.
  const at = path.findIndex((_, end) => !all.some((words) => beginsLike(path.slice(0, end + 1), words)))
  const words = new Set<string>()
  for (const template of all) {
    if (template.length !== path.length || isParameter(template[at] ?? '{')) continue
    if (template.every((word, index) => index === at || fits(path[index], word))) words.add(template[at] ?? '')
  }
  if (words.size === 0) return undefined
  const guess = nearest(path[at] ?? '', [...words])
  if (guess !== undefined) return `. Did you mean /${path.map((it, index) => (index === at ? guess : it)).join('/')}?`
  const shown = [...words].slice(0, most).join(', ')
  return `. Expected ${shown}${words.size > most ? ', ...' : ''} in place of "${(path[at] ?? '').slice(0, 60)}"`
}
