import type { TProperties } from '@sinclair/typebox'
import { type Filter, filters } from '../../filters/index.ts'
import type { Departure, FilterRow, Stage } from '../../filters/row.ts'
import { at, type Counters, filterColumns } from './counters.ts'

const rows: Readonly<Record<string, FilterRow<TProperties>>> = filters
const dropped = -1

/** One direction of a port, as its stages see it. */
export interface StagesOf {
  readonly row: number
  readonly counters: Counters
  readonly random: () => number
  readonly departure: Departure
}

/** The stages of a link: a suspended link drops everything, otherwise the filters in their order. */
export function makeStages(
  { suspend, filters }: { readonly suspend: boolean; readonly filters: readonly Filter[] },
  { row, counters, random, departure }: StagesOf,
): Stage[] {
  const stage = (column: number, make: (count: () => void, drop: () => number) => Stage): Stage => {
    const count = () => counters.add(row, column, departure.copies)
    return make(count, () => {
      count()
      return dropped
    })
  }
  return [
    ...(suspend ? [stage(at.suspended, (_, drop) => drop)] : []),
    ...filters.flatMap((filter) => {
      const column = filterColumns[filter.type]
      const made = rows[filter.type]
      return made === undefined
        ? []
        : [stage(column, (count, drop) => made.stage(filter, { random, departure, count, drop }))]
    }),
  ]
}

/** A random number generator, 0 to 1 (xoshiro128**, Blackman and Vigna), seeded from the system. */
export function randomSource(): () => number {
  const state = crypto.getRandomValues(new Uint32Array(4))
  let [a, b, c, d] = state as unknown as [number, number, number, number]
  return () => {
    const scaled = Math.imul(b, 5)
    const result = Math.imul((scaled << 7) | (scaled >>> 25), 9)
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return (result >>> 0) / 4294967296
  }
}
