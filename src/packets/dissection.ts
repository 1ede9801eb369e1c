import { counted } from '../lib/text/counted.ts'
import { hexText, ip4Text, ip6Text, macText, printable } from './addresses.ts'

/** A named part of a frame, with its bytes: a layer, a field of a layer, or a field of a field. */
export interface Field {
  readonly name: string
  /** As text; empty where the name says all. */
  readonly value: string
  /** Index of the first byte in the frame. */
  readonly from: number
  /** Index after the last byte. */
  readonly to: number
  readonly fields: readonly Field[]
}

/** Reads a layer whose first byte is at `at`. `end` is where it ends on the wire, which may be beyond the captured bytes. */
export type Dissector = (frame: Dissection, at: number, end: number) => void

/** Which dissector reads what a layer carries. */
export interface DissectorRegistry {
  readonly etherTypes: Readonly<Record<number, Dissector>>
  readonly ipProtocols: Readonly<Record<number, Dissector>>
  readonly udpPorts: Readonly<Record<number, Dissector>>
  readonly tcpPorts: Readonly<Record<number, Dissector>>
  readonly pppProtocols: Readonly<Record<number, Dissector>>
  readonly ciscoProtocols: Readonly<Record<number, Dissector>>
  readonly ethernet: Dissector
  readonly llc: Dissector
}

/** Layers in one frame: more than any real one has; a frame of nothing but VLAN tags has thousands. */
const maxLayers = 20
/** Fields in the tree of one frame. */
const maxFields = 4000
/** Characters of the summary. */
export const maxInfo = 1000

/** How the number of a field is shown: with its name, with its unit, or by a function. */
type Show = Readonly<Record<number, string>> | string | ((value: number) => string)

/**
 * One frame while it is read: the columns of its summary and, if wanted, its tree. Dissectors state all fields of their layer by
 * `layer(...)?.num(...)`: without a tree `layer` gives undefined, and nothing of the chain is evaluated.
 */
export class Dissection {
  readonly bytes: Uint8Array
  readonly registry: DissectorRegistry
  /** Undefined when only the summary is wanted. */
  readonly layers: DissectedPart[] | undefined
  /** Empty as long as only the addresses of the Ethernet header are known; those are at `macs`. */
  source = ''
  destination = ''
  protocol = ''
  info = ''
  /** Where the Ethernet addresses are; -1 without them. */
  macs = -1
  isSound = true
  /** Time to live or hop limit of the last IP header; -1 before there is one. */
  hops = -1
  #depth = 0
  #fields = 0

  constructor(bytes: Uint8Array, registry: DissectorRegistry, hasTree: boolean) {
    this.bytes = bytes
    this.registry = registry
    this.layers = hasTree ? [] : undefined
  }

  /** Begins a layer of `size` bytes that ends at `end` at the latest; undefined when no tree is wanted. */
  layer(name: string, at: number, size: number, end: number): DissectedPart | undefined {
    if (this.layers === undefined) return undefined
    const part = new DissectedPart(this, name, at, Math.min(at + size, end))
    this.layers.push(part)
    return part
  }

  /** Names the protocol of the layer that begins: from here on the summary is about this layer. */
  is(protocol: string): void {
    this.protocol = protocol
    this.info = ''
  }

  /** Reads the next layer with its dissector. */
  enter(dissector: Dissector, at: number, end: number): void {
    this.#depth += 1
    if (this.#depth > maxLayers) this.fail('Malformed Packet', 'too many layers', at)
    else dissector(this, at, end)
    this.#depth -= 1
  }

  /** Reads a packet that an error message quotes: it is in the tree, and the columns stay. */
  quote(dissector: Dissector, at: number, end: number): void {
    if (this.layers === undefined || at >= end) return
    const { source, destination, protocol, info, isSound, hops } = this
    this.enter(dissector, at, end)
    Object.assign(this, { source, destination, protocol, info, isSound, hops })
  }

  /** Whether `size` bytes of `what` are there. If not, the frame is said to be malformed, or cut by the capture. */
  holds(what: string, at: number, size: number, end: number): boolean {
    if (at + size > end) this.fail('Malformed Packet', what, at)
    else if (at + size > this.bytes.length) this.fail('Packet size limited during capture', what, at)
    else return true
    return false
  }

  /** Says in the summary and in the tree that a layer cannot be read from here. */
  fail(reason: string, what: string, at: number): void {
    this.isSound = false
    this.info += `${this.info === '' ? '' : ' '}[${reason}]`
    this.layer(`[${reason}: ${what}]`, at, this.bytes.length, this.bytes.length)
  }

  /** Bytes that no dissector reads. */
  data(at: number, end: number): void {
    const size = Math.min(end, this.bytes.length) - at
    if (size > 0) this.layer('Data', at, size, end)?.set(counted(size, 'byte'))
  }

  /** False when the tree has as many fields as it may have. */
  takes(): boolean {
    return ++this.#fields <= maxFields
  }
}

/** A layer or field that is being made. Fields that are not within it are left out: the layer then says that it is cut. */
export class DissectedPart implements Field {
  readonly name: string
  value = ''
  readonly from: number
  readonly to: number
  readonly fields: DissectedPart[] = []
  readonly #frame: Dissection

