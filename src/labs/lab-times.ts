import { pause, pauseUntil } from '../lib/async/pause.ts'

/** Time between two attempts when a compute of the lab is not connected, ms. */
const againMs = 60_000

interface LabTimesOptions {
  /** Does what is due for a lab at this time, and replaces or removes the time in its record. Rejects when it fails. */
  readonly run: (id: string, time: string) => Promise<void>
  readonly failed: (id: string, time: string, error: Error) => void
}

interface Waiting {
  readonly time: string
  readonly over: AbortController
  /** Resolves after the first attempt, also when it failed. */
  readonly tried: Promise<void>
  /** The time of the next attempt after a failure, ms since 1970. */
  again?: number
}

/** Does something with labs at the times that their records have, such as `stop_at`. */
export class LabTimes {
  readonly #options: LabTimesOptions
  readonly #waiting = new Map<string, Waiting>()

  constructor(options: LabTimesOptions) {
    this.#options = options
  }

  /** Takes note of the time of a lab, RFC 3339; undefined: it has none. */
  note(id: string, time: string | undefined): void {
    const known = this.#waiting.get(id)
    if (known?.time === time) return
    known?.over.abort()
    this.#waiting.delete(id)
    if (time === undefined) return
    const over = new AbortController()
    let onTried = () => {}
    const tried = new Promise<void>((resolve) => {
      onTried = resolve
    })
    const waiting: Waiting = { time, over, tried }
    this.#waiting.set(id, waiting)
    void this.#wait(id, waiting, onTried)
  }

  /** The next time, ms since 1970. */
  get next(): number | undefined {
    const times = [...this.#waiting.values()].map(({ time, again }) => again ?? Date.parse(time))
    return times.length === 0 ? undefined : Math.min(...times)
  }

  /** Resolves after an attempt for each lab that is due. For a process that sleeps otherwise. */
  async due(): Promise<void> {
    const due = [...this.#waiting.values()].filter(({ time }) => Date.parse(time) <= Date.now())
    await Promise.all(due.map(({ tried }) => tried))
  }

  end(): void {
    for (const { over } of this.#waiting.values()) over.abort()
    this.#waiting.clear()
  }

  async #wait(id: string, waiting: Waiting, onTried: () => void): Promise<void> {
    const { time, over } = waiting
    await pauseUntil(Date.parse(time), over.signal)
    while (!over.signal.aborted) {
      try {
        await this.#options.run(id, time)
        if (this.#waiting.get(id) === waiting) this.#waiting.delete(id)
        break
      } catch (error) {
        this.#options.failed(id, time, error as Error)
      }
      waiting.again = Date.now() + againMs
      onTried()
      await pause(againMs, over.signal)
    }
    onTried()
  }
}
