const lineFeed = 0x0a

/** The last bytes of a console, in a ring. */
export class Scrollback {
  readonly #ring: Buffer
  #end = 0
  #size = 0

  constructor(capacity: number) {
    this.#ring = Buffer.allocUnsafe(capacity)
  }

  push(bytes: Uint8Array): void {
    const capacity = this.#ring.length
    const kept = bytes.length > capacity ? bytes.subarray(bytes.length - capacity) : bytes
    const first = Math.min(kept.length, capacity - this.#end)
    this.#ring.set(kept.subarray(0, first), this.#end)
    this.#ring.set(kept.subarray(first), 0)
    this.#end = (this.#end + kept.length) % capacity
    this.#size = Math.min(this.#size + kept.length, capacity)
  }

  /** A copy of the content, oldest first. */
  read(): Buffer {
    const start = this.#end - this.#size
    if (start >= 0) return Buffer.from(this.#ring.subarray(start, this.#end))
    return Buffer.concat([this.#ring.subarray(start + this.#ring.length), this.#ring.subarray(0, this.#end)])
  }

  /** The last lines. A line end at the end begins no line. */
  lines(count: number): Buffer {
    const bytes = this.read()
    let from = bytes.length
    if (bytes.at(-1) === lineFeed) from -= 1
    for (let left = count; left > 0; left -= 1) {
      const before = from === 0 ? -1 : bytes.lastIndexOf(lineFeed, from - 1)
      if (before === -1) return bytes
      from = before
    }
    return bytes.subarray(from + 1)
  }
}
