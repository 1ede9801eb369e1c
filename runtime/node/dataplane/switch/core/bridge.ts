import type { BridgePortSpec, BridgeSpec } from '../../../keeper/protocol/protocol.ts'
import { copyBytes } from './copy.ts'
import { MacTable, macText } from './mac-table.ts'

/** EtherType of a customer tag (IEEE 802.1Q). */
const dot1q = 0x8100
const addressBytes = 12
const tagBytes = 4
/** Time in which moves of addresses are counted, ms; the number from which they are reported, and that from which frames are dropped. */
const windowMs = 1000
const tellMoves = 16
const dropMoves = 64
/** Least time between two reports of a loop, ms. */
const reportMs = 10_000

/** Between the two ports of a pair. */
export const pairDistance = 2048

/** Where a frame goes: to one port (a number from 0), to all of its VLAN, or nowhere. */
export const flood = -1
export const drop = -2

/** A port of a bridge, as far as its path has it; `End`: what the path sends to. */
export interface BridgePort<End> {
  readonly number: number
  readonly spec: BridgePortSpec
  readonly end: End | null
}

/** An address that moves between ports all the time: the frames go in a circle. */
export interface Loop {
  readonly mac: string
  readonly vlan: number
  readonly port_numbers: readonly [number, number]
}

/**
 * The decisions of one switch or hub: VLANs, learning and loops. The path moves the frames. Members without `#` hold what was found
 * of the last frame, so that a frame needs no object.
 */
export class Bridge<End> {
  readonly #table = new MacTable()
  readonly #ends = new Map<number, End>()
  #ports = new Map<number, BridgePort<End>>()
  #forwards: BridgeSpec['forwards'] = 'all'
  #moves = 0
  #windowAt = Number.NEGATIVE_INFINITY
  #reportedAt = Number.NEGATIVE_INFINITY
  readonly #looped: (loop: Loop) => void
  /** Whether it runs: a stopped one forwards nothing. */
  isRunning = false
  #isForwarding = false
  vlan = 0
  /** The tags of the frame, each with its EtherType; 0 for none. */
  outerTag = 0
  innerTag = 0

  /** `looped` is called at most every ten seconds. */
  constructor(looped: (loop: Loop) => void) {
    this.#looped = looped
  }

  /** Has ports and settings from now on; null: it stops. Addresses of ports that changed are forgotten. */
  configure(spec: BridgeSpec | null): void {
    this.isRunning = spec !== null
    const before = this.#ports
    this.#forwards = spec?.forwards ?? 'all'
    this.#table.ageingMs = (spec?.ageing_s ?? 0) * 1000
    this.#ports = new Map(
      spec?.ports.map((port) => {
        const { port_number: number } = port
        return [number, { number, spec: port, end: this.#ends.get(number) ?? null }]
      }),
    )
    this.#table.forget((port) => {
      const [one, other] = [before.get(port)?.spec, this.#ports.get(port)?.spec]
      return one === undefined || other === undefined || one.mode !== other.mode || one.vlan !== other.vlan
    })
  }

  attach(port: number, end: End): void {
    this.#ends.set(port, end)
    this.#connect(port, end)
  }

  detach(port: number): void {
    this.#ends.delete(port)
    this.#connect(port, null)
    this.#table.forget((it) => it === port)
  }

  /** Whether a frame is being forwarded: one that comes back meanwhile goes in a circle, but for one of another pair. */
  get isBusy(): boolean {
    return this.#isForwarding && this.#forwards !== 'paired'
  }

  set isBusy(is: boolean) {
    this.#isForwarding = is
  }

  get isUnused(): boolean {
    return !this.isRunning && this.#ends.size === 0
  }

  /** Its ports that something may be linked to. */
  ports(): IterableIterator<BridgePort<End>> {
    return this.#ports.values()
  }

  port(number: number): BridgePort<End> | undefined {
    return this.#ports.get(number)
  }

  entries(now: number) {
    return this.#table.entries(now)
  }

  clear(): void {
    this.#table.clear()
  }

