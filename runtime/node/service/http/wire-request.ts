import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from 'node:http'
import {
  bodiless,
  type ComputeAddress,
  type ComputeAnswer,
  ConnectionLost,
  type Outgoing,
  raceMs,
} from '../../../../src/compute/remote/transport.ts'
import { onAbort } from '../../../../src/lib/async/abort.ts'
import { webStream } from '../../os/system/web-stream.ts'

type Protocol = ComputeAddress['protocol']

const connectMs = 20_000

/** As node:http writes them at once. */
export function rawHeaders(own: readonly string[], { headers, body }: Outgoing): string[] {
  const raw = [...own]
  let hasLength = false
  for (const name in headers) {
    raw.push(name, headers[name] as string)
    hasLength ||= name.toLowerCase() === 'content-length'
  }
  // By itself Node frames no body of a DELETE whose length is not known.
  if (body instanceof ReadableStream && !hasLength) raw.push('Transfer-Encoding', 'chunked')
  return raw
}

/** Sends a request, and once more when a connection that was kept ended before the answer. */
export function answered(
  begin: () => ClientRequest,
  outgoing: Outgoing,
  protocol: Protocol,
  isRepeated = false,
): Promise<WireAnswer> {
  return new Promise((resolve, reject) => {
    const { method, body, signal } = outgoing
    signal.throwIfAborted()
    const began = performance.now()
    const request = begin()
    const isReached = watchConnection(request, protocol)
    const forget = onAbort(signal, () => request.destroy(signal.reason))
    let isAnswered = false
    let isRefused = false
    const failed = (error: Error) => {
      if (isAnswered) return
      isAnswered = true
      if (signal.aborted) return reject(signal.reason)
      // A server may end an idle connection just when it is used again. Whether the server has read the request is not known.
      // Therefore only a request that changes nothing is sent again: a second start or reload would act twice (RFC 9110, 9.2.2).
      const mayBeUnread = request.reusedSocket && performance.now() - began < raceMs
      if (mayBeUnread && isSafe(outgoing) && !isRepeated) return resolve(answered(begin, outgoing, protocol, true))
      reject(isReached() ? new ConnectionLost(error.message, { cause: error }) : error)
    }
    // The listener stays: the body of the answer reports an error after the head.
    request.on('error', failed)
    request.once('close', () => {
      forget()
      if (!isAnswered) failed(new Error('the connection ended without an answer'))
    })
    request.once('response', (message) => {
      isAnswered = true
      isRefused = (message.statusCode ?? 0) >= 300
      // An answer before the end of the body is a refusal: the rest of the body is of no use.
      if (body !== null) message.once('end', () => void (request.writableFinished || request.destroy()))
      // By the next tick the part of the body that came with the head has been read.
      process.nextTick(() => resolve(new WireAnswer(message, method)))
    })
    if (body === null || body instanceof Uint8Array) request.end(body ?? undefined)
    else void pump(body, request, () => isRefused)
  })
}

const isSafe = ({ method, body }: Outgoing): boolean => (method === 'GET' || method === 'HEAD') && body === null

/** Limits the time that a new connection takes; the result says whether there is a connection. */
export function watchConnection(request: ClientRequest, protocol: Protocol): () => boolean {
  let isReached = false
  request.once('socket', (socket) => {
    if (request.reusedSocket || !socket.connecting) {
      isReached = true
      return
    }
    const timer = setTimeout(() => request.destroy(new Error(`no connection within ${connectMs / 1000} s`)), connectMs)
    request.once('close', () => clearTimeout(timer))
    socket.once(protocol === 'https' ? 'secureConnect' : 'connect', () => {
      isReached = true
      clearTimeout(timer)
    })
  })
  return () => isReached
}

/** An answer as node:http has it: nothing is made of it that is not asked for. */
export class WireAnswer implements ComputeAnswer {
  readonly status: number
  readonly headers: ComputeAnswer['headers']
  /** What came at once. */
  readonly whole: Uint8Array<ArrayBuffer> | undefined
  readonly #message: IncomingMessage
  readonly #isBodiless: boolean
  #body: ReadableStream<Uint8Array> | undefined

  constructor(message: IncomingMessage, method: string) {
    this.#message = message
    this.status = message.statusCode ?? 0
    this.headers = headersOf(message.headers)
    this.#isBodiless = method === 'HEAD' || bodiless.has(this.status)
    if (this.#isBodiless) message.resume()
    else if (message.complete) this.whole = message.read() ?? nothing
  }

  get body(): ReadableStream<Uint8Array> | null {
    if (this.#isBodiless) return null
    this.#body ??= this.whole === undefined ? webStream(this.#message) : new Blob([this.whole]).stream()
    return this.#body
  }
}

const nothing = new Uint8Array()

/** Headers that are only looked up. */
const headersOf = (headers: IncomingHttpHeaders): ComputeAnswer['headers'] => ({
  get(name) {
    const value = headers[name.toLowerCase()]
    return value === undefined ? null : Array.isArray(value) ? value.join(', ') : value
  },
  has: (name) => headers[name.toLowerCase()] !== undefined,
})

/**
 * Sends a body. When the request ends first, or is refused, the rest of it is left: to cancel it would end the client's connection, too, and to
 * write on could end this one before the answer is read.
 */
async function pump(body: ReadableStream<Uint8Array>, request: ClientRequest, isRefused: () => boolean): Promise<void> {
  const reader = body.getReader()
  let wake = () => {}
  const ended = () => {
    reader.releaseLock()
    wake()
  }
  request.once('close', ended)
  request.on('drain', () => wake())
  try {
    for (;;) {
      const { done, value } = await nextPiece(reader)
      if (done) break
      if (request.destroyed || isRefused()) return
      if (request.write(value)) continue
      await new Promise<void>((resolve) => {
        wake = resolve
      })
      if (request.destroyed) return
    }
    request.end()
  } catch (error) {
    if (!request.destroyed) request.destroy(error as Error)
  } finally {
    request.off('close', ended)
  }
}

/**
 * Reads a piece. When its source had it at once, the connection is read before the piece is returned: otherwise only the write to a
 * connection that its server has closed would show that there is an answer, and lose it.
 */
async function nextPiece(
  reader: ReadableStreamDefaultReader<Uint8Array>,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  let hasTurned = false
  setImmediate(() => {
    hasTurned = true
  })
  const piece = await reader.read()
  // The first turn may be the rest of one that has read the connection before.
  if (!hasTurned) for (let turn = 0; turn < 2; turn++) await new Promise(setImmediate)
  return piece
}
