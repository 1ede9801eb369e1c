import { printable } from './addresses.ts'
import type { Dissection } from './dissection.ts'

/** A first line that is longer is no longer shown. */
const longestLine = 2000
const methods =
  /^(?:GET|HEAD|POST|PUT|DELETE|CONNECT|OPTIONS|TRACE|PATCH|PROPFIND|NOTIFY|M-SEARCH|SUBSCRIBE) \S+ HTTP\/\d\.\d$/
const status = /^HTTP\/\d\.\d \d{3}(?: |$)/

/** The first line of HTTP/1 (RFC 9112). False when the bytes do not begin with one; then nothing was noted. */
export function http(frame: Dissection, at: number, end: number): boolean {
  const { bytes } = frame
  // Each first line begins with a capital letter: most payloads are known by their first byte not to be HTTP.
  const first = bytes[at] as number
  if (!(first >= 0x41 && first <= 0x5a)) return false
  const last = Math.min(end, bytes.length, at + longestLine)
  let to = at
  while (to < last && bytes[to] !== 13 && bytes[to] !== 10) to++
  if (to === last) return false
  const line = printable(bytes, at, to)
  if (!methods.test(line) && !status.test(line)) return false
  frame.protocol = 'HTTP'
  // Wireshark shows the whole line, with a blank in place of its end.
  frame.info = `${line} `
  const part = frame.layer('Hypertext Transfer Protocol', at, end - at, end)
  if (part === undefined) return true
  part.add(methods.test(line) ? 'Request' : 'Status', at, to - at, line)
  headers(bytes, part, to)
  return true
}

/** The header fields, up to the empty line. */
function headers(bytes: Uint8Array, part: NonNullable<ReturnType<Dissection['layer']>>, from: number): void {
  let at = next(bytes, from, part.to)
  while (at < part.to) {
    let to = at
    while (to < part.to && bytes[to] !== 13 && bytes[to] !== 10) to++
    if (to === at) return
    const line = printable(bytes, at, to)
    const colon = line.indexOf(':')
    if (colon > 0) part.add(line.slice(0, colon), at, to - at, line.slice(colon + 1).trim())
    at = next(bytes, to, part.to)
  }
}

/** After CR LF, or LF alone. */
const next = (bytes: Uint8Array, at: number, end: number): number =>
  Math.min(end, at + (bytes[at] === 13 && bytes[at + 1] === 10 ? 2 : 1))
