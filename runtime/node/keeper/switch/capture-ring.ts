import { copyBytes } from './copy.ts'

const headBytes = 64
const ringBytes = 8 << 20
const recordHeader = 16

/** Places of 32-bit words in the head of the ring. */
const written = 0
const read = 1

/** A ring of pcap records between the packet path, which writes, and whoever stores them, which reads. */
export const newRing = (): SharedArrayBuffer => new SharedArrayBuffer(headBytes + ringBytes)

/**
 * The writing side. Never waits: what does not fit is left out. Positions count bytes and wrap at 2^32, of which the size
 * of the ring is a divisor.
 */
export class RingWriter {
  readonly #positions: Uint32Array
  readonly #bytes: Uint8Array
  readonly #header = new Uint8Array(recordHeader)
  readonly #headerView = new DataView(this.#header.buffer)
  /** Position up to which the reader was told. */
  #told = 0

  constructor(ring: SharedArrayBuffer) {
    this.#positions = new Uint32Array(ring, 0, 2)
    this.#bytes = new Uint8Array(ring, headBytes)
    this.#told = Atomics.load(this.#positions, written)
  }

  /** Appends one frame; false when there is no room. */
  append(frame: Uint8Array, offset: number, length: number, seconds: number, micros: number): boolean {
    const head = this.#positions[written] as number
    const used = (head - Atomics.load(this.#positions, read)) >>> 0
    const needed = recordHeader + length
    if (used + needed > ringBytes) return false
    const view = this.#headerView
    view.setUint32(0, seconds, true)
    view.setUint32(4, micros, true)
    view.setUint32(8, length, true)
    view.setUint32(12, length, true)
    this.#put(head % ringBytes, this.#header, 0, recordHeader)
    this.#put((head + recordHeader) % ringBytes, frame, offset, length)
    // Stored last: the reader never sees half a record.
    Atomics.store(this.#positions, written, (head + needed) >>> 0)
    return true
  }

  /** Bytes that the reader was not told of. */
  get untold(): number {
    return ((this.#positions[written] as number) - this.#told) >>> 0
  }

  told(): void {
    this.#told = this.#positions[written] as number
  }

  #put(place: number, from: Uint8Array, offset: number, length: number): void {
    const first = Math.min(length, ringBytes - place)
    copyBytes(from, offset, this.#bytes, place, first)
    if (first < length) copyBytes(from, offset + first, this.#bytes, 0, length - first)
  }
}

/** The reading side. */
export class RingReader {
  readonly #positions: Uint32Array
  readonly #bytes: Uint8Array

  constructor(ring: SharedArrayBuffer) {
    this.#positions = new Uint32Array(ring, 0, 2)
    this.#bytes = new Uint8Array(ring, headBytes)
  }

  /** What is there now: whole records, in one or two pieces that are valid until `consume`. */
  pieces(): Uint8Array[] {
    const head = Atomics.load(this.#positions, written)
    const tail = this.#positions[read] as number
    const length = (head - tail) >>> 0
    if (length === 0) return []
    const place = tail % ringBytes
    const first = Math.min(length, ringBytes - place)
    const pieces = [this.#bytes.subarray(place, place + first)]
    if (first < length) pieces.push(this.#bytes.subarray(0, length - first))
    return pieces
  }

  consume(length: number): void {
    Atomics.store(this.#positions, read, ((this.#positions[read] as number) + length) >>> 0)
  }
}
