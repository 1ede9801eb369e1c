/** Silence of the other end after which it gets a ping, and after which it counts as lost, ms. */
export interface LivenessTimeouts {
  readonly askMs: number
  readonly giveUpMs: number
}

/** With the ticks of both ends, a half-open connection is found within 30 s. */
export const defaultLivenessTimeouts: LivenessTimeouts = { askMs: 8000, giveUpMs: 20_000 }

/** Sends heartbeats, and reports when the other end is lost. */
export class Liveness {
  readonly #timeouts: LivenessTimeouts
  readonly #ask: () => void
  readonly #gone: () => void
  #heardAt = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(timeouts: LivenessTimeouts, ask: () => void, gone: () => void) {
    this.#timeouts = timeouts
    this.#ask = ask
    this.#gone = gone
  }

  heard(): void {
    this.#heardAt = Date.now()
  }

  start(): void {
    if (this.#timer !== undefined) return
    this.heard()
    this.#tick()
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    const { askMs, giveUpMs } = this.#timeouts
    this.#timer = setTimeout(() => {
      const quietMs = Date.now() - this.#heardAt
      if (quietMs >= giveUpMs) {
        this.stop()
        return this.#gone()
      }
      if (quietMs >= askMs) this.#ask()
      this.#tick()
    }, askMs)
  }
}
