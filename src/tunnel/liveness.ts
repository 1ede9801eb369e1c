/** How long an end may say nothing before it is asked for a sign of life, and before it is taken for gone, ms. */
export interface LivenessTimeouts {
  readonly askMs: number
  readonly giveUpMs: number
}

/** With the ticks that both take, a connection of which only half is there is found within 30 s. */
export const defaultLivenessTimeouts: LivenessTimeouts = { askMs: 8000, giveUpMs: 20_000 }

/** Watches whether the other end is there. */
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