  /** Decides on a frame of a port, learns its source, and sets `vlan` and the tags. */
  route(from: BridgePort<End>, view: DataView, offset: number, length: number, now: number): number {
    this.outerTag = 0
    this.innerTag = 0
    if (this.#forwards === 'all') return flood
    if (this.#forwards === 'paired') return from.number ^ pairDistance
    if (length < addressBytes + 2 || !this.#classify(from.spec, view, offset, length)) return drop
    const high = view.getUint32(offset + 6)
    const low = ((view.getUint16(offset + 10) << 16) | this.vlan) >>> 0
    // A group address is no source.
    if ((high & 0x01000000) === 0 && !this.#learn(high, low, from.number, now)) return drop
    const to = view.getUint32(offset)
    if ((to & 0x01000000) !== 0) return flood
    const port = this.#table.find(to, ((view.getUint16(offset + 4) << 16) | this.vlan) >>> 0, now)
    return port === from.number ? drop : port < 0 ? flood : port
  }

  /** Whether frames of a VLAN leave at a port. */
  carries({ spec }: BridgePort<End>, vlan: number): boolean {
    return this.#forwards !== 'learned' || spec.mode !== 'access' || spec.vlan === vlan
  }

  /** The frame came back to this bridge while it was forwarded. */
  foundCircle(view: DataView, offset: number, port: number, now: number): void {
    this.#report(view.getUint32(offset + 6), view.getUint16(offset + 10) << 16, port, port, now)
  }

  #connect(number: number, end: End | null): void {
    const port = this.#ports.get(number)
    if (port !== undefined) this.#ports.set(number, { ...port, end })
  }

  /** Sets the VLAN and the tags of a frame; false for one that the port does not take. */
  #classify({ mode, vlan, ethertype }: BridgePortSpec, view: DataView, offset: number, length: number): boolean {
    this.vlan = vlan
    const type = view.getUint16(offset + addressBytes)
    const isTagged = length >= addressBytes + tagBytes + 2
    if (mode === 'qinq') {
      if (type !== ethertype || !isTagged || (view.getUint16(offset + 14) & 0xfff) !== vlan) return false
      this.outerTag = view.getUint32(offset + addressBytes)
      this.vlan = 1
      if (length < addressBytes + 2 * tagBytes + 2 || view.getUint16(offset + 16) !== dot1q) return true
      return this.#takeTag(view.getUint32(offset + 16))
    }
    if (type !== dot1q || !isTagged) return true
    if (!this.#takeTag(view.getUint32(offset + addressBytes))) return false
    return mode === 'dot1q' || this.vlan === vlan
  }

  /** VLAN 0 is a priority without a VLAN (IEEE 802.1Q, 9.6), 4095 is reserved. */
  #takeTag(tag: number): boolean {
    this.innerTag = tag
    const vlan = tag & 0xfff
    if (vlan !== 0) this.vlan = vlan
    return vlan !== 0xfff
  }

  /** Whether the frame may pass: not when addresses move all the time. */
  #learn(high: number, low: number, port: number, now: number): boolean {
    const before = this.#table.find(high, low, now)
    if (before >= 0 && before !== port) {
      if (now - this.#windowAt >= windowMs) {
        this.#windowAt = now
        this.#moves = 0
      }
      this.#moves += 1
      if (this.#moves >= tellMoves) this.#report(high, low, before, port, now)
      if (this.#moves >= dropMoves) return false
    }
    this.#table.learn(high, low, port, now)
    return true
  }

  #report(high: number, low: number, one: number, other: number, now: number): void {
    if (now - this.#reportedAt < reportMs) return
    this.#reportedAt = now
    this.#looped({ mac: macText(high, low >>> 0), vlan: this.vlan, port_numbers: [one, other] })
  }
}

/** The outer tag that a frame of a VLAN leaves a port with, its EtherType included; 0: none. `tags`: those that it came with. */
export const outerTagAt = ({ mode, vlan, ethertype }: BridgePortSpec, tags: number): number =>
  mode === 'qinq' ? ((ethertype << 16) | (tags & 0xf000) | vlan) >>> 0 : 0
/** The inner, or only one. */
export const innerTagAt = ({ mode, vlan: native }: BridgePortSpec, vlan: number, tags: number): number =>
  mode === 'access' || (mode === 'dot1q' && vlan === native) ? 0 : ((dot1q << 16) | (tags & 0xf000) | vlan) >>> 0

/** How much longer a frame gets. */
export const tagBytesOf = (outer: number, inner: number): number =>
  (outer === 0 ? 0 : tagBytes) + (inner === 0 ? 0 : tagBytes)

/** Copies a frame with other tags than its own, which take `before` bytes; returns its new length. */
export function retag(
  frame: Uint8Array,
  offset: number,
  length: number,
  before: number,
  to: { readonly bytes: Uint8Array; readonly view: DataView },
  start: number,
  outer: number,
  inner: number,
): number {
  copyBytes(frame, offset, to.bytes, start, addressBytes)
  let at = start + addressBytes
  for (let index = 0; index < 2; index++) {
    const tag = index === 0 ? outer : inner
    if (tag === 0) continue
    to.view.setUint32(at, tag)
    at += tagBytes
  }
  const rest = addressBytes + before
  copyBytes(frame, offset + rest, to.bytes, at, length - rest)
  return at - start + length - rest
}
