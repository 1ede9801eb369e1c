import { encodeBatch, maxPayloadBytes } from './frames.ts'

/** The websocket below a tunnel. */
export interface TunnelWire {
  send(data: Uint8Array | string): void
  close(code: number, reason: string): void
  /** Resolves when few sent bytes still wait; at once where the runtime does not report that. */
  drained(): Promise<void>
  /** See `Socket.keep`. */
  keep?(value: unknown): void
}

/** A stream that may have a DATA frame to send. */
export interface OutboxSource {
  /** The next frame; undefined when there is none, or no credit for it. */
  next(): Uint8Array | undefined
}

/** Runs something at the end of this turn of the event loop. */
export type Later = (run: () => void) => void

/** Sends the DATA frames of all streams round-robin, no faster than the websocket takes them; other frames go first. */
export class Outbox {
  readonly #wire: TunnelWire
  readonly #failed: (error: Error) => void
  readonly #later: Later | undefined
  readonly #ready = new Set<OutboxSource>()
  /** Frames that are sent together, and their size as a BATCH. */
  #batch: Uint8Array[] = []
  #batchBytes = 0
  #isSending = false
  #isClosed = false

  /** Without `later` no frames are sent together. */
  constructor(wire: TunnelWire, failed: (error: Error) => void, later?: Later) {
    this.#wire = wire
    this.#failed = failed
    this.#later = later
  }

  control(frame: Uint8Array | string): void {
    if (this.#isClosed) return
    this.flush()
    try {
      this.#wire.send(frame)
    } catch (error) {
      this.#failed(error as Error)
    }
  }

  /** Sends an OPEN or ANSWER at the end of this turn, with the others of this turn. */
  batch(frame: Uint8Array): void {
    const later = this.#later
    if (later === undefined) return this.control(frame)
    if (this.#isClosed) return
    const bytes = 4 + frame.length
    if (this.#batchBytes + bytes > maxPayloadBytes) this.flush()
    if (this.#batch.length === 0) later(() => this.flush())
    this.#batch.push(frame)
    this.#batchBytes += bytes
  }

  /** Sends the frames of the batch. */
  flush(): void {
    const [first, ...more] = this.#batch
    if (first === undefined || this.#isClosed) return
    const frames = this.#batch
    this.#batch = []
    this.#batchBytes = 0
    this.control(more.length === 0 ? first : encodeBatch(frames))
  }

  /** Registers a source that has something to send. */
  add(source: OutboxSource): void {
    if (this.#isClosed) return
    this.#ready.add(source)
    if (!this.#isSending) void this.#send()
  }

  remove(source: OutboxSource): void {
    this.#ready.delete(source)
  }

  close(): void {
    this.#isClosed = true
    this.#batch = []
    this.#ready.clear()
  }

  async #send(): Promise<void> {
    this.#isSending = true
    try {
      for (const source of this.#turns()) {
        await this.#wire.drained()
        const frame = this.#isClosed ? undefined : source.next()
        if (frame === undefined) continue
        // The OPEN of the stream may be in the batch.
        this.flush()
        this.#wire.send(frame)
        this.add(source)
      }
    } catch (error) {
      this.#failed(error as Error)
    } finally {
      this.#isSending = false
    }
  }

  /** The sources that have something to send, round-robin, until there is none. */
  *#turns(): Generator<OutboxSource> {
    for (const source of this.#ready) {
      this.#ready.delete(source)
      yield source
    }
  }
}
