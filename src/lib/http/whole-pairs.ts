import { badRequest } from '../errors/api-error.ts'
import { wellFormed } from '../text/escape.ts'

/** Only an escape can give a text of JSON half a surrogate pair, as the body is UTF-8. */
const surrogateEscape = /\\u[dD][89a-fA-F]/
const half = /\p{Surrogate}/u

/** Longest path to a field in the message, characters. */
const maxPath = 200

/** The value of a JSON text. 400 for half a surrogate pair in a text or a name (RFC 7493 section 2.1): it cannot be stored as UTF-8. */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (surrogateEscape.test(text)) requireWholePairs(value)
  return value
}

/** Why half a surrogate pair is refused, for messages after the name of the field. */
export function halfPairIn(text: string): string | undefined {
  const found = half.exec(text)?.[0]
  if (found === undefined) return undefined
  const code = found.charCodeAt(0).toString(16)
  return `\\u${code} is half of a surrogate pair, which UTF-8 does not have: leave it out, or write both halves`
}

/** Without recursion: JSON may be nested deeper than the stack. */
function requireWholePairs(value: unknown): void {
  const left: { readonly path: string; readonly value: unknown }[] = [{ path: '', value }]
  for (let next = left.pop(); next !== undefined; next = left.pop()) {
    const { path, value } = next
    if (typeof value === 'string') refuseHalf(path, value)
    else if (Array.isArray(value))
      for (const [index, item] of value.entries()) left.push({ path: `${path}[${index}]`, value: item })
    else if (value !== null && typeof value === 'object')
      for (const [name, member] of Object.entries(value)) {
        const inside = path === '' ? name : `${path}.${name}`
        refuseHalf(inside, name)
        left.push({ path: inside, value: member })
      }
  }
}

function refuseHalf(path: string, text: string): void {
  const why = halfPairIn(text)
  if (why !== undefined) throw badRequest(`${wellFormed(path || 'body').slice(0, maxPath)}: ${why}`)
}
