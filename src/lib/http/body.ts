import { ignore } from '../async/ignore.ts'
import { ApiError, badRequest, tooLarge } from '../errors/api-error.ts'
import { jsonFault } from './json-fault.ts'
import { parseJson } from './whole-pairs.ts'

const decoder = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: false })

/** Names of fields whose values never appear in messages. */
export const mayBeSecret = /password|token|secret|iourc/i

/** The JSON object in the body; `{}` when there is none. 400 when it is something else, 413 when it is larger than `limit` bytes. */
export async function readJson(request: Request, limit: number): Promise<Record<string, unknown>> {
  const value = await readAnyJson(request, limit)
  if (value === null || typeof value !== 'object' || Array.isArray(value)) {
    throw badRequest(
      `body: expected a JSON object such as {"name": "lab"}, got ${Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`}`,
    )
  }
  return value as Record<string, unknown>
}

/** The JSON value of the body; `{}` when there is no body. */
export async function readAnyJson(request: Request, limit: number): Promise<unknown> {
  const text = await readText(request, limit)
  if (text === '') return {}
  try {
    return parseJson(text)
  } catch (cause) {
    if (cause instanceof ApiError) throw cause
    // The parser's message may quote the text, and differs between runtimes.
    throw badRequest(`body: not JSON: ${jsonFault(text)}`, mayBeSecret.test(text) ? {} : { cause })
  }
}

/** The whole body as text. 400 when it is not UTF-8, 413 when it is larger than `limit` bytes. */
export async function readText(request: Request, limit: number): Promise<string> {
  return decode(await readBytes(request, limit))
}

/** The whole body. 413 when it is larger than `limit` bytes. */
export async function readBytes(request: Request, limit: number): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced > limit) throw tooBig(limit)
  // The common case: a short body with a Content-Length is read at once. Node cannot do that for a GET.
  const isGet = request.method === 'GET' || request.method === 'HEAD'
  if (announced > 0 && !isGet) return new Uint8Array(await request.arrayBuffer())
  const isChunked = request.headers.get('transfer-encoding') !== null
  if (announced === 0 && !isChunked && request.headers.get('content-length') !== null) return nothing
  if (request.body === null) return nothing
  const parts: Uint8Array<ArrayBuffer>[] = []
  let size = 0
  const reader = request.body.getReader()
  for (;;) {
    const { done, value } = await reader.read()
    if (done) break
    size += value.byteLength
    if (size > limit) {
      await reader.cancel().catch(ignore('the body is refused'))
      throw tooBig(limit)
    }
    parts.push(value)
  }
  return joined(parts, size)
}

/** The pieces as one, of `size` bytes in all. */
export function joined<B extends ArrayBufferLike>(
  pieces: readonly Uint8Array<B>[],
  size: number,
): Uint8Array<B | ArrayBuffer> {
  const [only] = pieces
  if (only !== undefined && pieces.length === 1) return only
  const whole = new Uint8Array(size)
  let at = 0
  for (const piece of pieces) {
    whole.set(piece, at)
    at += piece.byteLength
  }
  return whole
}

function decode(bytes: Uint8Array): string {
  try {
    return decoder().decode(bytes)
  } catch (cause) {
    throw badRequest('body: not valid UTF-8; send the text encoded as UTF-8', { cause })
  }
}

const nothing = new Uint8Array()

const tooBig = (limit: number) => tooLarge(`body: larger than the limit of ${limit} bytes (limits.json_kb)`)
