import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from './schema/fields.ts'

const maxLabels = 50

/** A word, or a word with a value. */
export const ComputeLabel = Type.String({
  minLength: 1,
  maxLength: 200,
  pattern: '^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}(=[A-Za-z0-9][A-Za-z0-9 ._:/+-]{0,127})?$',
  expects: 'a label such as kvm or site=berlin',
  description: 'A word, or a word with a value: `kvm`, `site=berlin`',
})

const policies = ['room', 'spread', 'pack'] as const
export type PlacementPolicy = (typeof policies)[number]

/** What a project or a node asks of the computes for its nodes. */
export type Placement = Static<typeof Placement>
export const Placement = Type.Object(
  {
    policy: Type.Optional(
      oneOf(policies, {
        description:
          'room: the computes of the project while they have capacity, then the one with most free capacity; pack: likewise, then the fullest ' +
          'one that has capacity; spread: the one with the fewest nodes of the project. Default: the policy of the project, else room',
      }),
    ),
    labels: Type.Optional(
      Type.Array(ComputeLabel, {
        maxItems: maxLabels,
        uniqueItems: true,
        description:
          'Labels that the compute must have, in addition to those of the project. A label without a value matches any value',
      }),
    ),
  },
  {
    $id: 'Placement',
    additionalProperties: false,
    default: {},
    description: 'How computes are chosen for new nodes that name none',
  },
)

/** The labels that an administrator gives a compute. */
export const OwnLabels = Type.Array(ComputeLabel, {
  maxItems: maxLabels,
  uniqueItems: true,
  description: 'Labels that were given to the compute, such as `site=berlin`, in addition to those that it detects',
})
