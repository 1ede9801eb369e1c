import { Check } from '@sinclair/typebox/value'
import { onAbort } from '../../lib/async/abort.ts'
import { type Bucket, tokensIn } from '../../lib/async/bucket.ts'
import { ApiError, bodyBrokeOff } from '../../lib/errors/api-error.ts'
import type { Socket } from '../../lib/http/socket.ts'
import {
  AnyHello,
  ComputeHello,
  type GatewayHello,
  TunnelAnswer,
  TunnelRequest,
  tunnelProtocol,
} from '../../model/tunnel.ts'
import { announcedSize } from '../remote/announced-size.ts'
import { bodiless, type ComputeAnswer, ConnectionLost, maxHeaderBytes, type Outgoing } from '../remote/transport.ts'
import { bodyOfStream, sendBody, sendBytes } from './bodies.ts'
import { decodeJson, frameKinds, ProtocolError, resetCodes } from './frames.ts'
import { type LinkOptions, type TunnelEnd, TunnelLink } from './link.ts'
import { Messages } from './messages.ts'
import type { Stream } from './stream.ts'

/** How long a compute may take to send its HELLO when it connects, or this program wakes up, ms. */
const helloMs = 10_000

/** Messages of a compute that no credit covers: so many at once, in a second, and for each request. */
const uncovered = { burst: 20_000, perSecond: 1000, perRequest: 4 } as const

export interface AskingOptions extends LinkOptions {
  /** The version of this service. */
  readonly version: string
  /** The HELLO that began this tunnel, for a program that wakes up and remembers nothing else. */
  readonly resumed?: ComputeHello
  /** Called once with the HELLO of the compute. No request is sent before `accept`. */
  readonly greeted?: (hello: ComputeHello) => void
}

/** The gateway's end of a tunnel, which sends requests. Driven by `message` and `closed`. */
export class AskingEnd extends TunnelLink {
  readonly #options: AskingOptions
  #hello: ComputeHello | undefined
  /** Until the HELLO comes, frames belong to streams that this program has forgotten, and are ignored. */
  #isDeaf = true
  #isAccepted = false
  /** Messages that the compute may send now and no credit covers. */
  #room: Bucket = { left: uncovered.burst, at: Date.now() }
  readonly #late: ReturnType<typeof setTimeout>

  constructor(options: AskingOptions) {
    super(options)
    this.#options = options
    this.#hello = options.resumed
    this.#late = setTimeout(() => this.close(resetCodes.malformed, 'No HELLO arrived'), helloMs)
    if (options.resumed !== undefined) this.accept()
  }

  /** The HELLO of the compute; undefined until it came. */
  get hello(): ComputeHello | undefined {
    return this.#hello
  }

  /** Whether requests can be sent. */
  get isOpen(): boolean {
    return this.#isAccepted && !this.isOver
  }

