import { type TSchema, Type } from '@sinclair/typebox'
import { Compute } from '../../model/compute.ts'
import { DirectLink } from '../../model/direct-link.ts'
import { Load } from '../../model/host.ts'
import { LabEvent, LabListEvent, LogEvent } from '../../model/lab/event.ts'
import { objectSchema, oneOf } from '../../model/schema/fields.ts'
import { nodeFields } from '../../model/schema/node-fields.ts'
import { ProjectV2 } from './views.ts'

const event = <const A extends string, E extends TSchema>(actions: readonly A[], resource: E) =>
  Type.Object({ action: oneOf(actions), event: resource })

/** What a feed says of itself. */
const notices = [
  event(['ping'], Load),
  event(
    ['resync'],
    objectSchema('FeedResync', 'Events were lost: read the resources again', { message: Type.String() }),
  ),
] as const

const numbers = {
  seq: Type.Optional(
    Type.Integer({ minimum: 0, description: 'Number of the event: `?since=` continues the feed after it' }),
  ),
  by: Type.Optional(
    Type.String({ description: 'Name of the token or user that caused it; absent: no request caused it' }),
  ),
}

/** A line of the feed of a lab. */
export const LabFeedLine = Type.Intersect([Type.Union([LabEvent, ...notices]), Type.Object(numbers)], {
  $id: 'LabFeedLine',
  description: 'A line of the feed of a project. A newer service may send other actions',
})

/** Events of projects on computes. */
const ofComputes = [
  event(
    ['node.created', 'node.updated', 'node.deleted'],
    objectSchema('AnyNode', 'A node on its compute; its other members depend on its kind', nodeFields),
  ),
  event(['link.updated', 'link.deleted'], DirectLink),
  event(['project.updated', 'project.closed'], ProjectV2),
  LogEvent,
] as const

/** A line of the feed of a service. */
export const ServiceFeedLine = Type.Intersect(
  [
    Type.Union([
      ...ofComputes,
      LabListEvent,
      event(['compute.created', 'compute.updated', 'compute.deleted'], Compute),
      ...notices,
    ]),
    Type.Object({
      ...numbers,
      project_id: Type.Optional(Type.String({ description: 'The project of an event with a `seq`' })),
    }),
  ],
  {
    $id: 'ServiceFeedLine',
    description:
      'A line of the feed of all projects and computes. Events with a `seq` are of projects as their computes have them. A newer service may send other actions',
  },
)
