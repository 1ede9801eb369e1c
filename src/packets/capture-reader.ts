import type { Captured } from './decode.ts'
import type { CaptureInterface } from './pcapng.ts'
import { block, byteOrderMagic, maxInterfaces, option, shortText } from './pcapng-format.ts'

/** A frame of a capture. Its bytes are not copied when one piece of the stream had all of them. */
export interface CapturedFrame extends Captured {
  /** When it passed: seconds since 1970, and nanoseconds in that second. */
  readonly seconds: number
  readonly nanos: number
  /** Where it passed, of `interfaces` of the reader; 0 in classic pcap. */
  readonly interfaceNumber: number
}

/** No frame is longer: a longer record means a damaged stream. */
const longestRecord = 1 << 20
const maxNotes = 1000
const fileHeader = 24
const recordHeader = 16

interface Interface {
  readonly name: string
  readonly linkType: number
  readonly snapLength: number
  /** Units of time in a second. */
  readonly perSecond: bigint
}

/**
 * Reads a capture that comes in pieces of any size: classic pcap in either byte order with micro- or nanoseconds, or pcapng
 * (draft-ietf-opsawg-pcapng). What it keeps between two pieces is at most one record.
 */
export class CaptureReader {
  /** The link type, once the header of the capture has come; of the first interface in pcapng. */
  linkType: number | undefined
  /**
   * Frames that were lost on the way here: classic pcap reports them by records without bytes (`losses` of a capture), pcapng in statistics
   * of its interfaces.
   */
  lost = 0
  /** Comments at the statistics of interfaces: what happened to a link, after its name. */
  readonly notes: string[] = []
  /** The bytes that the last `push` has read: the header and whole records, with those that were kept before. */
  whole: Uint8Array = new Uint8Array(0)
  #pending: Uint8Array = new Uint8Array(0)
  #read: ((view: DataView, bytes: Uint8Array, at: number, frames: CapturedFrame[]) => number) | undefined
  #isLittle = true
  #nanosPerUnit = 1000
  #interfaces: Interface[] = []
  #lostAt: number[] = []

  /** The interfaces of a section of pcapng, by their numbers. */
  get interfaces(): readonly CaptureInterface[] {
    return this.#interfaces
  }

