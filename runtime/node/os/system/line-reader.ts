/** Cuts the chunks of a byte stream into lines of UTF-8. Throws on an incomplete line longer than `maxBytes`. */
export class LineReader {
  readonly #maxBytes: number
  #rest: Buffer = Buffer.alloc(0)

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  push(bytes: Buffer): string[] {
    let buffer = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const lines: string[] = []
    for (let end = buffer.indexOf(10); end >= 0; end = buffer.indexOf(10)) {
      lines.push(buffer.toString('utf8', 0, end))
      buffer = buffer.subarray(end + 1)
    }
    if (buffer.length > this.#maxBytes) throw new Error(`a line of more than ${this.#maxBytes} bytes`)
    this.#rest = buffer
    return lines
  }

  /** The bytes after the last complete line. */
  get rest(): Buffer {
    return this.#rest
  }
}
