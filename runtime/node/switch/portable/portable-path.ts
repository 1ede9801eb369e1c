import { KeeperError } from '../../keeper-protocol/error.ts'
import { at, type Counters, countRefusal } from '../core/counters.ts'
import { DelayQueue } from '../core/delay-queue.ts'
import type { Hop } from '../core/hop.ts'
import type { EndSpec, Impairment, LaneSpec, OpenedEnd, PacketPath, PathListener, UdpEnd } from '../core/path.ts'
import { isProbe } from '../core/probe-frame.ts'
import { isUnimpaired, type Lane, passHops, Rows } from '../core/rows.ts'
import { WallClock } from '../core/wall-clock.ts'
import { UdpSocket } from './udp-socket.ts'

type End = { readonly id: number; readonly spec: UdpEnd; readonly socket: UdpSocket; lane: Lane<End> | null }

/** The packet path without FFI or Linux: node:dgram, one frame in a call, UDP only. */
export class PortablePath implements PacketPath {
  readonly name = 'portable'
  readonly #ends = new Map<number, End>()
  readonly #counters: Counters
  readonly #rows: Rows
  readonly #listener: PathListener
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
    if (spec.type !== 'udp') {
      const who = spec.type === 'netio' ? 'IOU needs' : `${spec.type} links need`
      throw new KeeperError('unsupported', `${who} the fast packet path, which runs on Linux with its native library`)
    }
    const id = ++this.#lastEnd
    let end: End | undefined
    const socket = await UdpSocket.open(
      spec.local,
      spec.remote,
      (frame) => {
        if (end !== undefined) this.#receive(end, frame)
      },
      () => this.#refused(spec),
    )
    end = { id, spec, socket, lane: null }
    this.#ends.set(id, end)
    return { end: id, port: socket.port }
  }

  async close(id: number): Promise<void> {
    const end = this.#ends.get(id)
    this.#ends.delete(id)
    await end?.socket.close()
  }

  async setLane(input: number, spec: LaneSpec | null): Promise<void> {
    const end = this.#ends.get(input)
    if (end === undefined) return
    const output = spec === null ? undefined : this.#ends.get(spec.output)
    end.lane = spec === null || output === undefined ? null : this.#rows.lane(spec, output)
  }

  async impair(row: number, impairment: Impairment): Promise<void> {
    this.#rows.impair(row, impairment)
  }

  async reset(row: number): Promise<void> {
    this.#rows.reset(row)
  }

  async capture(row: number, memory: SharedArrayBuffer | null): Promise<void> {
    this.#rows.capture(row, memory)
  }

  async forget(row: number): Promise<void> {
    this.#rows.forget(row)
  }

  send(id: number, frame: Uint8Array): void {
    this.#ends.get(id)?.socket.send(Buffer.from(frame))
  }

  async tidy(): Promise<void> {
    // No IOU instance runs with this path.
  }

  async shutdown(): Promise<void> {
    clearTimeout(this.#dueTimer)
    clearTimeout(this.#flushTimer)
    await Promise.all([...this.#ends.keys()].map((id) => this.close(id)))
  }

  #receive({ id, spec, lane }: End, frame: Buffer): void {
    if (spec.probes && isProbe(frame, 0, frame.length)) return this.#listener.probe(id, frame)
    if (lane === null) return this.#counters.add(spec.row, at.notLinked, 1)
    const { output, hops } = lane
    const now = performance.now()
    // Due frames first, because this frame might be due at once.
    this.#takeDue(now)
    if (isUnimpaired(hops, now)) {
      for (const hop of hops) hop.count(1, frame.length)
      output.socket.send(frame)
      return
    }
    this.#clock.set(now)
    const due = passHops(hops, frame, 0, frame.length, now, this.#clock)
    this.#rows.passed(now)
    this.#flushLater(now)
    if (due < 0) return
    const last = hops[hops.length - 1] as Hop
    for (let { copies } = last.departure; copies > 0; copies--) {
      if (due <= now) output.socket.send(frame)
      else if (!this.#queue.put(frame, 0, frame.length, due, now, output.id, output.spec.row))
        last.overflow(frame.length)
    }
    this.#sendLater(now)
  }

  #takeDue(now: number): void {
    if (this.#queue.size === 0) return
    this.#queue.takeDue(
      now,
      (end, _row, block, place, length) => {
        // A copy: Node sends after this turn, when the slot may have another frame.
        this.#ends.get(end)?.socket.send(Buffer.from(block.bytes.subarray(place, place + length)))
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