  /** The frames that are whole now. Throws a TypeError for a damaged capture, or other data; the reader cannot be used after it. */
  push(piece: Uint8Array): CapturedFrame[] {
    let bytes = piece
    if (this.#pending.length > 0) {
      bytes = new Uint8Array(this.#pending.length + piece.length)
      bytes.set(this.#pending)
      bytes.set(piece, this.#pending.length)
    }
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    const frames: CapturedFrame[] = []
    let at = 0
    for (;;) {
      const next = (this.#read ?? this.#begin)(view, bytes, at, frames)
      if (next === at) break
      at = next
    }
    this.whole = bytes.subarray(0, at)
    this.#pending = bytes.slice(at)
    return frames
  }

  /** Reads the header; these functions give the offset up to which they have read. */
  readonly #begin = (view: DataView, bytes: Uint8Array, at: number, frames: CapturedFrame[]): number => {
    if (bytes.length < 4) return at
    if (view.getUint32(0) === block.section) {
      this.#read = this.#block
      return this.#block(view, bytes, at, frames)
    }
    const found = magics[view.getUint32(0)]
    if (found === undefined) throw new TypeError('this is neither pcap nor pcapng')
    if (bytes.length < fileHeader) return at
    ;[this.#isLittle, this.#nanosPerUnit] = found
    // The upper bits are about frame check sequences.
    this.linkType = view.getUint32(20, this.#isLittle) & 0xffff
    this.#read = this.#record
    return fileHeader
  }

  readonly #record = (view: DataView, bytes: Uint8Array, at: number, frames: CapturedFrame[]): number => {
    if (at + recordHeader > bytes.length) return at
    const isLittle = this.#isLittle
    const size = view.getUint32(at + 8, isLittle)
    if (size > longestRecord) throw new TypeError('the capture holds a record that is too long')
    const from = at + recordHeader
    if (from + size > bytes.length) return at
    const length = view.getUint32(at + 12, isLittle)
    if (size === 0 && length > 0) {
      this.lost += length
      return from
    }
    frames.push({
      seconds: view.getUint32(at, isLittle),
      nanos: view.getUint32(at + 4, isLittle) * this.#nanosPerUnit,
      length,
      linkType: this.linkType as number,
      interfaceNumber: 0,
      bytes: bytes.subarray(from, from + size),
    })
    return from + size
  }

  readonly #block = (view: DataView, bytes: Uint8Array, at: number, frames: CapturedFrame[]): number => {
    if (at + 12 > bytes.length) return at
    const isSection = view.getUint32(at) === block.section
    // Each section says its own byte order, and counts its own interfaces.
    if (isSection) this.#section(view, at)
    const isLittle = this.#isLittle
    const size = view.getUint32(at + 4, isLittle)
    if (size < 12 || size % 4 !== 0 || size > longestRecord + 256)
      throw new TypeError(`the capture holds a block of ${size} bytes`)
    if (at + size > bytes.length) return at
    if (isSection) [this.#interfaces, this.#lostAt] = [[], []]
    else this.#body(view.getUint32(at, isLittle), bytes.subarray(at + 8, at + size - 4), frames)
    return at + size
  }

  #section(view: DataView, at: number): void {
    const magic = [true, false].find((isLittle) => view.getUint32(at + 8, isLittle) === byteOrderMagic)
    if (magic === undefined) throw new TypeError('a section of the capture has no byte order')
    this.#isLittle = magic
  }

  #body(type: number, body: Uint8Array, frames: CapturedFrame[]): void {
    const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
    const isLittle = this.#isLittle
    const needs = { [block.interface]: 8, [block.simple]: 4, [block.statistics]: 12, [block.packet]: 20 }[type]
    if (needs === undefined) return
    if (body.length < needs) throw new TypeError('the capture holds a block that is too short')
    if (type === block.interface) {
      if (this.#interfaces.length === maxInterfaces)
        throw new TypeError(`the capture has more than ${maxInterfaces} interfaces`)
      const linkType = view.getUint16(0, isLittle)
      this.linkType ??= linkType
      const snapLength = view.getUint32(4, isLittle) || longestRecord
      const options = [...optionsOf(view, 8, isLittle)]
      const name = textOf(options, option.interfaceName) ?? ''
      this.#interfaces.push({ name, linkType, snapLength, perSecond: resolution(options) })
      return
    }
    const interfaceNumber = type === block.simple ? 0 : view.getUint32(0, isLittle)
    const it = this.#interfaces[interfaceNumber]
    if (it === undefined) throw new TypeError('the capture holds a frame of an unknown interface')
    if (type === block.statistics) return this.#statistics(interfaceNumber, [...optionsOf(view, 12, isLittle)])
    const { linkType, snapLength, perSecond } = it
    if (type === block.simple) {
      const length = view.getUint32(0, isLittle)
      const bytes = body.subarray(4, 4 + Math.min(length, snapLength))
      frames.push({ seconds: 0, nanos: 0, length, linkType, interfaceNumber, bytes })
      return
    }
    const size = view.getUint32(12, isLittle)
    if (20 + size > body.length) throw new TypeError('the capture holds a frame that is longer than its block')
    const units = (BigInt(view.getUint32(4, isLittle)) << 32n) | BigInt(view.getUint32(8, isLittle))
    frames.push({
      seconds: Number(units / perSecond),
      nanos: Number(((units % perSecond) * 1_000_000_000n) / perSecond),
      length: view.getUint32(16, isLittle),
      linkType,
      interfaceNumber,
      bytes: body.subarray(20, 20 + size),
    })
  }

  #statistics(interfaceNumber: number, options: readonly Option[]): void {
    const drops = options.find(({ code, value }) => code === option.interfaceDrops && value.byteLength === 8)
    if (drops !== undefined) {
      const lost = Number(drops.value.getBigUint64(0, drops.isLittle))
      this.lost += Math.max(0, lost - (this.#lostAt[interfaceNumber] ?? 0))
      this.#lostAt[interfaceNumber] = lost
    }
    const comment = textOf(options, option.comment)
    if (comment !== undefined && this.notes.length < maxNotes)
      this.notes.push(`${this.#interfaces[interfaceNumber]?.name ?? ''}: ${comment}`)
  }
}

/** The first four bytes of classic pcap, with byte order and nanoseconds in a unit (tcpdump.org, pcap-savefile(5)). */
const magics: Readonly<Record<number, readonly [isLittle: boolean, nanosPerUnit: number]>> = {
  2712847316: [false, 1000], // a1b2c3d4
  3569595041: [true, 1000], // d4c3b2a1
  2712812621: [false, 1], // a1b23c4d
  1295823521: [true, 1], // 4d3cb2a1
}

interface Option {
  readonly code: number
  readonly value: DataView
  readonly isLittle: boolean
}

/** The options at the end of a block (draft, 3.5). */
function* optionsOf(view: DataView, from: number, isLittle: boolean): Generator<Option> {
  for (let at = from; at + 4 <= view.byteLength; ) {
    const code = view.getUint16(at, isLittle)
    const size = view.getUint16(at + 2, isLittle)
    if (code === option.end || at + 4 + size > view.byteLength) return
    yield { code, value: new DataView(view.buffer, view.byteOffset + at + 4, size), isLittle }
    at += 4 + size + ((4 - (size % 4)) % 4)
  }
}

function textOf(options: readonly Option[], wanted: number): string | undefined {
  const found = options.find(({ code }) => code === wanted)
  if (found === undefined) return undefined
  const { buffer, byteOffset, byteLength } = found.value
  return new TextDecoder().decode(shortText(new Uint8Array(buffer, byteOffset, byteLength)))
}

/** The option if_tsresol: a power of ten, or of two with the first bit set; microseconds without it. */
function resolution(options: readonly Option[]): bigint {
  const found = options.find(({ code, value }) => code === option.resolution && value.byteLength === 1)
  if (found === undefined) return 1_000_000n
  const value = found.value.getUint8(0)
  return value & 0x80 ? 2n ** BigInt(value & 0x7f) : 10n ** BigInt(value)
}
