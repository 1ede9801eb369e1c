/** What a tunnel is spoken over: one websocket. */
export interface TunnelWire {
  send(data: Uint8Array | string): void
  close(code: number, reason: string): void
  /** Resolves when little of what was sent still waits to leave; at once where the runtime does not tell. */
  drained(): Promise<void>
  /** See `Socket.keep`. */
  keep?(value: unknown): void
}

/** Something that may have a frame of data to send. */
export interface Source {
  /** The next frame; undefined when there is none, or none may be sent now. */
  next(): Uint8Array | undefined
}

/** Sends the data of all streams in turns, a frame each, no faster than the wire takes it; what controls goes before. */
export class Outbox {
  readonly #wire: TunnelWire
  readonly #failed: (error: Error) => void
  readonly #ready = new Set<Source>()
  #isSending = false
  #isClosed = false

  constructor(wire: TunnelWire, failed: (error: Error) => void) {
    this.#wire = wire
    this.#failed = failed
  }

  control(frame: Uint8Array | string): void {
    if (this.#isClosed) return
    try {
      this.#wire.send(frame)
    } catch (error) {
      this.#failed(error as Error)
    }
  }

  /** The source has something to send. */
  add(source: Source): void {
    if (this.#isClosed) return
    this.#ready.add(source)
    if (!this.#isSending) void this.#send()
  }

  remove(source: Source): void {
    this.#ready.delete(source)
  }

  close(): void {
    this.#isClosed = true
    this.#ready.clear()
  }

  async #send(): Promise<void> {
    this.#isSending = true
    try {
      for (const source of this.#turns()) {
        await this.#wire.drained()
        const frame = this.#isClosed ? undefined : source.next()
        if (frame === undefined) continue
        this.#wire.send(frame)
        this.add(source)
      }
    } catch (error) {
      this.#failed(error as Error)
    } finally {
      this.#isSending = false
    }
  }

  /** Each that has something to send, in turns, for as long as there is one. */
  *#turns(): Generator<Source> {
    for (const source of this.#ready) {
      this.#ready.delete(source)
      yield source
    }
  }
}
