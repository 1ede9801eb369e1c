/**
 * Shares one thread between pcs: one turn, then the other events of the process, then the next turn, in the order of the requests.
 * A pc with more work requests another turn, behind all others. Work always runs in a microtask: the watchdog may terminate it
 * (keeper/process/watchdog.ts), and the timer and immediate queues of Node do not survive that in a callback of theirs.
 */
export class TurnScheduler {
  readonly #turns: { readonly owner: number; readonly work: () => void }[] = []
  readonly #began: (owner: number) => void
  #isScheduled = false

  /** `began` is called with the owner before each turn. */
  constructor(began: (owner: number) => void) {
    this.#began = began
  }

  /** Schedules a piece of work of at most about 1 ms. */
  add(owner: number, work: () => void): void {
    this.#turns.push({ owner, work })
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#next)
  }

  /** Resolves in a turn of the owner. */
  acquire(owner: number): Promise<void> {
    return new Promise((resolve) => this.add(owner, resolve))
  }

  /** Schedules work in a turn after `ms`; returns a function that cancels it. */
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
