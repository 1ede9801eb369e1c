import { badRequest } from '../errors/api-error.ts'
import type { UploadOptions, WantedRange } from '../host-agent.ts'

/** At most so many digits are a safe integer. */
const number = '(\\d{1,15})'
const wanted = new RegExp(`^bytes=(?:${number}-${number}?|-${number})$`, 'i')
const sent = new RegExp(`^bytes (?:${number}-${number}|(\\*))/${number}$`, 'i')

/**
 * The bytes a `Range` header asks for. Undefined for none, and for what RFC 9110 (14.2) lets a server ignore: other units,
 * several ranges, and what is malformed.
 */
export function rangeOf(request: Request): WantedRange | undefined {
  const header = request.headers.get('range')
  // Defined for GET alone.
  if (header === null || request.method !== 'GET') return undefined
  const [, first, last, suffix] = wanted.exec(header.trim()) ?? []
  if (suffix !== undefined) return { suffix: Number(suffix) }
  if (first === undefined) return undefined
  if (last === undefined) return { first: Number(first) }
  return Number(last) < Number(first) ? undefined : { first: Number(first), last: Number(last) }
}

/** The meaning of an upload's `Content-Range`: the part that is sent, or (as `* /total`) a question how many bytes are there. */
export function contentRangeOf(
  request: Request,
): { readonly part: NonNullable<UploadOptions['part']> } | { readonly asked: number } | undefined {
  const header = request.headers.get('content-range')
  if (header === null) return undefined
  const [, first, last, asked, total] = sent.exec(header.trim()) ?? []
  if (asked !== undefined) return { asked: Number(total) }
  const part = { first: Number(first), last: Number(last), total: Number(total) }
  if (first === undefined || part.first > part.last || part.last >= part.total) {
    const got = JSON.stringify(header.slice(0, 60))
    throw badRequest(`Content-Range: expected "bytes FIRST-LAST/TOTAL" or "bytes */TOTAL", got ${got}`)
  }
  return { part }
}
