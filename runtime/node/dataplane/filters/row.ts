import type { Static, TObject, TProperties } from '@sinclair/typebox'
import type { LineType } from '../../../../src/model/capture.ts'

/**
 * A step of a frame's way: gets the frame with the time at which it would leave (performance.now(), ms), and returns the new time, or a
 * negative number for a dropped frame.
 */
export type Stage = (bytes: Uint8Array, offset: number, length: number, due: number) => number

/** Set by a stage to make the frame leave more than once, or out of order. */
export interface Departure {
  /** Number of copies. Later stages treat them as one frame, and count each. */
  copies: number
  mayOvertake: boolean
}

/** The context of a stage: one direction of a port. */
export interface StageContext {
  /** A number from 0 to 1. */
  readonly random: () => number
  readonly departure: Departure
  /** Adds the frame to the counter of the filter. */
  readonly count: () => void
  /** Counts a dropped frame, and returns the result for the stage. */
  readonly drop: () => number
}

/** A filter. `P`: the members of its compiled form. */
export interface FilterRow<P extends TProperties> {
  /** The schema of the compiled form; the keeper validates it. */
  readonly compiled: P
  /** Compiles the parameters of a client, the first of which is not 0 or empty; undefined for a filter without effect. 400. */
  compile(parameters: readonly (number | string)[], line: LineType): Static<TObject<P>> | undefined
  /** The stage for one direction of a port; each has its own state. */
  stage(filter: Static<TObject<P>>, context: StageContext): Stage
}

/** Infers the types of a row from its compiled form. */
export const row = <P extends TProperties>(definition: FilterRow<P>): FilterRow<P> => definition
