import { ignore } from '../../src/async/ignore.ts'
import { badRequest } from '../../src/errors/api-error.ts'

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/**
 * `fetch` whose bodies come to the server whole, or are seen there to be broken off. workerd ends a chunked body as if it were complete
 * (`0\r\n\r\n`) when the stream it comes from fails, such as when the client of an upload has gone. So a body whose length is known is
 * sent with `Content-Length`, and the request of any other is aborted when its stream fails, which closes the connection.
 * Rejects with an ApiError (400) when it was the stream that failed: the server is not at fault.
 */
export const wholeFetch =
  (fetch: Fetch): Fetch =>
  async (url, init) => {
    const body = init.body
    if (!(body instanceof ReadableStream)) return fetch(url, init)
    const length = lengthIn(new Headers(init.headers))
    return length === undefined ? unmeasured(fetch, url, init, body) : measured(fetch, url, init, body, length)
  }

async function measured(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  body: ReadableStream<Uint8Array>,
  length: number,
): Promise<Response> {
  const { readable, writable } = new FixedLengthStream(length)
  const isTorn = body.pipeTo(writable, { preventCancel: true }).then(
    () => false,
    () => hasEnded(body),
  )
  try {
    return await fetch(url, { ...init, body: readable })
  } catch (error) {
    throw (await isTorn) ? torn(error) : error
  }
}

async function unmeasured(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  body: ReadableStream<Uint8Array>,
): Promise<Response> {
  const { stream, failed } = unfailing(body)
  const signal = init.signal == null ? failed : AbortSignal.any([init.signal, failed])
  try {
    return await fetch(url, { ...init, body: stream, signal })
  } catch (error) {
    throw failed.aborted ? torn(error) : error
  }
}

/** Sends a request to a Durable Object, which gets its body whole or not at all: else it would take a body that broke off for one. */
export async function sendWhole(object: Pick<DurableObjectStub, 'fetch'>, request: Request): Promise<Response> {
  // The filter in the body of a GET stores nothing, and no other body can be given to a GET here.
  const isGet = request.method === 'GET' || request.method === 'HEAD'
  if (request.body === null || isGet || lengthIn(request.headers) !== undefined) return object.fetch(request)
  const { stream, failed } = unfailing(request.body)
  const init = { body: stream, signal: AbortSignal.any([request.signal, failed]) }
  return object.fetch(request, init).catch((error: unknown) => {
    throw failed.aborted ? torn(error) : error
  })
}

/** The same bytes; where the stream fails this one stands still, and `failed` is aborted: whoever sends it must end then. */
export function unfailing(body: ReadableStream<Uint8Array>): {
  stream: ReadableStream<Uint8Array>
  failed: AbortSignal
} {
  const over = new AbortController()
  const reader = body.getReader()
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          if (done) controller.close()
          else controller.enqueue(value)
        } catch (error) {
          over.abort(error)
          await new Promise(() => {})
        }
      },
      cancel: (reason) => reader.cancel(reason),
    },
    { highWaterMark: 0 },
  )
  return { stream, failed: over.signal }
}

/** The length of a body that its headers announce, bytes. */
export function lengthIn(headers: Headers): number | undefined {
  const length = headers.get('content-length')
  return length !== null && /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

/** Whether a stream failed or ended, and not what it was piped to. One that goes on is cancelled: nothing takes it any more. */
async function hasEnded(body: ReadableStream<Uint8Array>): Promise<boolean> {
  const reader = body.getReader()
  const ended = reader.closed.then(
    () => true,
    () => true,
  )
  const goesOn = new Promise<false>((resolve) => setTimeout(() => resolve(false), 0))
  if (await Promise.race([ended, goesOn])) return true
  reader.cancel().catch(ignore('what is left of the body is not wanted'))
  return false
}

/** 400: the body that was to be sent did not come to its end. */
export const torn = (cause: unknown) => badRequest('The body ended before its time; nothing was stored', { cause })
