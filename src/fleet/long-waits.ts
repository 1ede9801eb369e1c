/** What a wait is told when it is long. */
export const isLong = Symbol('long')

/** How long a wait is short, ms; it may be told up to as much earlier. */
const shortMs = 1000

interface Wait {
  /** Resolves when the wait is long; of a short one never. */
  readonly told: Promise<typeof isLong>
  end(): void
}

/**
 * Tells waits that they are long, by one timer a second for all of them: a timer for each is a tenth of what a small request takes workerd.
 * What a long wait does then it does within its own request.
 */
export class LongWaits {
  readonly #waitUntil: (work: Promise<unknown>) => void
  readonly #waits = new Set<() => void>()
  /** When the present ones are told, ms since 1970. */
  #dueAt = 0

  /** `waitUntil`: the timer is that of the request which begins the first wait, and outlives it. */
  constructor(waitUntil: (work: Promise<unknown>) => void) {
    this.#waitUntil = waitUntil
  }

  begin(): Wait {
    let tell = () => {}
    const told = new Promise<typeof isLong>((resolve) => {
      tell = () => resolve(isLong)
    })
    this.#waits.add(tell)
    // A timer that was due and has told nobody has ended with its process.
    if (Date.now() >= this.#dueAt) this.#waitUntil(this.#tellSoon())
    return { told, end: () => void this.#waits.delete(tell) }
  }

  #tellSoon(): Promise<void> {
    this.#dueAt = Date.now() + shortMs
    return new Promise((resolve) => {
      setTimeout(() => {
        for (const tell of this.#waits) tell()
        this.#waits.clear()
        resolve()
      }, shortMs)
    })
  }
}
