import { ignore } from './ignore.ts'

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

  async exclusive<T>(operation: () => Promise<T>): Promise<T> {
    while (this.#exclusive !== undefined) await this.#exclusive
    const result = Promise.all(this.#running).then(operation)
    const over = result.then(nothing, ignore('the caller gets the failure'))
    this.#exclusive = over
    void over.then(() => {
      this.#exclusive = undefined
    })
    return result
  }
}

const nothing = (): void => {}
