import { ignore } from './ignore.ts'

/** Work that is done one after the other, in the order in which it was asked for. What fails does not hinder what follows. */
export class SerialQueue {
  #last: Promise<unknown> = Promise.resolve()

  run<T>(work: () => Promise<T> | T): Promise<T> {
    const result = this.#last.then(work)
    this.#last = result.catch(ignore('who asked for the work is told'))
    return result
  }

  /** Resolves when what was asked for so far is done. */
  async idle(): Promise<void> {
    await this.#last
  }
}
