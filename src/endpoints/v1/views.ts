import { type Static, Type } from '@sinclair/typebox'
import type { NumberedEvent } from '../../model/event.ts'
import { kindOf, type Node, nodeView } from '../../model/kinds/node.ts'
import { Project as Full, ProjectUpdate, WantedCompute } from '../../model/project.ts'
import { closedSchema, maybe, Name, nullable, Uuid } from '../../model/schema/fields.ts'

/** A project as v1 shows it. */
export type ProjectV1 = Static<typeof ProjectV1>
export const ProjectV1 = Type.Omit(Full, ['variables'], {
  $id: 'Project',
  description: 'A project: a named working directory with nodes in it',
})
export const projectV1 = ({ project_id, name, path, location, temporary, status }: Full): ProjectV1 => ({
  project_id,
  name,
  path,
  location,
  temporary,
  ...(status === 'closed' && { status }),
})

const path = Type.String({
  minLength: 1,
  maxLength: 4096,
  description: 'Absolute directory; local mode only, unless it lies in the projects directory',
})
export const ProjectV1Create = closedSchema(
  'ProjectCreate',
  'The input that creates a project; every member is optional',
  {
    project_id: maybe(Uuid),
    name: maybe(Name),
    path: maybe(path),
    temporary: Type.Optional(nullable(Type.Boolean())),
    compute_id: maybe(WantedCompute),
  },
)
export const ProjectV1Update = Type.Omit(ProjectUpdate, ['variables'], {
  $id: 'ProjectUpdate',
  additionalProperties: false,
  description: 'Changes to a project; absent or null members stay unchanged',
})

/** A node of any kind as v1 shows it. */
export const instanceV1 = (node: Node): object => kindOf(node.kind).v1.toView(nodeView(node))

/** An event in v1, which has only starts and stops of nodes, and messages. */
export function eventV1({ payload }: NumberedEvent): { action: string; event: unknown } | undefined {
  switch (payload.type) {
    case 'node.updated':
      if (payload.change !== 'started' && payload.change !== 'stopped') return undefined
      if (!kindOf(payload.node.kind).v1.hasEvents) return undefined
      return { action: `vm.${payload.change}`, event: instanceV1(payload.node) }
    case 'log.error':
    case 'log.warning':
      return { action: payload.type, event: { message: payload.message } }
    default:
      return undefined
  }
}