  constructor(frame: Dissection, name: string, from: number, to: number) {
    this.#frame = frame
    this.name = name
    this.from = Math.min(from, frame.bytes.length)
    this.to = Math.max(this.from, Math.min(to, frame.bytes.length))
  }

  set(value: string): this {
    this.value = value
    return this
  }

  /** Adds a field, which can have fields of its own. */
  sub(name: string, at: number, size: number, value: string | (() => string) = ''): DissectedPart | undefined {
    if (at < this.from || at + size > this.to || !this.#frame.takes()) return undefined
    const field = new DissectedPart(this.#frame, name, at, at + size)
    field.value = typeof value === 'string' ? value : value()
    this.fields.push(field)
    return field
  }

  /** A field whose value is made only when its bytes are there. */
  add(name: string, at: number, size: number, value: string | (() => string)): this {
    this.sub(name, at, size, value)
    return this
  }

  /** A big-endian number of 1 to 4 bytes. */
  num(name: string, at: number, size: 1 | 2 | 3 | 4, show?: Show): this {
    return this.add(name, at, size, () => formatValue(uint(this.#frame.bytes, at, size), show))
  }

  /** The bits of a number that `mask` selects. */
  bits(name: string, at: number, size: 1 | 2 | 3 | 4, mask: number, show?: Show): this {
    const shift = 31 - Math.clz32(mask & -mask)
    return this.add(name, at, size, () => formatValue((uint(this.#frame.bytes, at, size) & mask) >>> shift, show))
  }

  /** A number as `0x0800`, with the names of its set bits where they are given, the lowest first. */
  hex(name: string, at: number, size: 1 | 2 | 3 | 4, names?: readonly string[]): this {
    return this.add(name, at, size, () => {
      const text = `0x${hexText(this.#frame.bytes, at, at + size)}`
      if (names === undefined) return text
      const set = flagNames(uint(this.#frame.bytes, at, size), names)
      return set === '' ? text : `${text} (${set})`
    })
  }

  mac(name: string, at: number): this {
    return this.add(name, at, 6, () => macText(this.#frame.bytes, at))
  }

  ip4(name: string, at: number): this {
    return this.add(name, at, 4, () => ip4Text(this.#frame.bytes, at))
  }

  ip6(name: string, at: number): this {
    return this.add(name, at, 16, () => ip6Text(this.#frame.bytes, at))
  }

  text(name: string, at: number, size: number): this {
    return this.add(name, at, size, () => printable(this.#frame.bytes, at, at + size))
  }

  /** Bytes as hexadecimal digits; of many only the first. */
  raw(name: string, at: number, size: number): this {
    return this.add(name, at, size, () => rawText(this.#frame.bytes, at, size))
  }
}

/** At most 32 bytes as hexadecimal digits. */
export const rawText = (bytes: Uint8Array, at: number, size: number): string =>
  hexText(bytes, at, at + Math.min(size, 32)) + (size > 32 ? '...' : '')

function formatValue(value: number, show: Show | undefined): string {
  if (show === undefined) return String(value)
  if (typeof show === 'string') return `${value} ${show}`
  return typeof show === 'function' ? show(value) : `${show[value] ?? 'Unknown'} (${value})`
}

/** The names of the set bits, the lowest bit first. */
export const flagNames = (value: number, names: readonly string[]): string =>
  names.filter((name, bit) => name !== '' && (value >>> bit) & 1).join(', ')

export const u16 = (bytes: Uint8Array, at: number): number => ((bytes[at] as number) << 8) | (bytes[at + 1] as number)

export const u32 = (bytes: Uint8Array, at: number): number =>
  (((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)) >>>
  0

export function uint(bytes: Uint8Array, at: number, size: number): number {
  let value = 0
  for (let index = at; index < at + size; index++) value = (value << 8) | (bytes[index] as number)
  return value >>> 0
}

/** A number as `0x1234`, with at least so many digits. */
export const hex = (value: number, digits = 4): string => `0x${value.toString(16).padStart(digits, '0')}`
