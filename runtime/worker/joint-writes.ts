/** How long a write waits for others, ms. */
const waitMs = 50

/**
 * Writes of many calls of an object in one transaction: each transaction waits for the disk, and holds up all that the object does. Each
 * writes a whole row, which `key` names: the last one counts.
 */
export class JointWrites {
  readonly #waiting = new Map<string, () => unknown>()
  #made: Promise<void> | undefined

  /** Resolves when the write was made, or a later one of the same row; rejects when one of those that wait with it failed. */
  add(key: string, write: () => unknown): Promise<void> {
    this.#waiting.set(key, write)
    this.#made ??= new Promise((resolve) => setTimeout(resolve, waitMs)).then(() => this.#make())
    return this.#made
  }

  /** Makes a write at once, in place of what waits for that row. */
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
