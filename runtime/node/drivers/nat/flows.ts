const most = 4096
const keptMs = 300_000

/**
 * Flows that came in through a forwarded port: guests may answer them, whatever their source address. The number of flows is limited; the
 * least recently used is removed first.
 */
export class Flows {
  readonly #used = new Map<string, number>()

  add(key: string, now = performance.now()): void {
    this.#used.delete(key)
    if (this.#used.size >= most) for (const oldest of this.#used.keys()) if (this.#used.delete(oldest)) break
    this.#used.set(key, now)
  }

  /** Whether the flow is known and recent. Marks it as used. */
  has(key: string, now = performance.now()): boolean {
    const used = this.#used.get(key)
    if (used === undefined || now - used > keptMs) return false
    this.add(key, now)
    return true
  }
}
