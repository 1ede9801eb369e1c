import { KeeperError } from '../../keeper/protocol/error.ts'
import type { BridgeSpec, MacEntry } from '../../keeper/protocol/protocol.ts'
import { Bridge, drop, flood, innerTagAt, outerTagAt, retag, tagBytesOf } from '../switch/core/bridge.ts'
import { at, type Counters, countRefusal } from '../switch/core/counters.ts'
import { DelayQueue } from '../switch/core/delay-queue.ts'
import type { Hop } from '../switch/core/hop.ts'
import type {
  BridgeEnd,
  EndSpec,
  LaneSpec,
  OpenedEnd,
  PacketPath,
  PathListener,
  PortImpairment,
  UdpEnd,
} from '../switch/core/path.ts'
import { isProbe } from '../switch/core/probe-frame.ts'
import { isUnimpaired, type Lane, passHops, Rows } from '../switch/core/rows.ts'
import { WallClock } from '../switch/core/wall-clock.ts'
import { UdpSocket } from './udp-socket.ts'

interface End {
  readonly id: number
  readonly spec: UdpEnd | BridgeEnd
  readonly send: (frame: Buffer, now: number) => void
  readonly close: () => Promise<void> | void
  lane: Lane<End> | null
}

/** Frames that are sent for a received one at most: a loop through several switches would send millions. */
const maxSent = 65_536

/** The packet path without FFI or Linux: node:dgram, one frame in a call, UDP only. */
export class PortablePath implements PacketPath {
  readonly name = 'portable'
  readonly #ends = new Map<number, End>()
  readonly #counters: Counters
  readonly #rows: Rows
  readonly #listener: PathListener
  readonly #bridges = new Map<number, Bridge<End>>()
  #left = 0
  readonly #clock = new WallClock()
  readonly #queue = new DelayQueue((bytes) => ({ bytes: Buffer.alloc(bytes), address: 0 }))
  #lastEnd = 0
  #dueTimer: NodeJS.Timeout | undefined
  #dueAt = Number.POSITIVE_INFINITY
  #flushTimer: NodeJS.Timeout | undefined

  constructor(counters: Counters, listener: PathListener) {
    this.#counters = counters
    this.#listener = listener
    this.#rows = new Rows(counters, listener.captured)
  }

  async open(spec: EndSpec): Promise<OpenedEnd> {
    if (spec.type !== 'udp' && spec.type !== 'bridge') {
      const who = spec.type === 'netio' ? 'IOU needs' : `${spec.type} links need`
      throw new KeeperError('unsupported', `${who} the fast packet path, which runs on Linux with its native library`)
    }
    const id = ++this.#lastEnd
    if (spec.type === 'bridge') {
      this.#openBridgePort(id, spec)
      return { end: id, port: 0 }
    }
    let end: End | undefined
    const socket = await UdpSocket.open(
      spec.local,
      spec.remote,
      (frame) => {
        if (end !== undefined) this.#receive(end, spec, frame)
      },
      () => this.#refused(spec),
    )
    end = { id, spec, send: (frame) => socket.send(frame), close: () => socket.close(), lane: null }
    this.#ends.set(id, end)
    return { end: id, port: socket.port }
  }

  #openBridgePort(id: number, spec: BridgeEnd): void {
    const bridge = this.#bridgeOf(spec.bridge)
    const close = () => {
      bridge.detach(spec.port)
      this.#tidyBridge(spec.bridge)
    }
    const end: End = { id, spec, send: (frame, now) => this.#forward(bridge, spec, frame, now), close, lane: null }
    bridge.attach(spec.port, end)
    this.#ends.set(id, end)
  }

  async configure(id: number, spec: BridgeSpec | null): Promise<void> {
    this.#bridgeOf(id).configure(spec)
    this.#tidyBridge(id)
  }

  async entries(id: number): Promise<MacEntry[]> {
    return this.#bridges.get(id)?.entries(performance.now()) ?? []
  }

  async clear(id: number): Promise<void> {
    this.#bridges.get(id)?.clear()
  }

