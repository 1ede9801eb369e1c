import type { BridgeSpec, MacEntry } from '../../keeper/protocol/protocol.ts'
import type { Libc } from '../../os/system/libc.ts'
import {
  Bridge,
  type BridgePort,
  drop,
  flood,
  innerTagAt,
  outerTagAt,
  retag,
  tagBytesOf,
} from '../switch/core/bridge.ts'
import { at, type Counters } from '../switch/core/counters.ts'
import type { BridgeEnd, BridgeLoop } from '../switch/core/path.ts'
import { isUnimpaired, type Lane } from '../switch/core/rows.ts'
import { FastPathEnd } from './end.ts'
import { Memory } from './memory.ts'
import type { Receiver } from './receiver.ts'
import type { Transmitter } from './transmitter.ts'

/** Where frames are, for the program and for system calls. */
export interface FrameSource {
  readonly bytes: Uint8Array
  readonly view: DataView
  readonly address: number
}

/** Frames, or runs of equal-sized ones, that are forwarded together. */
const maxFrames = 1024
/** Switches that a frame crosses at once. */
const maxBridges = 16
/** Frames that are sent for one batch at most: a loop through several switches would send millions. */
const maxSent = 65_536
/** Room for any run, and for any super-frame that is cut, with two more tags in each frame. */
const arenaBytes = 1 << 20
/** Addresses and two tags with their EtherTypes must be the same in all frames of a run. */
const headBytes = 22

/** Frames for one port of a bridge, and what was decided on each. Arrays, because a frame must not allocate. */
class Frames {
  readonly sources: FrameSource[] = []
  readonly offsets = new Int32Array(maxFrames)
  readonly lengths = new Int32Array(maxFrames)
  /** Size of each but the last frame of a run; 0 for a single frame. */
  readonly segments = new Int32Array(maxFrames)
  readonly targets = new Int32Array(maxFrames)
  readonly vlans = new Int32Array(maxFrames)
  readonly outers = new Uint32Array(maxFrames)
  readonly inners = new Uint32Array(maxFrames)
  /** Frames that a run or a super-frame stands for, and the bytes of all of them. */
  readonly counts = new Int32Array(maxFrames)
  readonly totals = new Int32Array(maxFrames)
  /** The index in the receiver of a frame that is as it was received after its header; -1 for another one. */
  readonly wholes = new Int32Array(maxFrames)
  count = 0

  add(source: FrameSource, offset: number, length: number, segment: number): void {
    const index = this.count++
    this.sources[index] = source
    this.offsets[index] = offset
    this.lengths[index] = length
    this.segments[index] = segment
    this.counts[index] = segment === 0 ? 1 : Math.ceil(length / segment)
    this.totals[index] = length
    this.wholes[index] = -1
  }

  addWhole(receiver: Receiver, offset: number, length: number, whole: number): void {
    const index = this.count
    this.add(receiver, offset, length, 0)
    this.counts[index] = receiver.counts[whole] as number
    this.totals[index] = receiver.totals[whole] as number
    this.wholes[index] = whole
  }

  get frames(): number {
    let frames = 0
    for (let index = 0; index < this.count; index++) frames += this.counts[index] as number
    return frames
  }
}

/** What forwarding needs at one depth of switches behind switches. */
class Level {
  readonly frames = new Frames()
  /** Indexes of the frames that leave at the port that is looked at. */
  readonly chosen = new Int32Array(maxFrames)
  readonly #libc: Libc
  /** Frames with other tags than they came with. */
  #arena: Memory | undefined
  used = 0

  constructor(libc: Libc) {
    this.#libc = libc
  }

  get arena(): Memory {
    this.#arena ??= new Memory(this.#libc, arenaBytes)
    return this.#arena
  }
}

export interface BridgingOptions {
  readonly libc: Libc
  readonly counters: Counters
  readonly receiver: Receiver
  readonly transmitter: Transmitter
  /** Passes a frame through a lane with stages. */
  readonly forward: (lane: Lane<FastPathEnd>, source: FrameSource, offset: number, length: number, now: number) => void
  readonly looped: (loop: BridgeLoop) => void
}

