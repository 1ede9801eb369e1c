import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from './schema/fields.ts'

const LabelName = Type.String({ pattern: '^[a-zA-Z_][a-zA-Z0-9_]*$' })

/** One figure of a family. */
export type MetricSample = Static<typeof MetricSample>
export const MetricSample = Type.Object(
  {
    suffix: Type.Optional(oneOf(['_bucket', '_sum', '_count'], { description: 'Part of a histogram' })),
    labels: Type.Record(LabelName, Type.String()),
    value: Type.Number({ description: 'Finite: JSON has no other numbers' }),
  },
  { additionalProperties: false },
)

/** Figures of one name that differ by their labels. Counters begin at zero with the process that counts. */
export type MetricFamily = Static<typeof MetricFamily>
export const MetricFamily = Type.Object(
  {
    name: Type.String({ pattern: '^[a-zA-Z_:][a-zA-Z0-9_:]*$', description: 'In base units; counters end in _total' }),
    help: Type.String(),
    type: oneOf(['counter', 'gauge', 'histogram']),
    samples: Type.Array(MetricSample, {
      description: 'The buckets of a histogram are cumulative, ascending, and followed by its sum and count',
    }),
  },
  { additionalProperties: false },
)

/** A family that is one figure without labels. */
export function single(
  name: string,
  type: Exclude<MetricFamily['type'], 'histogram'>,
  help: string,
  value: number,
): MetricFamily {
  return { name, help, type, samples: [{ labels: {}, value }] }
}
