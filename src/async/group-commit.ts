/**
 * Work that one run does for many callers: those that come before a run begins share it, and those that come while one is under
 * way share the next. So a caller's change, made before it asked, is always part of the run that it waits for.
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
    // The callers of the run before were told of its failure.
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
