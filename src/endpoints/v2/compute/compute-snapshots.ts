import { Type } from '@sinclair/typebox'
import { ProjectSnapshot, RestoreStep } from '../../../model/project-snapshot.ts'
import { closedSchema, Uuid } from '../../../model/schema/fields.ts'
import { created, type Endpoint, endpoint, ok } from '../../../server/http/endpoint.ts'
import { noSuchProject, projectParams, unknownProject } from '../../../server/http/params.ts'
import { noContentAfter } from '../../compute/no-content.ts'

const path = '/v2/compute/projects/{project_id}/snapshots'
const tag = 'v2 compute snapshots'
const params = Type.Object({ ...projectParams.properties, snapshot_id: Uuid })
const unknown = 'There is no such project or snapshot'

/** Snapshots of the part of a project that a compute has. */
export const computeSnapshotEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path,
    tag,
    params: projectParams,
    summary: 'List the snapshots of a project, open or closed',
    replies: { 200: { description: 'The oldest first', schema: Type.Array(ProjectSnapshot) } },
    errors: { 404: unknownProject },
    handle: async ({ params }, { agent }) => ok(await agent.snapshots.list(params.project_id)),
  }),
  endpoint({
    method: 'POST',
    path: `${path}/{snapshot_id}`,
    tag,
    params,
    summary: 'Take a snapshot of the nodes and files of a project, with the memory of running machines',
    bodyKind: 'ignored',
    replies: { 201: { description: 'The snapshot', schema: ProjectSnapshot } },
    errors: {
      404: noSuchProject,
      409: 'A node must be stopped for a snapshot, or the id is taken',
      507: 'The disk is nearly full',
    },
    handle: async ({ params }, { agent }) =>
      created(await agent.snapshots.take(params.project_id, params.snapshot_id.toLowerCase())),
  }),
  endpoint({
    method: 'DELETE',
    path: `${path}/{snapshot_id}`,
    tag,
    params,
    isUncounted: true,
    summary: 'Delete a snapshot',
    replies: { 204: { description: 'Deleted' } },
    errors: { 404: unknown },
    handle: ({ params }, { agent }) =>
      noContentAfter(agent.snapshots.remove(params.project_id, params.snapshot_id.toLowerCase())),
  }),
  endpoint({
    ...{ method: 'POST', path: `${path}/{snapshot_id}/restore`, tag, params, isUncounted: true },
    summary: 'One step of a restore: prepare, commit while the project is closed, then finish; undo reverts it',
    body: closedSchema('RestoreSnapshot', 'The step', { step: RestoreStep }),
    replies: { 204: { description: 'Done' } },
    errors: {
      404: unknown,
      409: 'Another step has to come first, or the project is open',
      507: 'The disk is nearly full',
    },
    handle: ({ params, body }, { agent }) =>
      noContentAfter(agent.snapshots.restore(params.project_id, params.snapshot_id.toLowerCase(), body.step)),
  }),
]
