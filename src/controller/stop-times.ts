import { pause, pauseUntil } from '../async/pause.ts'

/** Time between two attempts to stop a lab whose computes are away, ms. */
const againMs = 60_000

interface StopTimesOptions {
  /** Stops the nodes of a lab, and removes the time from its record. Rejects when they could not be stopped. */
  readonly stop: (id: string, stopAt: string) => Promise<void>
  readonly warn: (message: string) => void
}

interface Waiting {
  readonly stopAt: string
  readonly over: AbortController
  /** Resolves when the lab is stopped, or could not be stopped for the first time. */
  readonly tried: Promise<void>
}

/** Stops labs at the times that their records have (`stop_at`). */
export class StopTimes {
  readonly #options: StopTimesOptions
  readonly #waiting = new Map<string, Waiting>()

  constructor(options: StopTimesOptions) {
    this.#options = options
  }

  /** Takes note of the time of a lab, RFC 3339; undefined: it has none. */
  note(id: string, stopAt: string | undefined): void {
    const known = this.#waiting.get(id)
    if (known?.stopAt === stopAt) return
    known?.over.abort()
    this.#waiting.delete(id)
    if (stopAt === undefined) return
    const over = new AbortController()
    const tried = new Promise<void>((resolve) => void this.#wait(id, stopAt, over.signal, resolve))
    this.#waiting.set(id, { stopAt, over, tried })
  }

  /** The next time, ms since 1970. */
  get next(): number | undefined {
    const times = [...this.#waiting.values()].map(({ stopAt }) => Date.parse(stopAt))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Resolves when it was tried to stop the labs whose time has come, for a process that sleeps otherwise. */
  async due(): Promise<void> {
    const due = [...this.#waiting.values()].filter(({ stopAt }) => Date.parse(stopAt) <= Date.now())
    await Promise.all(due.map(({ tried }) => tried))
  }

  end(): void {
    for (const { over } of this.#waiting.values()) over.abort()
    this.#waiting.clear()
  }

  async #wait(id: string, stopAt: string, signal: AbortSignal, onTried: () => void): Promise<void> {
    await pauseUntil(Date.parse(stopAt), signal)
    while (!signal.aborted) {
      try {
        await this.#options.stop(id, stopAt)
        return onTried()
      } catch (error) {
        this.#options.warn(`The project ${id} was not stopped at ${stopAt}: ${(error as Error).message}`)
      }
      onTried()
      await pause(againMs, signal)
    }
    onTried()
  }
}
