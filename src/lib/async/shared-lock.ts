import { ignore } from './ignore.ts'
import { withTimeout } from './timeout.ts'

/**
 * Shared operations run together, an exclusive one alone: it waits for those that run, and those that come later wait for it. An operation must
 * not begin another one of the same lock.
 */
export class SharedLock {
  readonly #running = new Set<Promise<unknown>>()
  #exclusive: Promise<unknown> | undefined

  async shared<T>(operation: () => Promise<T>): Promise<T> {
    while (this.#exclusive !== undefined) await this.#exclusive
    const result = operation()
    const over = result.then(nothing, ignore('the caller gets the failure'))
    this.#running.add(over)
    void over.then(() => this.#running.delete(over))
    return result
  }

  /** When those that run take longer than `waitMs`, `late` is called: unless it throws, the operation goes on beside them. */
  async exclusive<T>(operation: () => Promise<T>, { waitMs, late }: { waitMs: number; late: () => void }): Promise<T> {
    while (this.#exclusive !== undefined) await this.#exclusive
    const result = withTimeout(Promise.all(this.#running), waitMs, late).then(operation)
    const over = result.then(nothing, ignore('the caller gets the failure'))
    this.#exclusive = over
    void over.then(() => {
      this.#exclusive = undefined
    })
    return result
  }
}

const nothing = (): void => {}
