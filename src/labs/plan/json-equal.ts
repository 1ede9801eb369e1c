import { compareText } from '../../lib/text/compare-text.ts'

/** Whether two JSON values are equal; the order of members and absent ones do not count. */
export const same = (a: unknown, b: unknown): boolean => a === b || stable(a) === stable(b)

function stable(value: unknown): string {
  if (value === null || typeof value !== 'object') return JSON.stringify(value) ?? 'undefined'
  if (Array.isArray(value)) return `[${value.map(stable).join(',')}]`
  const members = Object.entries(value).filter(([, it]) => it !== undefined)
  members.sort(([a], [b]) => compareText(a, b))
  return `{${members.map(([key, it]) => `${JSON.stringify(key)}:${stable(it)}`).join(',')}}`
}

/**
 * A short digest of a JSON value (53 bits, cyrb53): to notice a change, not against forgery. It keeps secrets out of records.
 */
export function fingerprint(value: unknown): string {
  const text = stable(value)
  let [high, low] = [0xdeadbeef, 0x41c6ce57]
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    high = Math.imul(high ^ code, 2654435761)
    low = Math.imul(low ^ code, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return (4294967296 * (2097151 & low) + (high >>> 0)).toString(36)
}
