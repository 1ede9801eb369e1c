import { type Static, Type } from '@sinclair/typebox'
import { type NodeKindName, nodeKinds } from './kinds/node.ts'
import { closedSchema, maybe, objectSchema, oneOf, Uuid } from './schema/fields.ts'
import { Filters } from './schema/filters.ts'
import { Nio } from './schema/nio.ts'

const number = (what: string) => Type.Integer({ minimum: 0, maximum: 100_000, description: `Number of the ${what}` })

export type LinkEnd = Static<typeof LinkEnd>
export const LinkEnd = closedSchema('LinkEnd', 'A port of a node', {
  project_id: Uuid,
  node_type: Type.Unsafe<NodeKindName>(oneOf(nodeKinds, { description: 'Kind of the node' })),
  node_id: Uuid,
  adapter_number: number('adapter'),
  port_number: number('port of the adapter'),
})

/** Clients send the ends of a link back as they were shown, each with its NIO. */
const LinkEndGiven = closedSchema('LinkEndGiven', 'A port of a node', {
  ...LinkEnd.properties,
  /** Ignored: the service makes a new NIO with the `filters` of the link. */
  nio: maybe(Nio),
})

export type LinkCreate = Static<typeof LinkCreate>
export const LinkCreate = closedSchema('LinkCreate', 'The two ports of a new link', {
  nodes: Type.Tuple([LinkEndGiven, LinkEndGiven], { description: 'The two ends; they may be on two computes' }),
  filters: Type.Optional(Filters),
})

export type Link = Static<typeof Link>
export const Link = objectSchema('Link', 'Two ports that are linked by UDP', {
  nodes: Type.Array(Type.Object({ ...LinkEnd.properties, nio: Nio }), {
    description: 'The ends, in the order of the request',
  }),
})
