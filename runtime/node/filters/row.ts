import type { Static, TObject, TProperties } from '@sinclair/typebox'
import type { LineType } from '../../../src/model/capture.ts'

/**
 * What a frame meets on its way: gets it with the time (performance.now(), ms) at which it would leave, and gives back when it
 * leaves. Negative: it is dropped, and counted.
 */
export type Stage = (bytes: Uint8Array, offset: number, length: number, due: number) => number

/** Set by a stage that wants the frame to leave more than once, or out of order. */
export interface Departure {
  /** They stay together: what becomes of one becomes of all, and each counts. */
  copies: number
  mayOvertake: boolean
}

/** What a stage works with: one direction of a port. */
export interface StageContext {
  /** A number from 0 to 1. */
  readonly random: () => number
  readonly departure: Departure
  /** Counts the frame by the counter of the filter. */
  readonly count: () => void
  /** The same for a frame that is dropped: what the stage gives back. */
  readonly drop: () => number
}

/** What a filter does: `P` are the members of its compiled form. */
export interface FilterRow<P extends TProperties> {
  /** The compiled form, which the keeper gets and checks. */
  readonly compiled: P
  /** Compiles what a client gave, of which the first is not off; undefined when nothing is to be done. 400. */
  compile(parameters: readonly (number | string)[], line: LineType): Static<TObject<P>> | undefined
  /** The stage for one direction of a port; each has its own state. */
  stage(filter: Static<TObject<P>>, context: StageContext): Stage
}

/** Infers the types of a row from its compiled form. */
export const row = <P extends TProperties>(definition: FilterRow<P>): FilterRow<P> => definition
