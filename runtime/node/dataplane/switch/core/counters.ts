import { type FilterDeclaration, type FilterName, filterRows } from '../../../../../src/model/schema/filters.ts'
import type { PortCounters } from '../../../keeper/protocol/protocol.ts'
import type { Direction } from './path.ts'

const rows = 16_384

/** Indexes into a row. Each double has one writer thread and any number of readers. */
export const at = {
  outFrames: 0,
  outBytes: 1,
  inFrames: 2,
  inBytes: 3,
  suspended: 4,
  queueFull: 5,
  notLinked: 6,
  noGuest: 7,
  sendFailed: 8,
  captured: 9,
  captureMissed: 10,
  /** Refusals of the other link endpoint (ICMP), and the counters at the last one. */
  refused: 11,
  outAtRefusal: 12,
  inAtRefusal: 13,
  /** Refusals of the guest's socket, and the counters at the last one. */
  guestRefused: 14,
  outAtGuestRefusal: 15,
  /** Frames sent by the guest at the time of the last received frame. */
  outAtLastIn: 16,
  /** 1: the device or socket of the link has failed permanently. */
  linkFailed: 17,
  /** Frames that a bridge did not forward: of another VLAN, to where they came from, or in a circle. */
  filtered: 18,
  inAtGuestRefusal: 19,
  /** Frames that the kernel took past the packet path. Their writer is the main thread. */
  kernelOutFrames: 20,
  kernelOutBytes: 21,
  kernelInFrames: 22,
  kernelInBytes: 23,
} as const

const names = Object.keys(filterRows) as readonly FilterName[]
/** Counters of filters follow. */
const firstFilter = Object.keys(at).length
/** Doubles in a row. */
const width = firstFilter + names.length
export const filterColumns = Object.fromEntries(names.map((name, index) => [name, firstFilter + index])) as Readonly<
  Record<FilterName, number>
>

/** Indexes of the filters' counters, by their names in the API. */
const countersOf = (nameOf: (row: FilterDeclaration, filter: FilterName) => string | undefined) =>
  names.flatMap((filter) => {
    const name = nameOf(filterRows[filter], filter)
    return name === undefined ? [] : [[name, filterColumns[filter]] as const]
  })
const dropping = countersOf(({ drops }, filter) => drops && filter)
const counting = countersOf(({ counts }) => counts)

/** The counters of all ports, in shared memory, so that a read does not disturb the packet path. */
export class Counters {
  readonly memory: SharedArrayBuffer
  readonly table: Float64Array
  readonly #free: number[] = []
  #next = 0

  /** Unused rows take no memory. */
  constructor(memory = new SharedArrayBuffer(rows * width * 8)) {
    this.memory = memory
    this.table = new Float64Array(memory)
  }

  /** Allocates and clears a row; undefined when all are in use. */
  allocate(): number | undefined {
    const row = this.#free.pop() ?? (this.#next < rows ? this.#next++ : undefined)
    if (row !== undefined) this.table.fill(0, row * width, (row + 1) * width)
    return row
  }

  release(row: number): void {
    this.#free.push(row)
  }

  add(row: number, column: number, amount: number): void {
    const index = row * width + column
    this.table[index] = (this.table[index] as number) + amount
  }

  set(row: number, column: number, value: number): void {
    this.table[row * width + column] = value
  }

  get(row: number, column: number): number {
    return this.table[row * width + column] as number
  }

  /** A row in the form of the API. */
  read(row: number): PortCounters {
    const get = (column: number) => this.get(row, column)
    const all = (counters: typeof dropping) => Object.fromEntries(counters.map(([name, column]) => [name, get(column)]))
    return {
      out_frames: get(at.outFrames) + get(at.kernelOutFrames),
      out_bytes: get(at.outBytes) + get(at.kernelOutBytes),
      in_frames: get(at.inFrames) + get(at.kernelInFrames),
      in_bytes: get(at.inBytes) + get(at.kernelInBytes),
      dropped: {
        suspended: get(at.suspended),
        ...all(dropping),
        queue_full: get(at.queueFull),
        not_linked: get(at.notLinked),
        no_guest: get(at.noGuest),
        send_failed: get(at.sendFailed),
        filtered: get(at.filtered),
      },
      ...all(counting),
    } as PortCounters
  }
}

/** Counts a refusal by the peer of a row's socket: the guest, or the other link endpoint. */
export function countRefusal(counters: Counters, row: number, sends: Direction, frames = 1): void {
  if (sends === 'in') {
    counters.add(row, at.guestRefused, frames)
    counters.add(row, at.noGuest, frames)
    counters.set(row, at.outAtGuestRefusal, counters.get(row, at.outFrames))
    counters.set(row, at.inAtGuestRefusal, counters.get(row, at.inFrames))
    return
  }
  counters.add(row, at.refused, frames)
  counters.set(row, at.outAtRefusal, counters.get(row, at.outFrames))
  counters.set(row, at.inAtRefusal, counters.get(row, at.inFrames))
}
