const most = 4096
const keptMs = 300_000

/**
 * What was begun by the other side, through a forwarded port: guests may answer, whatever address that came from. Bounded: the flow that
 * was used the longest ago goes first.
 */
export class Flows {
  readonly #used = new Map<string, number>()

  add(key: string, now = performance.now()): void {
    this.#used.delete(key)
    if (this.#used.size >= most) for (const oldest of this.#used.keys()) if (this.#used.delete(oldest)) break
    this.#used.set(key, now)
  }

  /** Whether it was begun, and not long ago; it then counts as used. */
  has(key: string, now = performance.now()): boolean {
    const used = this.#used.get(key)
    if (used === undefined || now - used > keptMs) return false
    this.add(key, now)
    return true
  }
}
