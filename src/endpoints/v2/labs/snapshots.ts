import { Type } from '@sinclair/typebox'
import { duplicateLab } from '../../../labs/archives/duplicate.ts'
import { removeSnapshot, restoreSnapshot, snapshotView, takeSnapshot } from '../../../labs/snapshots/snapshots.ts'
import { editsOf, undoEdit } from '../../../labs/undo/undo.ts'
import { LabEdits } from '../../../model/lab/edits.ts'
import { LabProject } from '../../../model/lab/project.ts'
import { LabSnapshot, LabSnapshotCreate } from '../../../model/lab/snapshot.ts'
import { maybe, Name, oneOf, Uuid } from '../../../model/schema/fields.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { base, labsOf, noSuchProject, projectParam, requireNotHandedOut } from './lab-request.ts'

const owner = 'self'
const tag = 'v2 snapshots'
const path = `${base}/{project_id}/snapshots`
const inProject = Type.Object(projectParam)
const params = Type.Object({ ...projectParam, snapshot_id: Uuid })
const unknown = 'There is no such project'
const noSuchSnapshot = 'There is no such project or snapshot'
const full = { 507: 'The disk is nearly full; nothing has changed' }

/** Snapshots and copies of labs. */
export const labSnapshotEndpoints: readonly Endpoint[] = [
  endpoint({
    ...{ method: 'POST', path: `${base}/{project_id}/duplicate`, owner, tag: 'v2 projects', params: inProject },
    summary: 'Create a closed copy of a project, with new ids; its nodes must be stopped',
    body: Type.Object(
      {
        name: Name,
        path: maybe(Type.String({ minLength: 1, maxLength: 4096, description: 'Directory on its first compute' })),
        reset_mac_addresses: Type.Optional(
          Type.Boolean({ default: false, description: 'Whether the nodes of the copy get other MAC addresses' }),
        ),
      },
      { $id: 'LabProjectCopy', additionalProperties: false, description: 'Input of a copy of a project' },
    ),
    replies: { 201: { description: 'The copy, closed', schema: LabProject } },
    errors: { 404: unknown, 409: 'A node is running, its kind cannot be copied, or the name is taken', ...full },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      const { caller } = context
      const { labName } = context.conventions ?? {}
      const name = labName === undefined ? body.name : await labs.registry.freeName(body.name, labName)
      context.projects.requireNew({ ...body, name })
      const input = { ...body, name, scope: context.projects.scope }
      return created(await duplicateLab(labs, await labs.find(params.project_id), input, { agentFor, caller }))
    },
  }),
  endpoint({
    ...{ method: 'GET', path: `${base}/{project_id}/edits`, owner, tag: 'v2 projects', params: inProject },
    summary: 'Read what undo and redo take: the latest edits of the caller',
    replies: { 200: { description: 'The edits', schema: LabEdits } },
    errors: { 404: noSuchProject },
    async handle({ params }, context) {
      return ok(editsOf(await labsOf(context).labs.lab(params.project_id)))
    },
  }),
  ...(['undo', 'redo'] as const).map((way) =>
    endpoint({
      ...{ method: 'POST', path: `${base}/{project_id}/${way}`, owner, tag: 'v2 projects', params: inProject },
      summary: way === 'undo' ? 'Revert your last edit of an open project' : 'Redo the edit that you reverted last',
      description: 'The last 100 edits are stored while the project is open. A deleted node gets its files back.',
      bodyKind: 'ignored',
      query: Type.Object({
        whose: Type.Optional(
          oneOf(['own', 'all'], {
            default: 'own',
            description: 'own: your own last edit; all: the last edit, whoever made it',
          }),
        ),
      }),
      replies: { 200: { description: 'The project', schema: LabProject } },
      errors: {
        404: noSuchProject,
        409: `There is nothing to ${way}, somebody else has edited the same since, or the edit cannot be reverted; the message says why`,
      },
      async handle({ params, query: { whose } }, context) {
        const { labs, agentFor } = labsOf(context)
        const lab = await labs.lab(params.project_id)
        const check = (name: string) => context.projects.requireName(lab.id, name)
        return ok(await undoEdit(labs, lab, { way, check, ...(whose !== undefined && { whose }) }, agentFor))
      },
    }),
  ),
  endpoint({
    method: 'GET',
    path,
    owner,
    tag,
    params: inProject,
    summary: 'List the snapshots of a project',
    replies: { 200: { description: 'The snapshots, the oldest first', schema: Type.Array(LabSnapshot) } },
    errors: { 404: unknown },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.find(params.project_id)
      return ok([...lab.document.snapshots.values()].map((it) => snapshotView(lab, it)))
    },
  }),
  endpoint({
    method: 'POST',
    path,
    owner,
    tag,
    params: inProject,
    summary: 'Take a snapshot of a project: nodes, links, drawings, files, and the memory of running machines',
    body: LabSnapshotCreate,
    replies: { 201: { description: 'The snapshot', schema: LabSnapshot } },
    errors: {
      404: unknown,
      409: 'A running node must be stopped for a snapshot, the name is taken, or there are too many snapshots',
      ...full,
    },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      return created(await takeSnapshot(labs, await labs.find(params.project_id), body.name, agentFor))
    },
  }),
  endpoint({
    method: 'DELETE',
    path: `${path}/{snapshot_id}`,
    owner,
    tag,
    params,
    summary: 'Delete a snapshot',
    replies: { 204: { description: 'Deleted' } },
    errors: { 404: noSuchSnapshot },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.find(params.project_id)
      const { project } = lab.document
      if (project.class?.start_snapshot_id === params.snapshot_id.toLowerCase()) requireNotHandedOut(project, context)
      await removeSnapshot(labs, lab, params.snapshot_id, agentFor)
      return noContent
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${path}/{snapshot_id}/restore`, owner, tag, params },
    summary: 'Stop the nodes of a project and restore it; ids stay, and nodes that were running are started again',
    bodyKind: 'ignored',
    replies: { 201: { description: 'The project', schema: LabProject } },
    errors: { 404: noSuchSnapshot, 503: 'A compute of the project is not connected; nothing has changed', ...full },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      return created(await restoreSnapshot(labs, await labs.find(params.project_id), params.snapshot_id, agentFor))
    },
  }),
]
