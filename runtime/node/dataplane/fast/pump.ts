import { type Libc, linux } from '../../os/system/libc.ts'
import { at, type Counters } from '../switch/core/counters.ts'
import { type Block, DelayQueue } from '../switch/core/delay-queue.ts'
import type { Hop } from '../switch/core/hop.ts'
import type {
  DeviceEnd,
  EndSpec,
  LaneSpec,
  NetioEnd,
  OpenedEnd,
  PathListener,
  TapEnd,
  UdpEnd,
} from '../switch/core/path.ts'
import { isProbe } from '../switch/core/probe-frame.ts'
import { isUnimpaired, type Lane, passHops, Rows } from '../switch/core/rows.ts'
import { WallClock } from '../switch/core/wall-clock.ts'
import { Bridging, type FrameSource } from './bridging.ts'
import { Demultiplexer } from './demultiplexer.ts'
import { FastPathEnd } from './end.ts'
import { Instance } from './instance.ts'
import { Memory } from './memory.ts'
import { netioDirectory } from './netio-directory.ts'
import { bridgeOffset, removeLeftover } from './netio-socket.ts'
import { Receiver } from './receiver.ts'
import { type OpenedSocket, Sockets } from './sockets.ts'
import { Taps } from './taps.ts'
import { Transmitter } from './transmitter.ts'
import { remaining } from './vnet-header.ts'

/** struct epoll_event { u32 events; u64 data; } is packed on x86-64 alone. */
const [eventBytes, dataOffset] = process.arch === 'x64' ? ([12, 4] as const) : ([16, 8] as const)
const eventsAtOnce = 256
/** Maximum number of batches of one end in a round, for fairness. */
const rounds = 4

/**
 * The fast path: all ends in one epoll set, many frames in a system call, no allocation for a frame. It occupies its thread: `run`
 * returns when `control` returns false.
 */
export class Pump {
  readonly #libc: Libc
  readonly #counters: Counters
  readonly #listener: PathListener
  readonly #sockets: Sockets
  readonly #taps: Taps
  readonly #receiver: Receiver
  readonly #demultiplexer: Demultiplexer
  readonly #transmitter: Transmitter
  readonly #queue: DelayQueue
  /** Switches and hubs. */
  readonly bridging: Bridging
  readonly #clock = new WallClock()
  readonly #ends = new Map<number, FastPathEnd>()
  /** By application id. */
  readonly #instances = new Map<number, Instance>()
  /** Other descriptors in the epoll set, by the same numbers. */
  readonly #sources = new Map<number, (events: number) => void>()
  readonly #epoll: number
  readonly #events: Memory
  readonly rows: Rows
  /** Whether waits may be shorter than 1 ms (epoll_pwait2). */
  readonly #hasFineWait: boolean
  #lastEnd = 0
  #controlEnd = 0
  /** Another thread writes here to have `control` called. */
  readonly wakeDescriptor: number

