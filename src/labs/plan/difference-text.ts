/** Longest value that a difference shows, characters. */
const maxShownValue = 60

/** What a key was, and what it becomes; the key alone where a value does not fit into a line. */
export function differenceOf(key: string, from: unknown, to: unknown): string {
  const [before, after] = [from, to].map(valueText)
  return before === undefined || after === undefined ? key : `${key} ${before} -> ${after}`
}

/** A value as a lab file could have it, in one line; undefined: it is too long. */
function valueText(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return 'none'
  if (typeof value === 'object' && Object.keys(value).length === 0) return 'none'
  const text = flowOf(value)
  return text.length > maxShownValue || text.includes('\n') ? undefined : text
}

function flowOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flowOf).join(', ')}]`
  if (typeof value !== 'object' || value === null) return String(value)
  return `{${Object.entries(value)
    .map(([key, it]) => ` ${key}: ${flowOf(it)}`)
    .join(',')} }`
}
