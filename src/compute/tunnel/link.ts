import { ignore } from '../../lib/async/ignore.ts'
import type { TunnelLimits } from '../../model/tunnel.ts'
import { ConnectionLost } from '../remote/transport.ts'
import {
  decodeBatch,
  decodeTunnelFrame,
  encodeJson,
  type FrameKind,
  frameKinds,
  ProtocolError,
  resetCodes,
  type TunnelFrame,
} from './frames.ts'
import { defaultLivenessTimeouts, Liveness, type LivenessTimeouts } from './liveness.ts'
import { type Later, Outbox, type TunnelWire } from './outbox.ts'
import { Stream } from './stream.ts'

/** Default limits: at most 128 MiB wait, when none of 512 streams is read. */
export const defaultLimits: TunnelLimits = { window: 256 * 1024, streams: 512 }

export interface LinkOptions {
  readonly wire: TunnelWire
  readonly limits?: TunnelLimits
  readonly timeouts?: LivenessTimeouts
  /**
   * Runs something at the end of this turn of the event loop: OPENs or ANSWERs of one turn are one message, if the other end takes that.
   * Absent: each is one of its own.
   */
  readonly later?: Later
  /** `busy`: heartbeats are sent only while streams are active, so that the program may sleep otherwise. */
  readonly watch?: 'always' | 'busy'
  /** Called once when the tunnel ends, by either end. `code` 0: the connection broke. */
  readonly ended: (end: TunnelEnd) => void
}

/** How a tunnel ended. */
export interface TunnelEnd {
  readonly code: number
  readonly reason: string
}

/** One end of a tunnel: its open streams, and the heartbeats of the other end. */
export abstract class TunnelLink {
  protected readonly limits: TunnelLimits
  readonly #options: LinkOptions
  readonly #outbox: Outbox
  readonly #liveness: Liveness
  readonly #streams = new Map<number, Stream>()
  /** Idle streams: no heartbeats are sent for them. */
  readonly #resting = new Set<Stream>()
  #lastStream = 0
  #isPonging = false
  #isOver = false

  constructor(options: LinkOptions) {
    this.#options = options
    this.limits = options.limits ?? defaultLimits
    this.#outbox = new Outbox(options.wire, ({ message }) => this.#end({ code: 0, reason: message }), options.later)
    this.#liveness = new Liveness(
      options.timeouts ?? defaultLivenessTimeouts,
      () => this.#outbox.control('ping'),
      () => this.close(resetCodes.silent, 'The other end is silent'),
    )
    if (options.watch !== 'busy') this.#liveness.start()
  }

  /** Called with the payload of a HELLO. */
  protected abstract greeted(payload: Uint8Array): void

  /** Called when the other end opens a stream; absent at the end that opens them. */
  protected opened?(frame: TunnelFrame): void

  /** Called for each message that no credit covers: all but the data of open streams, and the credit that is granted for it. */
  protected uncovered?(): void

  protected ended(end: TunnelEnd): void {
    this.#options.ended(end)
  }

  protected get isOver(): boolean {
    return this.#isOver
  }

  /** Open requests and websockets. */
  get size(): number {
    return this.#streams.size
  }

  /** Takes a message of the websocket. */
  message(data: Uint8Array | string): void {
    if (this.#isOver) return
    this.#liveness.heard()
    if (typeof data === 'string') return this.#takeText(data)
    try {
      this.#receive(decodeTunnelFrame(data))
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error
      this.close(resetCodes.malformed, error.message)
    }
  }

  /** Called when the websocket is closed, by either end. */
  closed(code = 0, reason = ''): void {
    this.#end({ code, reason: reason === '' ? 'the connection ended' : reason })
  }

  close(code: number, reason: string): void {
    if (this.#isOver) return
    this.#outbox.flush()
    this.#end({ code, reason })
    this.#options.wire.close(code, closeReason(reason))
  }

  protected sendJson(kind: FrameKind, stream: number, value: unknown): void {
    this.#outbox.control(encodeJson(kind, stream, value))
  }

  /** Sends the frame with others of this turn; see `Outbox.batch`. */
  protected batchJson(kind: FrameKind, stream: number, value: unknown): void {
    this.#outbox.batch(encodeJson(kind, stream, value))
  }

  protected nextId(): number {
    return this.#lastStream + 1
  }

  /** Makes a stream of this number; `theirs`: the first credit that the other end grants, bytes. */
  protected add(id: number, theirs: number): Stream {
    const stream = new Stream({
      id,
      outbox: this.#outbox,
      window: { theirs, ours: this.limits.window },
      over: () => this.#remove(id, stream),
    })
    this.#lastStream = id
    this.#streams.set(id, stream)
    this.#liveness.start()
    return stream
  }

  /** Marks the stream as idle: it needs no heartbeats. */
  protected rest(stream: Stream): void {
    if (this.#streams.get(stream.id) !== stream) return
    this.#resting.add(stream)
    this.#settle()
  }

  /** Drops all streams; their numbers begin again at 1. */
  protected restart(reason: string): void {
    this.#failAll(reason)
    this.#lastStream = 0
  }

  #receive(frame: TunnelFrame): void {
    const { kind, stream: id, payload } = frame
    const stream = this.#streams.get(id)
    if (stream?.isCovered(frame) !== true) this.uncovered?.()
    if (this.#isOver) return
    if (kind === frameKinds.hello) return this.greeted(payload)
    if (kind === frameKinds.open) {
      if (this.opened === undefined || id <= this.#lastStream)
        throw new ProtocolError('a frame opens a stream where none may be opened')
      return this.opened(frame)
    }
    if (kind === frameKinds.batch) {
      const batched = this.opened === undefined ? frameKinds.answer : frameKinds.open
      for (const it of decodeBatch(payload, batched)) this.#receive(it)
      return
    }
    if (id === 0 || id > this.#lastStream) throw new ProtocolError('a frame is of a stream that was never opened')
    stream?.receive(frame)
  }

  #takeText(text: string): void {
    this.uncovered?.()
    if (this.#isOver) return
    if (text === 'ping') void this.#pong()
    else if (text !== 'pong') this.close(resetCodes.malformed, 'a text is neither ping nor pong')
  }

  /** Queues one pong at most: an end that sends pings without reading must not fill the outbox. */
  async #pong(): Promise<void> {
    if (this.#isPonging) return
    this.#isPonging = true
    this.#outbox.control('pong')
    await this.#options.wire.drained().catch(ignore('a wire that fails reports its close'))
    this.#isPonging = false
  }

  #remove(id: number, stream: Stream): void {
    if (this.#streams.get(id) === stream) this.#streams.delete(id)
    this.#resting.delete(stream)
    this.#settle()
  }

  #settle(): void {
    if (this.#streams.size === this.#resting.size && this.#options.watch === 'busy') this.#liveness.stop()
  }

  #failAll(reason: string): void {
    for (const stream of [...this.#streams.values()]) stream.fail(new ConnectionLost(reason))
  }

  #end(end: TunnelEnd): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#liveness.stop()
    this.#outbox.close()
    // Before the streams fail, so that their listeners find the tunnel closed.
    this.ended(end)
    this.#failAll(end.reason)
  }
}

/** The reason of a close has at most 123 bytes (RFC 6455, 5.5). */
export const closeReason = (reason: string): string =>
  new TextDecoder().decode(new TextEncoder().encode(reason).subarray(0, 120))
