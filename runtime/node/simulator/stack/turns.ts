/**
 * Turns of what shares one thread: one piece of work, then whatever the system has for anybody, then the next one, in the order
 * in which they came. Who has more to do asks again, behind all others.
 */
export class TurnScheduler {
  readonly #work: (() => void)[] = []
  #isScheduled = false

  /** Runs a piece of work, of about a millisecond at most, when it is its turn. */
  add(work: () => void): void {
    this.#work.push(work)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#next)
  }

  /** Resolves when it is the caller's turn. */
  take(): Promise<void> {
    return new Promise((resolve) => this.add(resolve))
  }

  readonly #next = () => {
    const work = this.#work.shift()
    // Before it runs: work that throws must not hold up the rest.
    this.#isScheduled = this.#work.length > 0
    if (this.#isScheduled) setImmediate(this.#next)
    work?.()
  }
}
