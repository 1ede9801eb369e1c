import type { ComputeAnswer } from '../../../src/compute/remote/transport.ts'

/**
 * The header with all headers of a request for a compute, or of its answer, as JSON. Between an isolate and an object workerd takes 2,000 to 6,000
 * instructions for each header that is set, and 4,000 for each that is listed. In a request that has its headers for themselves it is `wanted`:
 * those of the answer may be packed. An object of an earlier version answers without it.
 */
export const packedHeader = 'x-patchbay-joint'
export const wanted = 'wanted'

/** Its value: printable ASCII characters. Names become lower-case. */
export function packHeaders(headers: Iterable<readonly [name: string, value: string]>): string {
  const packed: [string, string][] = []
  for (const [name, value] of headers) packed.push([name.toLowerCase(), value])
  const text = JSON.stringify(packed)
  return isPlain.test(text) ? text : text.replace(/[^ -~]/g, escaped)
}

const isPlain = /^[ -~]*$/
const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** The headers in a value of `packHeaders`. */
export const unpackHeaders = (packed: string): [name: string, value: string][] => JSON.parse(packed)

/** The same to look up, as those of a Response. */
export function packedLookup(packed: string): ComputeAnswer['headers'] {
  const headers = new Map(unpackHeaders(packed))
  return {
    get: (name) => headers.get(name.toLowerCase()) ?? null,
    has: (name) => headers.has(name.toLowerCase()),
    entries: () => headers.entries(),
  }
}
