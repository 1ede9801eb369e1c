import { conflict } from '../../../../src/lib/errors/api-error.ts'

/** The code that clears the table, in block mode. */
const clear = 256
const narrowest = 9
const widest = 16

/** Decompresses the output of compress(1): LZW behind a header of three bytes. 409 on damage, or on more than `maxBytes`. */
export function decompressLzc(data: Uint8Array, maxBytes: number): Buffer {
  const [first, second, flags = 0] = data
  if (data.length < 3 || first !== 0x1f || second !== 0x9d) throw damaged('it has no compress header')
  const maxBits = flags & 0x1f
  if (maxBits < narrowest || maxBits > widest || (flags & 0x60) !== 0) throw damaged('its header is unknown')
  const isBlockMode = (flags & 0x80) !== 0
  const table = new Table(isBlockMode ? clear + 1 : clear, 1 << maxBits)
  const codes = new Codes(data.subarray(3))
  const output = Buffer.alloc(maxBytes)
  let length = 0
  let before: number | undefined
  for (;;) {
    if (table.next >= 1 << codes.width && codes.width < maxBits) codes.changeWidth(codes.width + 1)
    const code = codes.next()
    if (code === undefined) return output.subarray(0, length)
    // Implementations disagree on what follows, and most cannot read their own output.
    if (table.isFull && maxBits === narrowest) throw damaged('a table of 9 bits is full')
    if (isBlockMode && code === clear && before !== undefined) {
      codes.changeWidth(narrowest)
      table.empty()
      before = undefined
      continue
    }
    const isKnown = code < table.next && !(isBlockMode && code === clear)
    // A code may be the next entry of the table: the previous string and its first byte (the KwKwK case of LZW).
    const isOwn = before !== undefined && code === table.next
    if (!(before === undefined ? code < 256 : isKnown || isOwn)) throw damaged('it has an unknown code')
    const source = isKnown ? code : (before ?? 0)
    const end = length + table.lengthOf(source) + (isKnown ? 0 : 1)
    if (end > maxBytes) throw damaged(`it has more than ${maxBytes} bytes`)
    const start = table.write(source, output, length)
    if (!isKnown) output[end - 1] = start
    length = end
    if (before !== undefined) table.add(before, start)
    before = code
  }
}

const damaged = (why: string) => conflict(`The compressed configuration is damaged: ${why}`)

/** Strings by code. Each is another string and a byte. */
class Table {
  readonly #first: number
  readonly #size: number
  readonly #prefixes: Uint16Array
  readonly #bytes: Uint8Array
  readonly #lengths: Uint32Array
  /** The next new code. */
  next: number

  constructor(first: number, size: number) {
    this.#first = first
    this.#size = size
    this.#prefixes = new Uint16Array(size)
    this.#bytes = Uint8Array.from({ length: size }, (_, code) => code)
    this.#lengths = new Uint32Array(size).fill(1)
    this.next = first
  }

  get isFull(): boolean {
    return this.next >= this.#size
  }

  empty(): void {
    this.next = this.#first
  }

  add(prefix: number, byte: number): void {
    if (this.isFull) return
    this.#prefixes[this.next] = prefix
    this.#bytes[this.next] = byte
    this.#lengths[this.next] = this.lengthOf(prefix) + 1
    this.next++
  }

  lengthOf(code: number): number {
    return this.#lengths[code] ?? 0
  }

  /** Writes a string at `offset`, from its last byte on, and returns its first byte. */
  write(code: number, output: Buffer, offset: number): number {
    let rest = code
    for (let at = offset + this.lengthOf(code) - 1; at > offset; at--) {
      output[at] = this.#bytes[rest] ?? 0
      rest = this.#prefixes[rest] ?? 0
    }
    const first = this.#bytes[rest] ?? 0
    output[offset] = first
    return first
  }
}

/** Codes of changing width, lowest bit first. */
class Codes {
  readonly #data: Uint8Array
  width = narrowest
  #bit = 0
  /** Begin of the codes of this width, bits. */
  #start = 0

  constructor(data: Uint8Array) {
    this.#data = data
  }

  /** Undefined at the end. */
  next(): number | undefined {
    if (this.#bit + this.width > this.#data.length * 8) return undefined
    const at = this.#bit >> 3
    const three = (this.#data[at] ?? 0) | ((this.#data[at + 1] ?? 0) << 8) | ((this.#data[at + 2] ?? 0) << 16)
    const code = (three >> (this.#bit & 7)) & ((1 << this.width) - 1)
    this.#bit += this.width
    return code
  }

  /** Skips to the next multiple of eight codes: compress(1) pads the codes of a width to groups of eight. */
  changeWidth(width: number): void {
    const eight = this.width * 8
    this.#bit = this.#start + Math.ceil((this.#bit - this.#start) / eight) * eight
    this.#start = this.#bit
    this.width = width
  }
}
