/**
 * Runs work once for many callers. Callers that arrive during a run share the next run, so that the run that a caller awaits always
 * begins after the call.
 */
export class GroupCommit {
  readonly #running = new Map<string, Promise<void>>()
  readonly #next = new Map<string, Promise<void>>()

  /** Runs `work` for the callers of one key; different keys do not wait for each other. */
  run(key: string, work: () => Promise<void>): Promise<void> {
    const waiting = this.#next.get(key)
    if (waiting !== undefined) return waiting
    const running = this.#running.get(key)
    if (running === undefined) return this.#begin(key, work)
    const begin = () => {
      this.#next.delete(key)
      return this.#begin(key, work)
    }
    // The callers of the previous run handle its failure.
    const next = running.then(begin, begin)
    this.#next.set(key, next)
    return next
  }

  #begin(key: string, work: () => Promise<void>): Promise<void> {
    const run = work().finally(() => {
      if (this.#running.get(key) === run) this.#running.delete(key)
    })
    this.#running.set(key, run)
    return run
  }
}