  constructor(libc: Libc, counters: Counters, listener: PathListener, isSegmenting: boolean) {
    this.#libc = libc
    this.#counters = counters
    this.#listener = listener
    this.#sockets = new Sockets(libc, isSegmenting)
    this.#taps = new Taps(libc, isSegmenting)
    this.#receiver = new Receiver(libc)
    this.#demultiplexer = new Demultiplexer(this.#receiver)
    this.#transmitter = new Transmitter(libc)
    this.#queue = new DelayQueue((bytes) => new Memory(libc, bytes))
    this.rows = new Rows(counters, listener.captured)
    this.bridging = new Bridging({
      libc,
      counters,
      receiver: this.#receiver,
      transmitter: this.#transmitter,
      forward: (lane, source, offset, length, now) => {
        // The lane to the bridge may have had no use for the time.
        this.#clock.set(now)
        this.#forwardFrame(lane, source, offset, length, now)
        this.rows.passed(now)
      },
      looped: (loop) => listener.looped(loop),
    })
    this.#events = new Memory(libc, eventsAtOnce * eventBytes + 64)
    this.#epoll = libc.epoll_create1(linux.EPOLL_CLOEXEC)
    this.wakeDescriptor = libc.eventfd(0, linux.EFD_NONBLOCK | linux.EFD_CLOEXEC)
    if (this.#epoll < 0 || this.wakeDescriptor < 0) throw new Error(`no epoll: errno ${libc.errno()}`)
    // The kernel or a seccomp filter may lack a call that the library has; this tests it with a timeout of zero.
    const nothing = this.#events.address
    this.#hasFineWait = (libc.epoll_pwait2?.(this.#epoll, nothing, 1, nothing + eventBytes, 0) ?? -1) >= 0
    this.#watch(this.wakeDescriptor, this.#controlEnd)
  }

  open(spec: EndSpec): OpenedEnd {
    const { end, port } =
      spec.type === 'netio'
        ? this.#openNetio(spec)
        : spec.type === 'bridge'
          ? { end: this.bridging.open(++this.#lastEnd, spec), port: 0 }
          : this.#openSocket(spec)
    this.#counters.set(spec.row, at.linkFailed, 0)
    this.#ends.set(end.id, end)
    return { end: end.id, port }
  }

  close(id: number): void {
    const end = this.#ends.get(id)
    if (end === undefined) return
    this.#ends.delete(id)
    // Descriptor numbers are reused: no lane may still point to this one.
    for (const other of this.#ends.values()) if (other.lane?.output === end) other.lane = null
    this.#queue.forget(id)
    // Closing removes it from the epoll set.
    end.close()
  }

  setLane(input: number, spec: LaneSpec | null): void {
    const end = this.#ends.get(input)
    if (end === undefined) return
    const output = spec === null ? undefined : this.#ends.get(spec.output)
    const before = end.lane?.output
    end.lane = spec === null || output === undefined ? null : this.rows.lane(spec, output)
    // Until they are due, frames that wait for a link that is gone would take the room of those of others.
    if (before !== undefined && before !== end.lane?.output) this.#queue.forget(before.id)
  }

  /** Removes the files of the sockets of an instance and its bridge that no program has. */
  tidy(applicationId: number): void {
    for (const id of [applicationId, applicationId + bridgeOffset]) removeLeftover(this.#libc, netioDirectory(), id)
  }

  send(id: number, frame: Uint8Array): void {
    const end = this.#ends.get(id)
    if (end === undefined) return
    const copy = new Memory(this.#libc, frame.length)
    copy.bytes.set(frame)
    this.#transmitter.add(end, copy.address, frame.length)
    this.#transmitter.flush()
  }

  /** Moves frames until `control` returns false. `control` is called after a write to the wake descriptor. */
  run(control: () => boolean): void {
    const { view } = this.#events
    for (;;) {
      const count = this.#wait()
      for (let index = 0; index < count; index++) {
        const id = view.getUint32(index * eventBytes + dataOffset, true)
        if (id === this.#controlEnd) {
          this.#libc.read(this.wakeDescriptor, this.#events.address + eventsAtOnce * eventBytes, 8)
          if (!control()) return
          continue
        }
        const end = this.#ends.get(id)
        if (end !== undefined) this.#drain(end)
        else this.#sources.get(id)?.(view.getUint32(index * eventBytes, true))
      }
      const now = performance.now()
      this.#takeDue(now)
      if (this.rows.flushAt <= now) this.rows.flush()
    }
  }

  shutdown(): void {
    for (const end of this.#ends.values()) end.close()
    this.#ends.clear()
    this.#libc.close(this.#epoll)
  }

  #openSocket(spec: UdpEnd | DeviceEnd | TapEnd): { end: FastPathEnd; port: number } {
    const socket = spec.type === 'udp' ? this.#sockets.udp(spec) : this.#openDevice(spec)
    const { port, ...opened } = socket
    const close = () => {
      if ('descriptor' in spec) this.#libc.epoll_ctl(this.#epoll, linux.EPOLL_CTL_DEL, opened.fd, 0)
      else if (spec.type === 'tap') this.#taps.close(opened.fd)
      else this.#libc.close(opened.fd)
    }
    const end = new FastPathEnd(++this.#lastEnd, spec, { ...opened, close }, this.#counters)
    try {
      this.#watch(end.fd, end.id)
    } catch (error) {
      close()
      throw error
    }
    return { end, port }
  }

  #openDevice(spec: DeviceEnd | TapEnd): OpenedSocket {
    if ('descriptor' in spec) return this.#taps.bind(spec.descriptor)
    return spec.type === 'tap' ? this.#taps.open(spec.device) : this.#sockets.ethernet(spec)
  }

  #openNetio(spec: NetioEnd): { end: FastPathEnd; port: number } {
    const instance = this.#instances.get(spec.applicationId) ?? this.#openInstance(spec.applicationId)
    return { end: instance.open(++this.#lastEnd, spec), port: 0 }
  }

  #openInstance(applicationId: number): Instance {
    const [input, room] = [++this.#lastEnd, ++this.#lastEnd]
    const instance = new Instance(this.#libc, applicationId, this.#counters, {
      awaitBuffer: (fd) => this.#watch(fd, input, linux.EPOLLIN | linux.EPOLLOUT, linux.EPOLL_CTL_MOD),
      awaitRoom: (fd) => this.#watch(fd, room, linux.EPOLLOUT | linux.EPOLLONESHOT, linux.EPOLL_CTL_MOD),
      closed: () => {
        this.#instances.delete(applicationId)
        this.#sources.delete(input)
        this.#sources.delete(room)
      },
    })
    try {
      this.#watch(instance.socket.fd, input)
      this.#watch(instance.room, room, linux.EPOLLONESHOT)
    } catch (error) {
      instance.close()
      throw error
    }
    this.#sources.set(input, (events) => {
      if ((events & linux.EPOLLOUT) !== 0) {
        this.#watch(instance.socket.fd, input, linux.EPOLLIN, linux.EPOLL_CTL_MOD)
        instance.backlog.drain()
      }
      this.#drainInstance(instance)
    })
    this.#sources.set(room, () => instance.backlog.drain())
    this.#instances.set(applicationId, instance)
    return instance
  }

  #watch(fd: number, id: number, events: number = linux.EPOLLIN, operation: number = linux.EPOLL_CTL_ADD): void {
    const address = eventsAtOnce * eventBytes
    this.#events.u32(address, events)
    this.#events.u64(address + dataOffset, id)
    if (this.#libc.epoll_ctl(this.#epoll, operation, fd, this.#events.address + address) < 0)
      throw new Error(`epoll_ctl: errno ${this.#libc.errno()}`)
  }

  /** Sleeps until there is work; returns the number of events. */
  #wait(): number {
    const { address } = this.#events
    const until = Math.min(this.#queue.nextDue, this.rows.flushAt)
    if (until === Number.POSITIVE_INFINITY) return this.#libc.epoll_wait(this.#epoll, address, eventsAtOnce, -1)
    const ms = Math.max(0, until - performance.now())
    if (!this.#hasFineWait || ms === 0) return this.#libc.epoll_wait(this.#epoll, address, eventsAtOnce, Math.ceil(ms))
    // struct timespec
    const timeoutAt = eventsAtOnce * eventBytes + 32
    const seconds = Math.floor(ms / 1000)
    this.#events.u64(timeoutAt, seconds)
    this.#events.u64(timeoutAt + 8, Math.ceil((ms - seconds * 1000) * 1e6))
    return this.#libc.epoll_pwait2?.(this.#epoll, address, eventsAtOnce, address + timeoutAt, 0) ?? 0
  }

  #drain(end: FastPathEnd): void {
    for (let round = 0; round < rounds; round++) {
      const count = this.#receive(end)
      if (count < 0) {
        if (!this.#isOver(end)) continue
        return
      }
      this.#forward(end, 0, count)
      if (!this.#receiver.isFull) return
    }
  }

  #drainInstance({ socket, ends }: Instance): void {
    for (let round = 0; round < rounds; round++) {
      const count = this.#receiver.netio(socket.fd)
      if (count <= 0) return
      const { ports, begins } = this.#demultiplexer
      const groups = this.#demultiplexer.sort(count, socket)
      for (let group = 0; group < groups; group++) {
        const from = begins[group] as number
        const to = begins[group + 1] as number
        const end = ends.get(ports[group] as number)
        if (end !== undefined) this.#forward(end, from, to)
        else this.#stray(ends, to - from)
      }
      if (!this.#receiver.isFull) return
    }
  }

  /** Counts datagrams of unknown senders or ports, at the first existing port. */
  #stray(ends: Instance['ends'], frames: number): void {
    for (const { row } of ends.values()) return this.#counters.add(row, at.notLinked, frames)
  }

  #receive({ kind, fd, gro, hasHeader }: FastPathEnd): number {
    if (kind === 'udp') return this.#receiver.udp(fd, gro)
    return kind === 'tap' ? this.#receiver.tap(fd, hasHeader) : this.#receiver.ethernet(fd)
  }

  /** Handles a failed receive; false when it only cleared a pending error and the socket may have more data. */
  #isOver(end: FastPathEnd): boolean {
    const errno = this.#libc.errno()
    if (errno === linux.ECONNREFUSED) {
      end.refused(1)
      return false
    }
    if (errno === linux.EAGAIN || errno === linux.EINTR || errno === linux.ENETDOWN) return true
    // A super-frame that struct virtio_net_hdr cannot describe (SCTP for example) is dropped; the next one may work.
    if (errno === linux.EINVAL && end.hasHeader) {
      this.#counters.add(end.row, at.sendFailed, 1)
      return false
    }
    // A lost device would wake the thread forever.
    if (end.kind !== 'udp') {
      this.#libc.epoll_ctl(this.#epoll, linux.EPOLL_CTL_DEL, end.fd, 0)
      this.#counters.add(end.row, at.linkFailed, 1)
    }
    return true
  }

  /** Forwards a range of received frames. */
  #forward(end: FastPathEnd, from: number, to: number): void {
    const { lane } = end
    const { segments, lengths, offsets, counts, totals, bytes, address } = this.#receiver
    const isBridged = lane?.output.kind === 'bridge'
    const now = performance.now()
    this.#takeDue(now)
    const isPlainLane = lane !== null && isUnimpaired(lane.hops, now)
    if (lane !== null && !isPlainLane) this.#clock.set(now)
    const { hasHeader } = end
    const takesWhole = hasHeader && isPlainLane && (isBridged || lane.output.hasHeader)
    const isToTap = isPlainLane && lane.output.kind === 'tap' && lane.output.hasHeader
    let frames = 0
    let total = 0
    for (let index = from; index < to; index++) {
      if (hasHeader) {
        const isPassed = lane === null || (takesWhole && this.#passWhole(lane.output, index, now))
        if (isPassed) {
          frames += counts[index] as number
          total += totals[index] as number
          continue
        }
        this.#receiver.finish(index)
      }
      const offset = offsets[index] as number
      const length = lengths[index] as number
      const segment = segments[index] as number
      const isJoined = segment > 0 && segment < length
      const isApart = isJoined && end.probes && this.#holdsProbe(offset, length, segment)
      if (isPlainLane && isJoined && !isApart && (isBridged || lane.output.gso)) {
        if (isBridged) this.bridging.put(lane.output, this.#receiver, offset, length, segment, now)
        else this.#transmitter.addJoined(lane.output, address + offset, length, segment)
        frames += Math.ceil(length / segment)
        total += length
        continue
      }
      const step = isJoined ? segment : length
      for (let at = offset; at < offset + length; at += step) {
        const size = Math.min(step, offset + length - at)
        if (end.probes && isProbe(bytes, at, size)) this.#listener.probe(end.id, bytes.slice(at, at + size))
        else if (isPlainLane) {
          if (isToTap) this.#write(lane.output, at, size)
          else this.#add(lane.output, this.#receiver, at, size, now)
          frames += 1
          total += size
        } else if (lane === null) frames += 1
        else this.#forwardFrame(lane, this.#receiver, at, size, now)
      }
    }
    // Counted before the send, so that a receiver sees its frame counted.
    if (lane === null) this.#counters.add(end.row, at.notLinked, frames)
    else if (isPlainLane) for (const hop of lane.hops) hop.count(frames, total)
    else this.rows.passed(now)
    this.bridging.flush(now)
    this.#transmitter.flush()
    if (hasHeader && this.#receiver.lost > 0) this.#counters.add(end.row, at.sendFailed, this.#receiver.lost)
  }

  /** Writes a frame to a TAP. Before it is room, or a frame that was written: its header takes no system call with two pieces. */
  #write(output: FastPathEnd, offset: number, length: number): void {
    this.#receiver.clearHeader(offset)
    this.#transmitter.addWhole(output, this.#receiver.address + offset, length, 1)
  }

  /** Adds a frame of a device as it was received, with what its sender left to the device; false where the output does not take it. */
  #passWhole(output: FastPathEnd, index: number, now: number): boolean {
    const receiver = this.#receiver
    if (receiver.remains[index] === remaining.noHeader) return false
    if (output.kind === 'bridge') this.bridging.putWhole(output, index, now)
    else if (!output.takes(receiver.longest[index] as number)) return false
    else {
      const address = receiver.address + (receiver.offsets[index] as number)
      this.#transmitter.addWhole(output, address, receiver.lengths[index] as number, receiver.counts[index] as number)
    }
    return true
  }

  /** Handles one frame of a lane with stages or a capture. */
  #forwardFrame(lane: Lane<FastPathEnd>, source: FrameSource, offset: number, length: number, now: number): void {
    const { hops, output } = lane
    const { bytes } = source
    const due = passHops(hops, bytes, offset, length, now, this.#clock)
    if (due < 0) return
    const last = hops[hops.length - 1] as Hop
    for (let { copies } = last.departure; copies > 0; copies--) {
      if (due <= now) this.#add(output, source, offset, length, now)
      else if (!this.#queue.put(bytes, offset, length, due, now, output.id, output.row)) last.overflow(length)
    }
  }

  /** Whether joined datagrams contain a probe. */
  #holdsProbe(offset: number, length: number, segment: number): boolean {
    const { bytes } = this.#receiver
    for (let at = offset; at < offset + length; at += segment) {
      if (isProbe(bytes, at, Math.min(segment, offset + length - at))) return true
    }
    return false
  }

  /** Sends due frames. Called before new frames, which might be due at once. */
  #takeDue(now: number): void {
    if (this.#queue.size > 0) this.#queue.takeDue(now, this.#sendDue, this.#sendAll)
  }

  readonly #sendDue = (id: number, _row: number, block: Block, at: number, length: number): void => {
    const output = this.#ends.get(id)
    if (output !== undefined) this.#add(output, block as Memory, at, length, performance.now())
  }

  readonly #sendAll = (): void => {
    this.bridging.flush(performance.now())
    this.#transmitter.flush()
  }

  #add(output: FastPathEnd, source: FrameSource, offset: number, length: number, now: number): void {
    if (output.kind === 'bridge') this.bridging.put(output, source, offset, length, 0, now)
    else this.#transmitter.add(output, source.address + offset, length)
  }
}
