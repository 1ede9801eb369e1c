import type { Departure, Stage } from '../../filters/row.ts'
import type { CaptureBuffer } from './capture-buffer.ts'
import { at, type Counters } from './counters.ts'
import type { Direction, PortImpairment } from './path.ts'
import { makeStages, randomSource } from './stages.ts'
import type { WallClock } from './wall-clock.ts'

/** One direction of a row: the stages of its frames, and their counters. */
export class Hop {
  readonly row: number
  readonly frames: number
  readonly bytes: number
  /** The departure of the last frame. */
  readonly departure: Departure = { copies: 1, mayOvertake: false }
  readonly #counters: Counters
  readonly #random = randomSource()
  #stages: readonly Stage[] = []
  #capture: CaptureBuffer | null = null
  /** Due time of the last frame that was kept in order. */
  #lastDue = 0

  constructor(counters: Counters, row: number, direction: Direction) {
    this.#counters = counters
    this.row = row
    this.frames = direction === 'out' ? at.outFrames : at.inFrames
    this.bytes = direction === 'out' ? at.outBytes : at.inBytes
  }

  impair(impairment: PortImpairment): void {
    const { row, departure } = this
    this.#stages = makeStages(impairment, { row, departure, counters: this.#counters, random: this.#random })
  }

  /** The next frame need not wait for earlier ones. */
  reset(): void {
    this.#lastDue = 0
  }

  capture(buffer: CaptureBuffer | null): void {
    this.#capture = buffer
  }

  /** Whether frames only need counting. */
  isPlain(now: number): boolean {
    return this.#stages.length === 0 && this.#capture === null && this.#lastDue <= now
  }

  /**
   * Passes a frame that arrives at `due` through the stages; returns its departure time, or a negative number for a dropped frame.
   * `clock` has the time of its reception. Frames stay in order unless a stage here or before permits overtaking, also after the
   * delay was reduced.
   */
  pass(bytes: Uint8Array, offset: number, length: number, due: number, arrival: Departure, clock: WallClock): number {
    const { departure } = this
    departure.copies = arrival.copies
    departure.mayOvertake = arrival.mayOvertake
    let leaves = due
    for (const stage of this.#stages) {
      leaves = stage(bytes, offset, length, leaves)
      if (leaves < 0) return leaves
    }
    if (!departure.mayOvertake) {
      leaves = Math.max(leaves, this.#lastDue)
      this.#lastDue = leaves
    }
    const { copies } = departure
    this.count(copies, copies * length)
    if (this.#capture !== null) {
      for (let copy = 0; copy < copies; copy++) this.#capture.append(bytes, offset, length, clock.seconds, clock.micros)
    }
    return leaves
  }

  /** Undoes the count of a passed frame: the delay queue is full. */
  overflow(length: number): void {
    this.count(-1, -length)
    this.#counters.add(this.row, at.queueFull, 1)
  }

  /** Counts frames that pass. */
  count(frames: number, bytes: number): void {
    this.#counters.add(this.row, this.frames, frames)
    this.#counters.add(this.row, this.bytes, bytes)
    if (this.frames === at.inFrames)
      this.#counters.set(this.row, at.outAtLastIn, this.#counters.get(this.row, at.outFrames))
  }
}
