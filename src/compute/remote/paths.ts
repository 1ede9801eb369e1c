import { badRequest } from '../../lib/errors/api-error.ts'

/**
 * A path of the interface whose values are encoded: each stays one segment, slashes in it too, and none becomes a dot segment,
 * which a URL would fold.
 */
export function path(words: TemplateStringsArray, ...values: readonly (string | number)[]): string {
  return words.reduce((whole, word, index) => whole + segment(values[index - 1] ?? '') + word)
}

/** `?since=3&view=full`; values that are undefined are left out. */
export function search(values: Readonly<Record<string, string | number | undefined>>): string {
  const given = Object.entries(values).flatMap(([name, value]) => (value === undefined ? [] : [[name, String(value)]]))
  return given.length === 0 ? '' : `?${new URLSearchParams(given)}`
}

function segment(value: string | number): string {
  let encoded: string
  try {
    encoded = encodeURIComponent(value)
  } catch (cause) {
    throw badRequest('path: expected text whose surrogates are in pairs', { cause })
  }
  return encoded === '.' || encoded === '..' ? `${encoded}%2F` : encoded
}
