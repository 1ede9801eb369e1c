/**
 * Reads of the same key may overlap, and their answers come in any order: an answer is used only if no read that began later has answered before.
 * Keys without a read under way need no memory.
 */
export class ReadOrder<K> {
  #begun = 0
  /** By key: how many reads are under way, and the last one whose answer was used. */
  readonly #reads = new Map<K, { pending: number; used: number }>()

  /** Reads, and calls `use` with the answer unless it is an older one. Rejects as `read` does. */
  async run<T>(key: K, read: () => Promise<T>, use: (answer: T) => void): Promise<void> {
    this.#begun += 1
    const number = this.#begun
    const reads = this.#reads.get(key) ?? { pending: 0, used: 0 }
    this.#reads.set(key, reads)
    reads.pending += 1
    try {
      const answer = await read()
      if (number < reads.used) return
      reads.used = number
      use(answer)
    } finally {
      reads.pending -= 1
      if (reads.pending === 0) this.#reads.delete(key)
    }
  }
}
