import type { Departure } from '../../filters/row.ts'
import { CaptureBuffer, type HandOver } from './capture-buffer.ts'
import type { Counters } from './counters.ts'
import { Hop } from './hop.ts'
import type { Direction, LaneSpec, PortImpairment } from './path.ts'
import type { WallClock } from './wall-clock.ts'

/** The way of frames from one end to another. */
export interface Lane<End> {
  readonly output: End
  readonly hops: readonly Hop[]
}

/** Maximum time before a captured frame is delivered, ms; the file has it within 100 ms. */
const flushMs = 50

type Row = { readonly out: Hop; readonly in: Hop; capture: CaptureBuffer | null }

/** Stages and captures of the ports, by row. */
export class Rows {
  readonly #rows = new Map<number, Row>()
  readonly #capturing = new Set<CaptureBuffer>()
  readonly #counters: Counters
  readonly #captured: HandOver
  /** Time of the next delivery of captured frames; Infinity when there are none. */
  flushAt = Number.POSITIVE_INFINITY

  constructor(counters: Counters, captured: HandOver) {
    this.#counters = counters
    this.#captured = captured
  }

  hop(row: number, direction: Direction): Hop {
    return this.#row(row)[direction]
  }

  lane<End>(spec: LaneSpec, output: End): Lane<End> {
    return { output, hops: spec.hops.map(({ row, direction }) => this.hop(row, direction)) }
  }

  impair(row: number, impairment: PortImpairment): void {
    const { suspend, filters, filters_in = filters } = impairment
    this.#row(row).out.impair({ suspend, filters })
    this.#row(row).in.impair({ suspend, filters: filters_in })
  }

  reset(row: number): void {
    this.#row(row).out.reset()
    this.#row(row).in.reset()
  }

  /** Whether frames of the rows only need counting. */
  isPlain(rows: readonly number[], now: number): boolean {
    return rows.every((row) => this.#row(row).out.isPlain(now) && this.#row(row).in.isPlain(now))
  }

  /** Delivers earlier captured frames first. */
  capture(row: number, memory: SharedArrayBuffer | null): void {
    const it = this.#row(row)
    it.capture?.flush()
    if (memory === (it.capture?.memory ?? null)) return
    if (it.capture !== null) this.#capturing.delete(it.capture)
    it.capture = memory === null ? null : new CaptureBuffer(memory, this.#counters, row, this.#captured)
    if (it.capture !== null) this.#capturing.add(it.capture)
    it.out.capture(it.capture)
    it.in.capture(it.capture)
  }

  forget(row: number): void {
    this.capture(row, null)
    this.#rows.delete(row)
  }

  /** To be called after frames with stages or captures: schedules the delivery of captures. */
  passed(now: number): void {
    if (this.#capturing.size === 0 || this.flushAt !== Number.POSITIVE_INFINITY) return
    for (const { length } of this.#capturing) {
      if (length === 0) continue
      this.flushAt = now + flushMs
      return
    }
  }

  flush(): void {
    this.flushAt = Number.POSITIVE_INFINITY
    for (const capture of this.#capturing) capture.flush()
  }

  #row(row: number): Row {
    let it = this.#rows.get(row)
    if (it === undefined) {
      it = { out: new Hop(this.#counters, row, 'out'), in: new Hop(this.#counters, row, 'in'), capture: null }
      this.#rows.set(row, it)
    }
    return it
  }
}

/** Whether frames of a lane need only counting and sending. */
export function isUnimpaired(hops: readonly Hop[], now: number): boolean {
  for (const hop of hops) if (!hop.isPlain(now)) return false
  return true
}

const received: Departure = { copies: 1, mayOvertake: false }

/**
 * Passes a frame through the hops; returns its departure time, or a negative number for a dropped frame. `departure` of the last
 * hop has the number of copies.
 */
export function passHops(
  hops: readonly Hop[],
  bytes: Uint8Array,
  offset: number,
  length: number,
  now: number,
  clock: WallClock,
): number {
  let due = now
  let arrival = received
  for (const hop of hops) {
    due = hop.pass(bytes, offset, length, due, arrival, clock)
    if (due < 0) return due
    arrival = hop.departure
  }
  return due
}
