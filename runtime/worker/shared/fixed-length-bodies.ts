import { causeOf } from '../../../src/compute/remote/answer.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { badRequest, bodyBrokeOff } from '../../../src/lib/errors/api-error.ts'

type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** Bodies whose length workerd knows: those of requests with `Content-Length` that came to this program. */
const known = new WeakSet<ReadableStream>()

/** Notes the body of a request that came to this program: `wholeFetch` may send it on as it is, in half the processor time of a copy. */
export function trackBody(request: Request): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  const { headers, body } = request
  if (body !== null && lengthIn(headers) !== undefined) known.add(body)
}

/**
 * `fetch` whose server sees a body that broke off as incomplete. workerd ends a chunked body as if it were complete (`0\r\n\r\n`) when
 * its stream fails, for example because the client of an upload disconnected. So a body of known length is sent with `Content-Length`;
 * for any other the request is aborted when the stream fails, which closes the connection. Rejects with ApiError (400) when it failed.
 * `answers`: whether the server of a URL answers; with it, bodies that were noted are sent without a copy.
 */
export const wholeFetch =
  (fetch: Fetch, answers?: (url: string) => Promise<boolean>): Fetch =>
  (url, init) => {
    const body = init.body
    if (!(body instanceof ReadableStream)) return fetch(url, init)
    if (answers !== undefined && known.has(body)) return asItIs(fetch, url, init, answers)
    const length = lengthIn(new Headers(init.headers))
    return length === undefined ? unmeasured(fetch, url, init, body) : measured(fetch, url, init, body, length)
  }

async function asItIs(
  fetch: Fetch,
  url: string,
  init: RequestInit,
  answers: (url: string) => Promise<boolean>,
): Promise<Response> {
  try {
    return await fetch(url, init)
  } catch (error) {
    // workerd does not say whether the client or the server has failed, or whether the server had the whole body.
    if (init.signal?.aborted || !(await answers(url))) throw error
    throw badRequest('The request body or the connection to the compute ended early: check whether it was stored', {
      cause: error,
    })
  }
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
    throw (await isTorn) ? bodyBrokeOff(error) : error
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
    throw failed.aborted ? bodyBrokeOff(error) : error
  }
}

/** Sends a request to a Durable Object. When the body breaks off, the request is aborted; the object must not take it as complete. */
export async function sendWhole(object: Pick<DurableObjectStub, 'fetch'>, request: Request): Promise<Response> {
  // The body of a GET can only be a filter: nothing is stored of it.
  const isGet = request.method === 'GET' || request.method === 'HEAD'
  if (request.body === null || isGet || lengthIn(request.headers) !== undefined) return object.fetch(request)
  const { stream, failed } = unfailing(request.body)
  const init = { body: stream, signal: AbortSignal.any([request.signal, failed]) }
  return object.fetch(request, init).catch((error: unknown) => {
    throw failed.aborted ? bodyBrokeOff(error) : error
  })
}

/** A stream of the same bytes that stalls instead of failing. `failed` aborts then, and the sender must end the request. */
function unfailing(body: ReadableStream<Uint8Array>): {
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

/**
 * The body of an answer with these headers. workerd sends a stream of JavaScript chunked, and ends it as if it were complete when it fails: one
 * of known length is sent with `Content-Length`, and ends short.
 */
export function wholeBody(
  body: ReadableStream<Uint8Array> | null,
  headers: Pick<Headers, 'get'>,
): ReadableStream<Uint8Array> | null {
  if (body === null) return null
  const length = lengthIn(headers)
  const { readable, writable } = length === undefined ? new IdentityTransformStream() : new FixedLengthStream(length)
  body
    .pipeTo(writable, { preventAbort: true })
    // With this mark workerd treats the error as a lost connection, which it is, and does not log it as a defect.
    .catch((cause) => writable.abort(Object.assign(new Error(causeOf(cause), { cause }), { retryable: true })))
    .catch(ignore('the reader has left'))
  return readable
}

/** The `Content-Length` of a body, bytes; undefined without one. */
export function lengthIn(headers: Pick<Headers, 'get'>): number | undefined {
  const length = headers.get('content-length')
  return length !== null && /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

/** Whether a stream ended or failed, in contrast to its destination. A stream that goes on is cancelled. */
async function hasEnded(body: ReadableStream<Uint8Array>): Promise<boolean> {
  const reader = body.getReader()
  const ended = reader.closed.then(
    () => true,
    () => true,
  )
  const goesOn = new Promise<false>((resolve) => setTimeout(() => resolve(false), 0))
  if (await Promise.race([ended, goesOn])) return true
  reader.cancel().catch(ignore('the rest of the body is not needed'))
  return false
}