  override message(data: Uint8Array | string): void {
    // Byte 0 is the kind of frame. Before the HELLO all other kinds are ignored.
    if (this.#isDeaf && typeof data !== 'string' && data[0] !== frameKinds.hello) return
    super.message(data)
  }

  protected override uncovered(): void {
    const at = Date.now()
    // What requests have brought beyond the burst stays.
    this.#room = { left: Math.max(this.#room.left, tokensIn(this.#room, uncovered, at)) - 1, at }
    if (this.#room.left < 0) this.close(resetCodes.flooding, 'It sends too many messages')
  }

  protected override ended(end: TunnelEnd): void {
    clearTimeout(this.#late)
    super.ended(end)
  }

  /** Accepts the compute: requests can be sent from now on. */
  accept(): void {
    if (this.isOver) return
    const hello: GatewayHello = {
      protocol: tunnelProtocol,
      version: this.#options.version,
      ...this.limits,
      answers: true,
      batches: true,
    }
    this.#isAccepted = true
    this.sendJson(frameKinds.hello, 0, hello)
  }

  /** See `Send`. */
  async send(request: Outgoing): Promise<ComputeAnswer> {
    const { body, signal } = request
    const stream = this.#open(request)
    stream.onStop(onAbort(signal, () => stream.reset(resetReasonOf(signal))))
    // Cancelling the body would close the client's connection, and the client may still want an answer.
    if (body !== null) {
      const isLarge = request.headers['content-length'] !== undefined
      const stop = (reader: { releaseLock(): void }) => reader.releaseLock()
      const how = { stop, isLarge, failure: failureOf }
      const sending = body instanceof Uint8Array ? sendBytes(body, stream) : sendBody(body, stream, how)
      sending.catch((error: Error) => stream.reset(error))
    }
    const answer = await answerOf(stream)
    if (request.longLived === true) this.rest(stream)
    return responseOf(stream, answer, request.method === 'HEAD')
  }

  /** Opens a websocket of the compute; see `OpenSocket`. */
  async openSocket({
    path,
    headers,
    signal,
  }: Pick<Outgoing, 'path' | 'headers' | 'signal'>): Promise<Socket | ComputeAnswer> {
    const upgrade = { ...headers, upgrade: 'websocket', connection: 'Upgrade' }
    const stream = this.#open({ method: 'GET', path, headers: upgrade, signal })
    const stay = onAbort(signal, () => stream.reset(resetReasonOf(signal)))
    try {
      const answer = await answerOf(stream)
      if (answer.status === 101) {
        const socket = new Messages(stream)
        socket.onClose(stay)
        return socket
      }
      stay()
      stream.end()
      return responseOf(stream, answer)
    } catch (error) {
      stay()
      throw error
    }
  }

  /** Without a `body` the stream stays open for messages. */
  #open({ method, path, headers, body, signal }: Omit<Outgoing, 'body'> & Partial<Outgoing>): Stream {
    signal.throwIfAborted()
    const hello = this.#hello
    if (hello === undefined || !this.isOpen) throw new Error('it is not connected')
    if (this.size >= Math.min(this.limits.streams, hello.streams)) {
      throw new ApiError(503, 'The compute has too many open requests; try again later', {
        headers: { 'Retry-After': '1' },
      })
    }
    const id = this.nextId()
    const opening: TunnelRequest = { method, path, headers: Object.entries(headers), body: body !== null }
    try {
      // The compute would close the tunnel for a malformed OPEN.
      if (!Check(TunnelRequest, opening)) throw new RangeError('its path or a header is too long')
      if (hello.batches === true) this.batchJson(frameKinds.open, id, opening)
      else this.sendJson(frameKinds.open, id, opening)
    } catch (cause) {
      throw new ApiError(431, `The request cannot be forwarded: ${(cause as Error).message}`, { cause })
    }
    // The OPEN could not be sent: a stream that is made now would never end.
    if (this.isOver) throw new Error('it is not connected')
    const stream = this.add(id, hello.window)
    this.#room = { left: this.#room.left + uncovered.perRequest, at: this.#room.at }
    if (body === null) stream.endSilently()
    return stream
  }

  protected override greeted(payload: Uint8Array): void {
    if (!this.#isDeaf) throw new ProtocolError('an unexpected HELLO arrived')
    const { protocol } = decodeJson(payload, AnyHello)
    if (protocol !== tunnelProtocol) {
      const reason = `The compute speaks tunnel version ${protocol}, this service version ${tunnelProtocol}`
      return this.close(resetCodes.otherProtocol, reason)
    }
    const { version, window, streams, batches, compute_id, name } = decodeJson(payload, ComputeHello)
    // Other members are dropped: an attachment of a hibernating websocket holds few bytes.
    const hello: ComputeHello = {
      protocol: tunnelProtocol,
      version,
      window,
      streams,
      compute_id,
      name,
      ...(batches !== undefined && { batches }),
    }
    const isNew = this.#hello === undefined
    if (!isNew && hello.compute_id !== this.#hello?.compute_id)
      throw new ProtocolError('the HELLO is from another compute')
    clearTimeout(this.#late)
    this.#hello = hello
    this.#isDeaf = false
    if (isNew) this.#options.greeted?.(hello)
  }
}

/** Why the body of a request failed. What another compute or this service has sent says so itself; else its sender has gone. */
const failureOf = (cause: unknown): Error =>
  cause instanceof ApiError || cause instanceof ConnectionLost ? cause : bodyBrokeOff(cause)

/** The answer to an OPEN, with the stream as its body. An answer that opens a websocket is an error for `send`. */
async function answerOf(stream: Stream): Promise<TunnelAnswer> {
  const head = await stream.head()
  return understood(stream, () => {
    const answer = decodeJson(head, TunnelAnswer)
    if (!answer.body && answer.status !== 101) stream.takeEnd()
    return answer
  })
}

/**
 * A compute may send anything, and no parser of HTTP has seen it. What has another length than it announces would be taken for the beginning of
 * the next answer on the connection of the client.
 */
function responseOf(stream: Stream, { status, headers, body }: TunnelAnswer, isHead = false): ComputeAnswer {
  return understood(stream, () => {
    if (status < 200) throw new RangeError(`it answered ${status}`)
    const found = headersOf(headers)
    const hasNone = isHead || bodiless.has(status)
    if (hasNone && body) throw new RangeError(`it has a body, which an answer with ${status} cannot have here`)
    const { whole } = stream
    const size = hasNone ? undefined : announcedSize(found)
    const known = body ? whole?.length : 0
    if (size !== undefined && known !== undefined && known !== size)
      throw new RangeError(`it announced ${size} bytes and has ${known}`)
    const content = whole === undefined && body ? bodyOfStream(stream, { size }) : null
    return {
      status,
      headers: found,
      whole,
      get body() {
        return whole === undefined ? content : new Blob([whole]).stream()
      },
    }
  })
}

/** Headers that are only looked up. Throws for a name or a value that HTTP has not, and for more than clients take. */
function headersOf(entries: TunnelAnswer['headers']): ComputeAnswer['headers'] {
  const values = new Map<string, string>()
  let bytes = 0
  for (const [name, value] of entries) {
    bytes += name.length + value.length
    if (bytes > maxHeaderBytes) throw new RangeError(`its headers are longer than ${maxHeaderBytes} bytes`)
    if (!isHeaderName.test(name)) throw new TypeError('the name of a header is malformed')
    if (!isHeaderValue.test(value)) throw new TypeError(`the header ${name} is malformed`)
    const key = name.toLowerCase()
    const before = values.get(key)
    values.set(key, before === undefined ? value : `${before}, ${value}`)
  }
  return {
    get: (name) => values.get(name.toLowerCase()) ?? null,
    has: (name) => values.has(name.toLowerCase()),
    entries: () => values.entries(),
  }
}

/** RFC 9110, 5.1 and 5.5. */
const isHeaderName = /^[!#-'*+\-.^-`|~\w]+$/
const isHeaderValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Reads the HEAD; an answer that is not of the protocol ends the stream. */
function understood<T>(stream: Stream, understand: () => T): T {
  try {
    return understand()
  } catch (cause) {
    const lost = new ConnectionLost((cause as Error).message, { cause })
    stream.reset(lost)
    throw lost
  }
}

const resetReasonOf = ({ reason }: AbortSignal): Error => (reason instanceof Error ? reason : new Error(String(reason)))
