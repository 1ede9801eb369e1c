import { request as http } from 'node:http'
import type { Answer, PatchbayOptions } from '../../../src/client/patchbay.ts'
import { answered, rawHeaders, type WireAnswer } from '../service/http/wire-request.ts'

/**
 * A `fetch` by node:http for commands. That of Node takes longer to load than most commands take (25 ms), and ends a body that brings
 * nothing for five minutes, as the capture of a quiet link does.
 */
export const wireFetch: NonNullable<PatchbayOptions['fetch']> = async (
  url,
  { method = 'GET', headers, body, signal },
) => {
  const { protocol, host, hostname, port, pathname, search } = new URL(url)
  const isEncrypted = protocol === 'https:'
  const begin = isEncrypted ? (await import('node:https')).request : http
  const path = pathname + search
  const bytes = bytesOf(body)
  const known = bytes === null && /^P/.test(method) ? 0 : bytes instanceof Uint8Array ? bytes.length : undefined
  const size = body instanceof Blob ? body.size : known
  const length = size === undefined ? {} : { 'content-length': String(size) }
  const outgoing = {
    method,
    path,
    headers: { ...(headers as Record<string, string>), ...length },
    body: bytes,
    signal: signal ?? new AbortController().signal,
  }
  const target = { method, path, port, host: hostname.replace(/^\[|\]$/g, '') }
  const raw = rawHeaders(['Host', host], outgoing)
  const wire = await answered(() => begin({ ...target, headers: raw }), outgoing, isEncrypted ? 'https' : 'http')
  return answerOf(wire, outgoing.signal)
}

function bytesOf(body: RequestInit['body']): ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer> | null {
  if (body === undefined || body === null) return null
  if (typeof body === 'string') return new TextEncoder().encode(body)
  return body instanceof Blob ? body.stream() : (body as ReadableStream<Uint8Array> | Uint8Array<ArrayBuffer>)
}

const answerOf = (wire: WireAnswer, signal: AbortSignal): Answer => ({
  ok: wire.status >= 200 && wire.status < 300,
  status: wire.status,
  headers: wire.headers,
  get body() {
    return wire.body as Answer['body']
  },
  async text() {
    if (wire.whole !== undefined) return new TextDecoder().decode(wire.whole)
    const pieces: Uint8Array[] = []
    try {
      for await (const piece of wire.body ?? []) pieces.push(piece)
    } catch (error) {
      signal.throwIfAborted()
      throw error
    }
    return new TextDecoder().decode(Buffer.concat(pieces))
  },
})
