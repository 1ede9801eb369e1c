import { type Static, Type } from '@sinclair/typebox'
import { closedSchema, Name, nullable, objectSchema, oneOf, Uuid } from '../../schema/fields.ts'

const JobAction = oneOf(['start', 'stop', 'suspend', 'resume', 'reload'])

/** A node of a job. */
export type LabJobNode = Static<typeof LabJobNode>
export const LabJobNode = objectSchema('LabJobNode', 'A node of a job', {
  node_id: Uuid,
  name: Name,
  state: oneOf(['waiting', 'asked', 'unready', 'done', 'failed', 'skipped', 'cancelled'], {
    description: 'unready: started, but not ready yet; skipped: a node that had to be ready before it has failed',
  }),
  reason: nullable(Type.String({ description: 'What the node waits for, or why it was not done' })),
})

/** Work on nodes of a project. It goes on when its client disconnects. */
export type LabJob = Static<typeof LabJob>
export const LabJob = objectSchema('LabJob', 'Work on nodes of a project', {
  job_id: Uuid,
  project_id: Uuid,
  action: JobAction,
  status: oneOf(['running', 'done', 'failed', 'cancelled'], { description: 'failed: at least one node has failed' }),
  reason: nullable(Type.String({ description: 'Why the first node failed, or the job was cancelled' })),
  started_at: Type.String({ description: 'Time in UTC (RFC 3339)' }),
  ended_at: nullable(Type.String()),
  total: Type.Integer({ description: 'Number of nodes of the job' }),
  done: Type.Integer(),
  failed: Type.Integer(),
  skipped: Type.Integer(),
  nodes: Type.Array(LabJobNode, { description: 'Nodes that are not done: the failed ones first, at most 100' }),
})

export type LabJobCreate = Static<typeof LabJobCreate>
export const LabJobCreate = closedSchema('LabJobCreate', 'Work on nodes of a project', {
  action: JobAction,
  nodes: Type.Optional(
    Type.Array(Name, { minItems: 1, maxItems: 10_000, description: 'Ids or names; absent: all nodes' }),
  ),
})
