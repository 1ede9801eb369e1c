import type { PortCounters } from '../../keeper-protocol/protocol.ts'
import type { Direction } from './path.ts'

const rows = 16_384
/** Doubles a row. */
const width = 24

/** Places in a row. Every double is written by one thread only and may be read by any. */
export const at = {
  outFrames: 0,
  outBytes: 1,
  inFrames: 2,
  inBytes: 3,
  suspended: 4,
  frequencyDrop: 5,
  packetLoss: 6,
  bpf: 7,
  rate: 8,
  queueFull: 9,
  notLinked: 10,
  noGuest: 11,
  sendFailed: 12,
  corrupted: 13,
  duplicated: 14,
  captured: 15,
  captureMissed: 16,
  /** Times the other end of the link refused (ICMP), and where the counters stood at the last time. */
  refused: 17,
  outAtRefusal: 18,
  inAtRefusal: 19,
  /** Times the guest's socket refused. */
  guestRefused: 20,
  outAtGuestRefusal: 22,
  /** What the guest had sent when the last frame came in. */
  outAtLastIn: 23,
  /** The device or socket of the link failed for good. */
  linkFailed: 21,
} as const

/** The counters of all ports in memory that threads share, so that reading them disturbs nobody. */
export class Counters {
  readonly memory: SharedArrayBuffer
  readonly table: Float64Array
  readonly #free: number[] = []
  #next = 0

  /** Untouched rows take no memory. */
  constructor(memory = new SharedArrayBuffer(rows * width * 8)) {
    this.memory = memory
    this.table = new Float64Array(memory)
  }

  /** Takes a row and clears it; undefined when all are in use. */
  take(): number | undefined {
    const row = this.#free.pop() ?? (this.#next < rows ? this.#next++ : undefined)
    if (row !== undefined) this.table.fill(0, row * width, (row + 1) * width)
    return row
  }

  release(row: number): void {
    this.#free.push(row)
  }

  add(row: number, place: number, amount: number): void {
    const index = row * width + place
    this.table[index] = (this.table[index] as number) + amount
  }

  set(row: number, place: number, value: number): void {
    this.table[row * width + place] = value
  }

  get(row: number, place: number): number {
    return this.table[row * width + place] as number
  }

  /** A row as the interface shows it. */
  read(row: number): PortCounters {
    const get = (place: number) => this.get(row, place)
    return {
      out_frames: get(at.outFrames),
      out_bytes: get(at.outBytes),
      in_frames: get(at.inFrames),
      in_bytes: get(at.inBytes),
      dropped: {
        suspended: get(at.suspended),
        frequency_drop: get(at.frequencyDrop),
        packet_loss: get(at.packetLoss),
        bpf: get(at.bpf),
        rate: get(at.rate),
        queue_full: get(at.queueFull),
        not_linked: get(at.notLinked),
        no_guest: get(at.noGuest),
        send_failed: get(at.sendFailed),
      },
      corrupted: get(at.corrupted),
      duplicated: get(at.duplicated),
    }
  }
}

/** Notes that the peer of a row's end refused what was sent: the guest's socket, or the other end of the link. */
export function countRefusal(counters: Counters, row: number, sends: Direction, frames = 1): void {
  if (sends === 'in') {
    counters.add(row, at.guestRefused, frames)
    counters.add(row, at.noGuest, frames)
    counters.set(row, at.outAtGuestRefusal, counters.get(row, at.outFrames))
    return
  }
  counters.add(row, at.refused, frames)
  counters.set(row, at.outAtRefusal, counters.get(row, at.outFrames))
  counters.set(row, at.inAtRefusal, counters.get(row, at.inFrames))
}