/** The switches and hubs of the fast path. */
export class Bridging {
  readonly #options: BridgingOptions
  readonly #bridges = new Map<number, Bridge<FastPathEnd>>()
  readonly #levels: Level[] = []
  #output: FastPathEnd | null = null
  #left = 0
  /** The depth at which a lane with stages takes a frame: what it lets pass to a bridge is for the next depth. -1: none does. */
  #depth = -1

  constructor(options: BridgingOptions) {
    this.#options = options
  }

  open(id: number, spec: BridgeEnd): FastPathEnd {
    const bridge = this.#bridgeOf(spec.bridge)
    const close = () => {
      bridge.detach(spec.port)
      this.#tidy(spec.bridge)
    }
    const port = { bridge, number: spec.port }
    const end = new FastPathEnd(
      id,
      spec,
      { fd: -1, gro: false, gso: false, hasHeader: false, longest: 0, port, close },
      this.#options.counters,
    )
    bridge.attach(spec.port, end)
    return end
  }

  configure(id: number, spec: BridgeSpec | null): void {
    this.#bridgeOf(id).configure(spec)
    this.#tidy(id)
  }

  entries(id: number): MacEntry[] {
    return this.#bridges.get(id)?.entries(performance.now()) ?? []
  }

  clear(id: number): void {
    this.#bridges.get(id)?.clear()
  }

  /** Adds a frame, or a run, for a port of a bridge. It stays where it is until `flush`. */
  put(output: FastPathEnd, source: FrameSource, offset: number, length: number, segment: number, now: number): void {
    if (this.#depth >= 0) return this.#putBelow(this.#depth, output, source, offset, length, now)
    if (segment > 0 && segment < length) {
      if (!hasOneHead(source.view, offset, length, segment)) {
        for (let at = 0; at < length; at += segment)
          this.put(output, source, offset + at, Math.min(segment, length - at), 0, now)
        return
      }
    } else segment = 0
    this.#room(output, now).add(source, offset, length, segment)
  }

  /** Adds a frame of the receiver as it was received after its header. */
  putWhole(output: FastPathEnd, whole: number, now: number): void {
    const { receiver } = this.#options
    const offset = receiver.offsets[whole] as number
    this.#room(output, now).addWhole(receiver, offset, receiver.lengths[whole] as number, whole)
  }

  #room(output: FastPathEnd, now: number): Frames {
    const { frames } = this.#level(0)
    if (output !== this.#output || frames.count === maxFrames) this.flush(now)
    this.#output = output
    return frames
  }

  #putBelow(
    depth: number,
    output: FastPathEnd,
    source: FrameSource,
    offset: number,
    length: number,
    now: number,
  ): void {
    const { frames } = this.#level(depth + 1)
    if (frames.count === maxFrames) {
      this.#depth = -1
      this.#forward(output, depth + 1, now)
      this.#depth = depth
    }
    frames.add(source, offset, length, 0)
  }

  /** Forwards and sends what was added. */
  flush(now: number): void {
    const output = this.#output
    if (output === null) return
    this.#output = null
    this.#left = maxSent
    this.#forward(output, 0, now)
    this.#options.transmitter.flush()
    for (const level of this.#levels) level.used = 0
  }

  #bridgeOf(id: number): Bridge<FastPathEnd> {
    let bridge = this.#bridges.get(id)
    if (bridge === undefined) {
      bridge = new Bridge((loop) => this.#options.looped({ bridge: id, ...loop }))
      this.#bridges.set(id, bridge)
    }
    return bridge
  }

  #tidy(id: number): void {
    if (this.#bridges.get(id)?.isUnused) this.#bridges.delete(id)
  }

  #level(depth: number): Level {
    let level = this.#levels[depth]
    if (level === undefined) {
      level = new Level(this.#options.libc)
      this.#levels[depth] = level
    }
    return level
  }

  /** Forwards the frames of a level, which came to a port of a bridge. */
  #forward({ port, row }: FastPathEnd, depth: number, now: number): void {
    const { counters } = this.#options
    const { frames } = this.#level(depth)
    const { count } = frames
    if (count === 0 || port === undefined) return
    const { bridge } = port
    const from = bridge.port(port.number)
    if (!bridge.isRunning || from === undefined) counters.add(row, at.noGuest, frames.frames)
    else if (bridge.isBusy || depth === maxBridges - 1) {
      bridge.foundCircle((frames.sources[0] as FrameSource).view, frames.offsets[0] as number, from.number, now)
      counters.add(row, at.filtered, frames.frames)
    } else {
      bridge.isBusy = true
      this.#route(bridge, from, depth, now)
      bridge.isBusy = false
    }
    frames.count = 0
  }

