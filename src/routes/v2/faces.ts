import { type Static, Type } from '@sinclair/typebox'
import { maybe, Name, nullable, Uuid } from '../../model/common.ts'
import type { LabEvent } from '../../model/event.ts'
import { type Project, Variable, WantedCompute } from '../../model/project.ts'

/** A project as v2 shows it. */
export type ProjectV2 = Static<typeof ProjectV2>
export const ProjectV2 = Type.Object(
  { project_id: Uuid, name: nullable(Type.String()), variables: nullable(Type.Array(Variable)) },
  { $id: 'ComputeProject', description: 'A project, as v2 shows it' },
)
export const projectV2 = ({ project_id, name, variables }: Project): ProjectV2 => ({ project_id, name, variables })

/** Drawing fields that a controller sends along; they mean nothing to a compute. */
const ignored = Object.fromEntries(
  [
    'auto_close',
    'auto_open',
    'auto_start',
    'scene_width',
    'scene_height',
    'zoom',
    'show_layers',
    'snap_to_grid',
    'show_grid',
    'grid_size',
    'drawing_grid_size',
    'show_interface_labels',
    'supplier',
  ].map((name) => [name, Type.Optional(Type.Unknown({ description: 'Accepted and ignored' }))]),
)

export const ProjectV2Create = Type.Object(
  {
    ...ignored,
    name: nullable(Name),
    path: maybe(Type.String({ minLength: 1, maxLength: 4096, description: 'Absolute directory; see the v1 face' })),
    project_id: maybe(Uuid),
    variables: maybe(Type.Array(Variable, { maxItems: 1000 })),
    compute_id: maybe(WantedCompute),
  },
  { $id: 'ComputeProjectCreate', additionalProperties: false, description: 'What a project is created with in v2' },
)
export const ProjectV2Update = Type.Object(
  { ...ignored, name: maybe(Name), variables: maybe(Type.Array(Variable, { maxItems: 1000 })) },
  {
    $id: 'ComputeProjectUpdate',
    additionalProperties: false,
    description: 'Changes of a project; absent and null mean "leave"',
  },
)

/** v2 names of events. */
export function eventV2({ happening }: LabEvent): { action: string; event: unknown } {
  switch (happening.type) {
    case 'node.created':
    case 'node.updated':
    case 'node.deleted':
      return { action: happening.type, event: happening.node }
    case 'project.updated':
    case 'project.closed':
      return { action: happening.type, event: projectV2(happening.project) }
    default:
      return { action: happening.type, event: { message: happening.message } }
  }
}