  async close(id: number): Promise<void> {
    const end = this.#ends.get(id)
    this.#ends.delete(id)
    for (const other of this.#ends.values()) if (other.lane?.output === end) other.lane = null
    this.#queue.forget(id)
    await end?.close()
  }

  async setLane(input: number, spec: LaneSpec | null): Promise<void> {
    const end = this.#ends.get(input)
    if (end === undefined) return
    const output = spec === null ? undefined : this.#ends.get(spec.output)
    const before = end.lane?.output
    end.lane = spec === null || output === undefined ? null : this.#rows.lane(spec, output)
    // Until they are due, frames that wait for a link that is gone would take the room of those of others.
    if (before !== undefined && before !== end.lane?.output) this.#queue.forget(before.id)
  }

  async impair(row: number, impairment: PortImpairment): Promise<void> {
    this.#rows.impair(row, impairment)
  }

  async reset(row: number): Promise<void> {
    this.#rows.reset(row)
  }

  async isPlain(rows: readonly number[]): Promise<boolean> {
    return this.#rows.isPlain(rows, performance.now())
  }

  async capture(row: number, memory: SharedArrayBuffer | null): Promise<void> {
    this.#rows.capture(row, memory)
  }

  async forget(row: number): Promise<void> {
    this.#rows.forget(row)
  }

  send(id: number, frame: Uint8Array): void {
    this.#ends.get(id)?.send(Buffer.from(frame), performance.now())
  }

  async tidy(): Promise<void> {
    // No IOU instance runs with this path.
  }

  async shutdown(): Promise<void> {
    clearTimeout(this.#dueTimer)
    clearTimeout(this.#flushTimer)
    await Promise.all([...this.#ends.keys()].map((id) => this.close(id)))
  }

  #receive(end: End, { probes }: UdpEnd, frame: Buffer): void {
    if (probes && isProbe(frame, 0, frame.length)) return this.#listener.probe(end.id, frame)
    this.#left = maxSent
    this.#pass(end, frame, performance.now())
  }

  #bridgeOf(id: number): Bridge<End> {
    const bridge = this.#bridges.get(id) ?? new Bridge<End>((loop) => this.#listener.looped({ bridge: id, ...loop }))
    this.#bridges.set(id, bridge)
    return bridge
  }

  #tidyBridge(id: number): void {
    if (this.#bridges.get(id)?.isUnused) this.#bridges.delete(id)
  }

  /** Forwards a frame that came to a port of a bridge. */
  #forward(bridge: Bridge<End>, { port, row }: BridgeEnd, frame: Buffer, now: number): void {
    const from = bridge.port(port)
    if (!bridge.isRunning || from === undefined) return this.#counters.add(row, at.noGuest, 1)
    const view = new DataView(frame.buffer, frame.byteOffset, frame.length)
    const isCircle = bridge.isBusy
    if (isCircle) bridge.foundCircle(view, 0, port, now)
    const target = isCircle ? drop : bridge.route(from, view, 0, frame.length, now)
    if (target === drop) return this.#counters.add(row, at.filtered, 1)
    const { vlan, outerTag, innerTag } = bridge
    const tags = innerTag || outerTag
    bridge.isBusy = true
    for (const to of bridge.ports()) {
      if (to === from || to.end === null || (target !== flood && target !== to.number)) continue
      if (target === flood && !bridge.carries(to, vlan)) continue
      if (--this.#left < 0) this.#counters.add(to.end.spec.row, at.filtered, 1)
      else {
        const [outer, inner] = [outerTagAt(to.spec, tags), innerTagAt(to.spec, vlan, tags)]
        this.#pass(to.end, outer === outerTag && inner === innerTag ? frame : retagged(outer, inner), now)
      }
    }
    bridge.isBusy = false

    function retagged(outer: number, inner: number): Buffer {
      const copy = Buffer.alloc(frame.length + 8)
      const to = { bytes: copy, view: new DataView(copy.buffer, copy.byteOffset, copy.length) }
      const before = tagBytesOf(outerTag, innerTag)
      return copy.subarray(0, retag(frame, 0, frame.length, before, to, 0, outer, inner))
    }
  }

  #pass({ spec, lane }: End, frame: Buffer, now: number): void {
    if (lane === null) return this.#counters.add(spec.row, at.notLinked, 1)
    const { output, hops } = lane
    // Due frames first, because this frame might be due at once.
    this.#takeDue(now)
    if (isUnimpaired(hops, now)) {
      for (const hop of hops) hop.count(1, frame.length)
      output.send(frame, now)
      return
    }
    this.#clock.set(now)
    const due = passHops(hops, frame, 0, frame.length, now, this.#clock)
    this.#rows.passed(now)
    this.#flushLater(now)
    if (due < 0) return
    const last = hops[hops.length - 1] as Hop
    for (let { copies } = last.departure; copies > 0; copies--) {
      if (due <= now) output.send(frame, now)
      else if (!this.#queue.put(frame, 0, frame.length, due, now, output.id, output.spec.row))
        last.overflow(frame.length)
    }
    this.#sendLater(now)
  }

  #takeDue(now: number): void {
    if (this.#queue.size === 0) return
    this.#queue.takeDue(
      now,
      (end, _row, block, start, length) => {
        // A copy: Node sends after this turn, when the slot may have another frame.
        this.#left = maxSent
        this.#ends.get(end)?.send(Buffer.from(block.bytes.subarray(start, start + length)), now)
      },
      () => {},
    )
  }

  #sendLater(now: number): void {
    const due = this.#queue.nextDue
    if (due >= this.#dueAt) return
    clearTimeout(this.#dueTimer)
    this.#dueAt = due
    this.#dueTimer =
      due === Number.POSITIVE_INFINITY ? undefined : setTimeout(() => this.#wake(), Math.max(1, due - now))
  }

  #wake(): void {
    const now = performance.now()
    this.#dueAt = Number.POSITIVE_INFINITY
    this.#takeDue(now)
    this.#sendLater(now)
  }

  #flushLater(now: number): void {
    if (this.#flushTimer !== undefined || this.#rows.flushAt === Number.POSITIVE_INFINITY) return
    this.#flushTimer = setTimeout(() => {
      this.#flushTimer = undefined
      this.#rows.flush()
    }, this.#rows.flushAt - now)
  }

  #refused({ row, sends }: UdpEnd): void {
    countRefusal(this.#counters, row, sends)
  }
}
