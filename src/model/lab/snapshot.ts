import { type Static, Type } from '@sinclair/typebox'
import { Name, Uuid } from '../../schema/fields.ts'

/** A state of a lab that was kept. */
export type LabSnapshot = Static<typeof LabSnapshot>
export const LabSnapshot = Type.Object(
  {
    snapshot_id: Uuid,
    project_id: Uuid,
    name: Name,
    created_at: Type.Integer({ description: 'Seconds since 1970' }),
    size: Type.Integer({ description: 'Bytes of its files; a file system may share them with those of the project' }),
  },
  { $id: 'LabSnapshot', description: 'A state of a project that was kept: nodes, links, drawings and files' },
)

export const LabSnapshotCreate = Type.Object(
  { name: Name },
  { $id: 'LabSnapshotCreate', additionalProperties: false, description: 'What a snapshot is created with' },
)