  #route(bridge: Bridge<FastPathEnd>, from: BridgePort<FastPathEnd>, depth: number, now: number): void {
    const { frames } = this.#level(depth)
    const { sources, offsets, lengths, segments, targets, vlans, outers, inners, count } = frames
    let isFlooded = false
    let one = drop
    let areSeveral = false
    for (let index = 0; index < count; index++) {
      const segment = segments[index] as number
      const length = segment === 0 ? (lengths[index] as number) : segment
      const { view } = sources[index] as FrameSource
      const target = bridge.route(from, view, offsets[index] as number, length, now)
      targets[index] = target
      vlans[index] = bridge.vlan
      outers[index] = bridge.outerTag
      inners[index] = bridge.innerTag
      if (target === flood) isFlooded = true
      else if (target === drop)
        this.#options.counters.add(from.end?.row ?? 0, at.filtered, frames.counts[index] as number)
      else if (one === drop) one = target
      else if (one !== target) areSeveral = true
    }
    if (isFlooded || areSeveral) {
      for (const port of bridge.ports())
        if (port !== from && port.end !== null) this.#leave(bridge, port, port.end, depth, now)
      return
    }
    const port = bridge.port(one)
    if (port !== undefined && port.end !== null) this.#leave(bridge, port, port.end, depth, now)
  }

  /** Sends what leaves at a port. */
  #leave(bridge: Bridge<FastPathEnd>, port: BridgePort<FastPathEnd>, end: FastPathEnd, depth: number, now: number) {
    const level = this.#level(depth)
    const { frames, chosen } = level
    const { targets, vlans, counts, totals, count } = frames
    let picked = 0
    let total = 0
    let bytes = 0
    for (let index = 0; index < count; index++) {
      const target = targets[index] as number
      if (target !== port.number && target !== flood) continue
      if (target === flood && !bridge.carries(port, vlans[index] as number)) continue
      chosen[picked++] = index
      const grown = this.#grown(frames, index, port)
      total += counts[index] as number
      bytes += (totals[index] as number) + grown * (counts[index] as number)
    }
    if (picked === 0) return
    const { lane } = end
    const { counters } = this.#options
    if (lane === null) return counters.add(end.row, at.notLinked, total)
    this.#left -= total
    if (this.#left < 0) return counters.add(end.row, at.filtered, total)
    const isPlain = isUnimpaired(lane.hops, now)
    // Counted before the send, so that a receiver sees its frame counted.
    if (isPlain) for (const hop of lane.hops) hop.count(total, bytes)
    for (let index = 0; index < picked; index++)
      this.#send(level, chosen[index] as number, port, lane, isPlain, depth, now)
    if (lane.output.kind === 'bridge') this.#forward(lane.output, depth + 1, now)
  }

  #grown({ outers, inners, vlans }: Frames, index: number, { spec }: BridgePort<FastPathEnd>): number {
    const outer = outers[index] as number
    const inner = inners[index] as number
    const tags = inner === 0 ? outer : inner
    return tagBytesOf(outerTagAt(spec, tags), innerTagAt(spec, vlans[index] as number, tags)) - tagBytesOf(outer, inner)
  }

  #send(
    level: Level,
    index: number,
    { spec }: BridgePort<FastPathEnd>,
    lane: Lane<FastPathEnd>,
    isPlain: boolean,
    depth: number,
    now: number,
  ): void {
    const { frames } = level
    let source = frames.sources[index] as FrameSource
    let offset = frames.offsets[index] as number
    let length = frames.lengths[index] as number
    let segment = frames.segments[index] as number
    const whole = frames.wholes[index] as number
    const outer = frames.outers[index] as number
    const inner = frames.inners[index] as number
    const tags = inner === 0 ? outer : inner
    const nextOuter = outerTagAt(spec, tags)
    const nextInner = innerTagAt(spec, frames.vlans[index] as number, tags)
    const isSame = outer === nextOuter && inner === nextInner
    if (whole >= 0) {
      if (isPlain && isSame && this.#sendWhole(lane.output, offset, length, whole, depth)) return
      const { receiver } = this.#options
      receiver.finish(whole)
      offset = receiver.offsets[whole] as number
      length = receiver.lengths[whole] as number
      segment = receiver.segments[whole] as number
      // There was no room to cut it.
      if (length === 0) return
    }
    if (!isSame) {
      const { arena } = level
      const before = tagBytesOf(outer, inner)
      const most = length + 8 * (frames.counts[index] as number)
      if (level.used + most > arenaBytes) this.#emptyArena(level, lane.output, depth, now)
      const start = level.used
      const step = segment === 0 ? length : segment
      for (let at = 0; at < length; at += step) {
        const size = Math.min(step, length - at)
        level.used += retag(source.bytes, offset + at, size, before, arena, level.used, nextOuter, nextInner)
      }
      segment = segment === 0 ? 0 : segment + tagBytesOf(nextOuter, nextInner) - before
      source = arena
      offset = start
      length = level.used - start
    }
    if (!isPlain) {
      const step = segment === 0 ? length : segment
      this.#depth = depth
      for (let at = 0; at < length; at += step)
        this.#options.forward(lane, source, offset + at, Math.min(step, length - at), now)
      this.#depth = -1
      return
    }
    const { output } = lane
    const { transmitter } = this.#options
    if (output.kind === 'bridge') return this.#level(depth + 1).frames.add(source, offset, length, segment)
    if (segment > 0 && output.gso) return transmitter.addJoined(output, source.address + offset, length, segment)
    const step = segment === 0 ? length : segment
    for (let at = 0; at < length; at += step)
      transmitter.add(output, source.address + offset + at, Math.min(step, length - at))
  }

  /** Sends a frame of the receiver as it was received; false where the output does not take it. */
  #sendWhole(output: FastPathEnd, offset: number, length: number, whole: number, depth: number): boolean {
    const { receiver, transmitter } = this.#options
    if (output.kind === 'bridge') this.#level(depth + 1).frames.addWhole(receiver, offset, length, whole)
    else if (!output.takes(receiver.longest[whole] as number)) return false
    else transmitter.addWhole(output, receiver.address + offset, length, receiver.counts[whole] as number)
    return true
  }

  /** Sends what is in the memory of a level, so that it can be used again. */
  #emptyArena(level: Level, output: FastPathEnd, depth: number, now: number): void {
    if (output.kind === 'bridge') this.#forward(output, depth + 1, now)
    this.#options.transmitter.flush()
    level.used = 0
  }
}

/** Whether all frames of a run have the same addresses and tags. */
function hasOneHead(view: DataView, offset: number, length: number, segment: number): boolean {
  if (length % segment !== 0 && length % segment < headBytes) return false
  if (segment < headBytes) return false
  const a = view.getUint32(offset)
  const b = view.getUint32(offset + 4)
  const c = view.getUint32(offset + 8)
  const d = view.getUint32(offset + 12)
  const isTagged = d >>> 16 === 0x8100 || d >>> 16 >= 0x88a8
  for (let at = offset + segment; at < offset + length; at += segment) {
    if (view.getUint32(at) !== a || view.getUint32(at + 4) !== b || view.getUint32(at + 8) !== c) return false
    // The EtherType alone, when what follows is not a tag.
    if (isTagged ? view.getUint32(at + 12) !== d : view.getUint16(at + 12) !== d >>> 16) return false
    if (isTagged && view.getUint32(at + 16) !== view.getUint32(offset + 16)) return false
  }
  return true
}
