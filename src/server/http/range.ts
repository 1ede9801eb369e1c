import type { UploadOptions, WantedRange } from '../../host-agent.ts'
import { badRequest } from '../../lib/errors/api-error.ts'

/** At most 15 digits: such a number is a safe integer. */
const number = '(\\d{1,15})'
const wanted = new RegExp(`^bytes=(?:${number}-${number}?|-${number})$`, 'i')
const sent = new RegExp(`^bytes (?:${number}-${number}|(\\*))/${number}$`, 'i')

/**
 * The bytes that a `Range` header asks for. Undefined without a header, and for headers that a server may ignore (RFC 9110, 14.2):
 * other units, several ranges, malformed ranges.
 */
export function rangeOf(request: Request): WantedRange | undefined {
  const header = request.headers.get('range')
  // RFC 9110 defines Range for GET only.
  if (header === null || request.method !== 'GET') return undefined
  const [, first, last, suffix] = wanted.exec(header.trim()) ?? []
  if (suffix !== undefined) return { suffix: Number(suffix) }
  if (first === undefined) return undefined
  if (last === undefined) return { first: Number(first) }
  return Number(last) < Number(first) ? undefined : { first: Number(first), last: Number(last) }
}

/** The `Content-Range` of an upload: the part in the body, or `totalBytes` (for `* /TOTAL`): a query of the stored bytes. 400. */
export function contentRangeOf(
  request: Request,
): { readonly part: NonNullable<UploadOptions['part']> } | { readonly totalBytes: number } | undefined {
  const header = request.headers.get('content-range')
  if (header === null) return undefined
  const [, first, last, isQuery, total] = sent.exec(header.trim()) ?? []
  if (isQuery !== undefined) return { totalBytes: Number(total) }
  const part = { first: Number(first), last: Number(last), total: Number(total) }
  if (first === undefined || part.first > part.last || part.last >= part.total) {
    const got = JSON.stringify(header.slice(0, 60))
    throw badRequest(`Content-Range: expected "bytes FIRST-LAST/TOTAL" or "bytes */TOTAL", got ${got}`)
  }
  return { part }
}
