import { ignore } from './ignore.ts'

/** Runs operations one after the other, in the order of the calls. A failed operation does not stop the queue. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  run<T>(work: () => Promise<T> | T): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(ignore('the caller gets the error'))
    return result
  }

  /** Resolves when all operations of the queue have ended. */
  async idle(): Promise<void> {
    await this.#last
  }
}
