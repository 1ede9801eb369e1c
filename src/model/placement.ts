import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '../schema/fields.ts'

const maxLabels = 50

/** A word, or a word with a value. */
export const ComputeLabel = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}(=[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,127})?$',
  expects: 'a label such as kvm or site=berlin',
  description: 'A word, or a word with a value: `kvm`, `site=berlin`',
})

export const policies = ['room', 'spread', 'pack'] as const
export type PlacementPolicy = (typeof policies)[number]

/** What a project or a node asks of the computes for its nodes. */
export type Placement = Static<typeof Placement>
export const Placement = Type.Object(
  {
    policy: Type.Optional(
      oneOf(policies, {
        description:
          'room: the computes of the project while they have room, then the one with most room; pack: likewise, then the fullest ' +
          'one that has room; spread: the one with the fewest nodes of the project. Default: that of the project, else room',
      }),
    ),
    labels: Type.Optional(
      Type.Array(ComputeLabel, {
        maxItems: maxLabels,
        uniqueItems: true,
        description:
          'Labels that the compute must have, beside those that the project asks for. A word without a value stands for any value',
      }),
    ),
  },
  {
    $id: 'Placement',
    additionalProperties: false,
    default: {},
    description: 'Which computes get the new nodes that name none',
  },
)

/** The labels that an administrator gives a compute. */
export const OwnLabels = Type.Array(ComputeLabel, {
  maxItems: maxLabels,
  uniqueItems: true,
  description: 'Labels that were given to the compute, such as `site=berlin`, beside those that it found itself',
})
