import { type Static, type TInteger, type TOptional, type TSchema, Type } from '@sinclair/typebox'

const ms = { minimum: 0, maximum: 32767 }
const chance = { minimum: 0, maximum: 100 }

/** The parameters of a filter: a list of numbers, whose last ones may be absent. */
const parameters = (names: string, required: number, most: number, range: { minimum: number; maximum: number }) =>
  Type.Array(Type.Number(range), {
    minItems: required,
    maxItems: most,
    description: names,
    expects: `a list: [${names}]`,
  })

/** A filter of links. */
export interface FilterDeclaration {
  readonly schema: TSchema
  /** For a filter that drops frames: the description of its counter. */
  readonly drops?: string
  /** For a filter that changes frames: the name of its counter. */
  readonly counts?: string
}

/** Every filter; runtime/node/dataplane/filters has the effects on frames. */
export const filterRows = {
  frequency_drop: {
    schema: Type.Array(Type.Integer({ minimum: -1, maximum: 32767 }), {
      minItems: 1,
      maxItems: 1,
      description: '[n]: drops every n-th frame, -1: all of them',
      expects: 'a list: [n]',
    }),
    drops: 'By this filter',
  },
  packet_loss: { schema: parameters('percent', 1, 1, chance), drops: 'By this filter' },
  delay: { schema: parameters('latency in ms, jitter in ms', 1, 2, ms) },
  corrupt: { schema: parameters('percent', 1, 1, chance), counts: 'corrupted' },
  bpf: {
    schema: Type.Array(Type.String({ maxLength: 4096 }), {
      minItems: 1,
      maxItems: 2,
      description:
        '[expressions, one per line; link type]: drops frames that match one of the tcpdump expressions. The link type is DLT_EN10MB, on a serial port DLT_C_HDLC unless it is given',
      expects: 'a list: [expressions] or [expressions, link type]',
    }),
    drops: 'By this filter',
  },
  rate: {
    schema: parameters('kbit/s, burst in KB (16), longest wait in ms (100)', 1, 3, {
      minimum: 0,
      maximum: 100_000_000,
    }),
    drops: 'The line was busy for longer than the longest wait',
  },
  duplicate: { schema: parameters('percent', 1, 1, chance), counts: 'duplicated' },
  reorder: { schema: parameters('percent, ms held back (10)', 1, 2, ms) },
} as const satisfies Readonly<Record<string, FilterDeclaration>>

type Rows = typeof filterRows
export type FilterName = keyof Rows

const each = <T>(
  value: (row: FilterDeclaration, name: FilterName) => readonly [string, T] | undefined,
): Record<string, T> =>
  Object.fromEntries(
    Object.entries(filterRows).flatMap(([name, row]) => {
      const entry = value(row, name as FilterName)
      return entry === undefined ? [] : [entry]
    }),
  )

/** Impairments of a link, the same for both directions. A first parameter of 0 or "" means: off. */
export type Filters = Static<typeof Filters>
export const Filters = Type.Object(
  each(({ schema }, name) => [name, Type.Optional(schema)]) as { [N in FilterName]: TOptional<Rows[N]['schema']> },
  {
    $id: 'Filters',
    additionalProperties: false,
    expects: 'an object of filters, such as {"delay": [50, 10], "packet_loss": [1]}',
    description: 'Impairment of a link, in both directions. Frames pass the filters in the order of the members',
  },
)

const count = (description: string) => Type.Integer({ minimum: 0, description })

/** Counters of the frames that filters dropped, by filter. */
export const droppedByFilters = each(({ drops }, name) => (drops === undefined ? undefined : [name, count(drops)])) as {
  [N in FilterName as Rows[N] extends { drops: string } ? N : never]: TInteger
}
/** Counters of the frames that filters changed. */
export const countedByFilters = each(({ counts }) =>
  counts === undefined ? undefined : [counts, count(`Frames that the filter ${counts}`)],
) as {
  [N in FilterName as Rows[N] extends { counts: infer C extends string } ? C : never]: TInteger
}
