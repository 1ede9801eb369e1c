/** Writes values in XDR (RFC 4506), in units of four bytes. */
export class XdrWriter {
  readonly #parts: Buffer[] = []

  int(value: number): this {
    const bytes = Buffer.alloc(4)
    bytes.writeInt32BE(value)
    return this.#add(bytes)
  }

  uint(value: number): this {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32BE(value)
    return this.#add(bytes)
  }

  string(text: string): this {
    const content = Buffer.from(text)
    const padding = Buffer.alloc(-content.length & 3)
    return this.uint(content.length).#add(content).#add(padding)
  }

  /** An optional string. */
  maybeString(text: string | undefined): this {
    return text === undefined ? this.uint(0) : this.uint(1).string(text)
  }

  /** Bytes of a fixed length, which is a multiple of four. */
  fixed(bytes: Buffer): this {
    return this.#add(bytes)
  }

  get bytes(): Buffer {
    return Buffer.concat(this.#parts)
  }

  #add(bytes: Buffer): this {
    this.#parts.push(bytes)
    return this
  }
}

/** Reads values in XDR. Throws a RangeError at the end of the bytes. */
export class XdrReader {
  readonly #bytes: Buffer
  #at = 0

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  int(): number {
    return this.fixed(4).readInt32BE()
  }

  uint(): number {
    return this.fixed(4).readUInt32BE()
  }

  hyper(): bigint {
    return this.fixed(8).readBigUInt64BE()
  }

  string(): string {
    const length = this.uint()
    const text = this.fixed(length).toString()
    this.fixed(-length & 3)
    return text
  }

  /** An optional value. */
  maybe<T>(read: (reader: this) => T): T | undefined {
    return this.uint() === 0 ? undefined : read(this)
  }

  /** An array. Each element has at least one byte, so a length beyond the number of bytes is invalid. */
  array<T>(read: (reader: this) => T): T[] {
    const length = this.uint()
    if (length > this.#bytes.length)
      throw new RangeError(`an array of ${length} elements in ${this.#bytes.length} bytes`)
    return Array.from({ length }, () => read(this))
  }

  fixed(length: number): Buffer {
    const end = this.#at + length
    if (end > this.#bytes.length)
      throw new RangeError(`${length} bytes at ${this.#at}, but only ${this.#bytes.length} in all`)
    const bytes = this.#bytes.subarray(this.#at, end)
    this.#at = end
    return bytes
  }
}
