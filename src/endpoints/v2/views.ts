import { type Static, type TSchema, Type } from '@sinclair/typebox'
import type { NumberedEvent } from '../../model/event.ts'
import { nodeView } from '../../model/kinds/node.ts'
import { Project, ProjectUpdate, Variable, WantedCompute } from '../../model/project.ts'
import { closedSchema, maybe, Name, nullable, objectSchema, Uuid } from '../../model/schema/fields.ts'
import type { EventEncoder } from '../../server/feeds/feed.ts'
import { sinceQuery, view } from '../../server/http/params.ts'

/** A project as v2 shows it. */
export type ProjectV2 = Static<typeof ProjectV2>
export const ProjectV2 = objectSchema('ComputeProject', 'A project, as v2 shows it', {
  project_id: Uuid,
  name: nullable(Type.String()),
  variables: nullable(Type.Array(Variable)),
  path: Type.Optional(inFull(Project.properties.path)),
  location: Type.Optional(inFull(Project.properties.location)),
  temporary: Type.Optional(inFull(Project.properties.temporary)),
  compute_id: Project.properties.compute_id,
  status: Project.properties.status,
})
export const projectV2 = (project: Project, view?: 'full'): ProjectV2 => {
  const { project_id, name, variables, status, compute_id } = project
  if (view === 'full') return project
  return {
    project_id,
    name,
    variables,
    ...(compute_id !== undefined && { compute_id }),
    ...(status === 'closed' && { status }),
  }
}

function inFull<T extends TSchema>(schema: T): T {
  return { ...schema, description: `${schema.description}; shown with view=full` }
}

/** Settings of the map that controllers send; a compute ignores them. */
const ignored = Object.fromEntries(
  [
    ...['auto_close', 'auto_open', 'auto_start', 'scene_width', 'scene_height', 'zoom', 'show_layers'],
    ...['snap_to_grid', 'show_grid', 'grid_size', 'drawing_grid_size', 'show_interface_labels', 'supplier'],
  ].map((name) => [name, Type.Optional(Type.Unknown({ description: 'Accepted and ignored' }))]),
)

export const ProjectV2Create = closedSchema('ComputeProjectCreate', 'The input that creates a project in v2', {
  ...ignored,
  name: nullable(Name),
  path: maybe(Type.String({ minLength: 1, maxLength: 4096, description: 'Absolute directory; see v1' })),
  project_id: maybe(Uuid),
  temporary: maybe(Type.Boolean({ default: false, description: 'Deleted from disk when it is closed' })),
  variables: maybe(Type.Array(Variable, { maxItems: 1000 })),
  compute_id: maybe(WantedCompute),
})
export const ProjectV2Update = closedSchema(
  'ComputeProjectUpdate',
  'Changes to a project; absent or null members stay unchanged',
  { ...ignored, ...ProjectUpdate.properties },
)

export const feedQuery = Type.Object({
  ...sinceQuery.properties,
  ...view,
  pings: Type.Optional(
    Type.Literal('false', {
      description: 'Only the first ping is sent: for clients that detect a lost connection by other means',
    }),
  ),
})
/** Events in v2. */
export const encoderOf =
  ({ view }: Static<typeof feedQuery>): EventEncoder =>
  (event) =>
    eventView(event, view)

function eventView({ payload }: NumberedEvent, view: 'full' | undefined): ReturnType<EventEncoder> {
  switch (payload.type) {
    case 'node.created':
    case 'node.updated':
    case 'node.deleted':
      return {
        action: payload.type,
        event: nodeView(payload.node),
        ...(view === 'full' && payload.change !== undefined && { change: payload.change }),
      }
    case 'project.updated':
    case 'project.closed':
      return { action: payload.type, event: projectV2(payload.project, view) }
    case 'link.updated':
    case 'link.deleted':
      return { action: payload.type, event: payload.link }
    case 'other': {
      const { action, event, more } = payload
      return { ...(view === 'full' && more), action, event }
    }
    default:
      return { action: payload.type, event: { message: payload.message } }
  }
}
