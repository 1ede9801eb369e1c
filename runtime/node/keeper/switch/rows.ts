import { RingWriter } from './capture-ring.ts'
import type { Counters } from './counters.ts'
import { Hop } from './hop.ts'
import type { Direction, Impairment, LaneSpec } from './path.ts'
import type { WallClock } from './wall-clock.ts'

/** The way of frames from one end to another. */
export interface Lane<End> {
  readonly output: End
  readonly hops: readonly Hop[]
}

/** The longest that a captured frame waits before its reader is told, ms; the file has it well within 100 ms. */
const tellMs = 50
/** And the most bytes. */
const tellBytes = 256 << 10

interface Row {
  readonly out: Hop
  readonly in: Hop
  ring: RingWriter | null
}

/** Stages and captures of the ports, by row. */
export class Rows {
  readonly #rows = new Map<number, Row>()
  readonly #capturing = new Set<number>()
  readonly #counters: Counters
  readonly #captured: (row: number) => void
  /** When the readers have to be told of what is in the rings; Infinity: nothing is. */
  tellAt = Number.POSITIVE_INFINITY

  constructor(counters: Counters, captured: (row: number) => void) {
    this.#counters = counters
    this.#captured = captured
  }

  hop(row: number, direction: Direction): Hop {
    return this.#row(row)[direction]
  }

  lane<End>(spec: LaneSpec, output: End): Lane<End> {
    return { output, hops: spec.hops.map(({ row, direction }) => this.hop(row, direction)) }
  }

  impair(row: number, impairment: Impairment): void {
    this.#row(row).out.impair(impairment)
    this.#row(row).in.impair(impairment)
  }

  capture(row: number, ring: SharedArrayBuffer | null): void {
    const it = this.#row(row)
    if (it.ring !== null && it.ring.untold > 0) this.#captured(row)
    it.ring = ring === null ? null : new RingWriter(ring)
    it.out.capture(it.ring)
    it.in.capture(it.ring)
    if (ring === null) this.#capturing.delete(row)
    else this.#capturing.add(row)
  }

  forget(row: number): void {
    this.capture(row, null)
    this.#rows.delete(row)
  }

  /** To be called when frames passed that were not plain: sees to it that captures are told of in time. */
  passed(now: number): void {
    if (this.#capturing.size === 0) return
    for (const row of this.#capturing) {
      const untold = this.#rows.get(row)?.ring?.untold ?? 0
      if (untold >= tellBytes) this.#tell(row)
      else if (untold > 0 && this.tellAt === Number.POSITIVE_INFINITY) this.tellAt = now + tellMs
    }
  }

  /** Tells the readers of everything. */
  tell(): void {
    this.tellAt = Number.POSITIVE_INFINITY
    for (const row of this.#capturing) if ((this.#rows.get(row)?.ring?.untold ?? 0) > 0) this.#tell(row)
  }

  #tell(row: number): void {
    this.#rows.get(row)?.ring?.told()
    this.#captured(row)
  }

  #row(row: number): Row {
    let it = this.#rows.get(row)
    if (it === undefined) {
      it = { out: new Hop(this.#counters, row, 'out'), in: new Hop(this.#counters, row, 'in'), ring: null }
      this.#rows.set(row, it)
    }
    return it
  }
}

/** Whether frames of a lane only have to be counted and sent. */
export function isPlain(hops: readonly Hop[], now: number): boolean {
  for (const hop of hops) if (!hop.isPlain(now)) return false
  return true
}

/** Takes a frame over the hops; when the last lets it leave, or negative. `copies` of the last hop tells how often. */
export function passHops(
  hops: readonly Hop[],
  bytes: Uint8Array,
  offset: number,
  length: number,
  now: number,
  clock: WallClock,
): number {
  let due = now
  let copies = 1
  for (const hop of hops) {
    due = hop.pass(bytes, offset, length, due, copies, clock)
    if (due < 0) return due
    copies = hop.copies
  }
  return due
}
