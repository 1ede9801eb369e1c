/** Runs asynchronous operations on one key one after the other; different keys do not wait for each other. */
export class KeyedMutex {
  readonly #tails = new Map<string, Promise<unknown>>()

  run<T>(key: string, operation: () => Promise<T>): Promise<T> {
    const result = (this.#tails.get(key) ?? Promise.resolve()).then(operation, operation)
    const tail = result.then(ignore, ignore)
    this.#tails.set(key, tail)
    void tail.then(() => {
      if (this.#tails.get(key) === tail) this.#tails.delete(key)
    })
    return result
  }

  /** The same on several keys together. All callers take them in one order, so that none waits for another that waits for it. */
  runAll<T>(keys: Iterable<string>, operation: () => Promise<T>): Promise<T> {
    const sorted = [...new Set(keys)].sort()
    return sorted.reduceRight((inner, key) => () => this.run(key, inner), operation)()
  }

  /** Whether an operation runs or waits on the key. */
  isBusy(key: string): boolean {
    return this.#tails.has(key)
  }
}

const ignore = () => {}
