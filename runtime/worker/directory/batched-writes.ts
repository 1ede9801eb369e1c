/** How long a write waits for others, ms. */
const waitMs = 50

/**
 * Joins writes of many calls of an object into one transaction: each transaction waits for the disk, and blocks the object meanwhile. Each
 * write sets a whole row, which `key` names: the last one counts.
 */
export class BatchedWrites {
  readonly #waiting = new Map<string, () => unknown>()
  #made: Promise<void> | undefined

  /** Resolves when the write, or a later one of the same row, was made; rejects when any write of the transaction fails. */
  add(key: string, write: () => unknown): Promise<void> {
    this.#waiting.set(key, write)
    this.#made ??= new Promise((resolve) => setTimeout(resolve, waitMs)).then(() => this.#make())
    return this.#made
  }

  /** Makes a write at once. A waiting write of that row is dropped. */
  now(key: string, write: () => unknown): void {
    this.#waiting.delete(key)
    write()
  }

  #make(): void {
    this.#made = undefined
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const write of waiting) write()
  }
}
