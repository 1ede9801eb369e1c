/**
 * Shares one thread between pcs: one turn, then whatever the system has for the process, then the next turn, in the order in
 * which they were asked for. A pc that has more to do asks again, behind all others.
 *
 * Work always runs in a microtask: the thread may be taken out of it (keeper/watchdog.ts), and the queues of timers and immediates
 * of Node do not survive that in a callback of theirs.
 */
export class TurnScheduler {
  readonly #turns: { readonly owner: number; readonly work: () => void }[] = []
  readonly #began: (owner: number) => void
  #isScheduled = false

  /** `began` is told the number of the pc that a turn is of, before the turn. */
  constructor(began: (owner: number) => void) {
    this.#began = began
  }

  /** Runs a piece of work, of about a millisecond at most, when it is its turn. */
  add(owner: number, work: () => void): void {
    this.#turns.push({ owner, work })
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#next)
  }

  /** Resolves when it is the caller's turn. */
  take(owner: number): Promise<void> {
    return new Promise((resolve) => this.add(owner, resolve))
  }

  /** Runs a piece of work in a turn that begins after a time, ms; returns a function that cancels it. */
  startTimer(owner: number, work: () => void, ms: number): () => void {
    const timer = setTimeout(() => this.#run(owner, work), ms)
    return () => clearTimeout(timer)
  }

  readonly #next = () => {
    const turn = this.#turns.shift()
    this.#isScheduled = this.#turns.length > 0
    if (this.#isScheduled) setImmediate(this.#next)
    if (turn !== undefined) this.#run(turn.owner, turn.work)
  }

  #run(owner: number, work: () => void): void {
    this.#began(owner)
    void Promise.resolve().then(work)
  }
}
