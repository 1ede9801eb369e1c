import type { Position } from './position.ts'

/** A value of the file with its position. */
export type Value = ScalarValue | ListValue | MapValue

interface Located {
  /** Where it is written; through an alias: where its anchor is. */
  readonly at: Position
  /** Its position in the text, as offsets: the alias, where it comes through one. */
  readonly range: readonly [start: number, end: number]
  /** It is written elsewhere: it comes from an anchor or a variable, or has a variable in it. */
  readonly isBorrowed?: true
}

export interface ScalarValue extends Located {
  readonly type: 'scalar'
  readonly value: string | number | boolean | null
  /** As it is written, without quotes. */
  readonly source: string
}

export interface ListValue extends Located {
  readonly type: 'list'
  readonly items: readonly Value[]
  readonly isFlow: boolean
}

export interface MapValue extends Located {
  readonly type: 'map'
  readonly entries: ReadonlyMap<string, Entry>
  readonly isFlow: boolean
}

export interface Entry {
  readonly key: Position
  readonly keyRange: readonly [start: number, end: number]
  readonly value: Value
}

/** The value at a key of a map. */
export const at = (map: Value | undefined, key: string): Value | undefined =>
  map?.type === 'map' ? map.entries.get(key)?.value : undefined
