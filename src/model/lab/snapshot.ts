import { type Static, Type } from '@sinclair/typebox'
import { Name, Uuid } from '../schema/fields.ts'

export type LabSnapshot = Static<typeof LabSnapshot>
export const LabSnapshot = Type.Object(
  {
    snapshot_id: Uuid,
    project_id: Uuid,
    name: Name,
    created_at: Type.Integer({ description: 'Seconds since 1970' }),
    running: Type.Integer({
      description: 'Number of nodes that were running, not counting segments; a restore starts all of them again',
    }),
    size: Type.Integer({ description: 'Size of its files in bytes; blocks may be shared with the project' }),
  },
  { $id: 'LabSnapshot', description: 'A stored state of a project: nodes, links, drawings and files' },
)

export const LabSnapshotCreate = Type.Object(
  { name: Name },
  { $id: 'LabSnapshotCreate', additionalProperties: false, description: 'Input of a new snapshot' },
)
