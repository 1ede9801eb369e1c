import { type Static, Type } from '@sinclair/typebox'
import type { NodeAction } from '../../../host-agent.ts'
import { jobHeader } from '../../../labs/jobs/failure-reason.ts'
import { nodeRefOf } from '../../../labs/lab/node-on-compute.ts'
import { createNode } from '../../../labs/nodes/create-node.ts'
import { duplicateNode, nodeOnCompute, removeNode, runNodeAction } from '../../../labs/nodes/nodes.ts'
import { updateNode } from '../../../labs/nodes/update-node.ts'
import { abortable } from '../../../lib/async/abort.ts'
import { LabLink } from '../../../model/lab/link.ts'
import { LabNode, LabNodeCreate, LabNodeUpdate } from '../../../model/lab/node.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../../server/http/endpoint.ts'
import { base, labsOf, nodeParams, noSuchProject, projectParam } from './lab-request.ts'

const tag = 'v2 nodes'
const owner = 'self'
const list = `${base}/{project_id}/nodes`
const path = `${list}/{node_id}`
const inProject = Type.Object(projectParam)
const params = Type.Object(nodeParams)
const noSuchNode = 'There is no such project or node, or the project is closed'
const unique = Type.Object({
  unique: Type.Optional(
    Type.Literal('refuse', {
      description: 'refuse: 409 for a taken name; otherwise the node gets the next free name',
    }),
  ),
})
const startQuery = Type.Object({
  wait: Type.Optional(
    Type.Literal('ready', {
      description: 'ready: answer when all nodes are ready; otherwise when all start requests have ended',
    }),
  ),
})
const coordinate = Type.Integer({ minimum: -1_000_000, maximum: 1_000_000 })

export const labNodeEndpoints: readonly Endpoint[] = [
  // Before the paths of one node: else `start` would be the name of a node.
  ...(['start', 'stop', 'suspend', 'reload'] as const).flatMap((action) => lifecycleOf(action)),
  endpoint({
    method: 'GET',
    path: list,
    owner,
    tag,
    params: inProject,
    summary: 'List the nodes of a project',
    replies: { 200: { description: 'The nodes', schema: Type.Array(LabNode) } },
    errors: { 404: 'There is no such project' },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.find(params.project_id)
      return ok([...lab.document.nodes.values()].map((record) => lab.nodeView(record)))
    },
  }),
  endpoint({
    method: 'POST',
    path: list,
    owner,
    tag,
    params: inProject,
    summary: 'Create a node',
    query: unique,
    body: LabNodeCreate,
    viewSchema: LabNode,
    replies: { 201: { description: 'Created, stopped', schema: LabNode } },
    errors: {
      404: noSuchProject,
      409: 'The id is taken, or the compute cannot create the node; the message says why',
      507: 'The disk is nearly full',
    },
    async handle({ params, query, body }, context) {
      const { labs, agentFor } = labsOf(context)
      return created(
        await createNode(labs, await labs.lab(params.project_id), body, {
          agentFor,
          unique: query.unique,
          conventions: context.conventions,
        }),
      )
    },
  }),
  endpoint({
    method: 'GET',
    path,
    owner,
    tag,
    params,
    summary: 'Read a node',
    replies: { 200: { description: 'The node', schema: LabNode } },
    errors: { 404: noSuchNode },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.find(params.project_id)
      return ok(lab.nodeView(lab.node(params.node_id)))
    },
  }),
  endpoint({
    method: 'PUT',
    path,
    owner,
    tag,
    params,
    summary: 'Change a node; properties that are absent stay as they are',
    body: LabNodeUpdate,
    viewSchema: LabNode,
    async current({ params }, context) {
      const lab = await labsOf(context).labs.lab(params.project_id)
      return lab.nodeView(lab.node(params.node_id))
    },
    replies: { 200: { description: 'The changed node', schema: LabNode } },
    errors: {
      404: noSuchNode,
      409: 'The name is taken, or the change is not possible now',
      507: 'The disk is nearly full',
    },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      return ok(
        await updateNode(labs, await labs.lab(params.project_id), params.node_id, body, agentFor, {
          conventions: context.conventions,
        }),
      )
    },
  }),
  endpoint({
    method: 'DELETE',
    path,
    owner,
    tag,
    params,
    summary: 'Stop and delete a node with its links and files',
    replies: { 204: { description: 'Deleted' } },
    errors: { 404: noSuchNode, 409: 'The node is locked' },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      await removeNode(labs, await labs.lab(params.project_id), params.node_id, agentFor)
      return noContent
    },
  }),
  endpoint({
    method: 'POST',
    path: `${path}/duplicate`,
    owner,
    tag,
    params,
    summary: 'Copy a stopped node to another position on the map',
    body: Type.Object(
      { x: coordinate, y: coordinate, z: Type.Optional(coordinate) },
      { $id: 'LabNodeCopy', additionalProperties: false, description: 'Where the copy goes' },
    ),
    replies: { 201: { description: 'The copy', schema: LabNode } },
    errors: {
      404: noSuchNode,
      409: 'The node is running, or its kind cannot be copied',
      507: 'The disk is nearly full',
    },
    async handle({ params, body }, context) {
      const { labs, agentFor } = labsOf(context)
      const { x, y, z = 1 } = body
      const lab = await labs.lab(params.project_id)
      const how = { agentFor, conventions: context.conventions }
      return created(await duplicateNode(labs, lab, params.node_id, { x, y, z }, how))
    },
  }),
  endpoint({
    method: 'GET',
    path: `${path}/links`,
    owner,
    tag,
    params,
    summary: 'List the links of a node',
    replies: { 200: { description: 'The links', schema: Type.Array(LabLink) } },
    errors: { 404: noSuchNode },
    async handle({ params }, context) {
      const lab = await labsOf(context).labs.find(params.project_id)
      return ok(lab.document.linksOf(lab.node(params.node_id).node_id).map((link) => lab.linkView(link)))
    },
  }),
  endpoint({
    ...{ method: 'POST', path: `${path}/console/reset`, owner, tag, params },
    summary: 'Disconnect all clients of the console; the guest does not notice',
    bodyKind: 'ignored',
    replies: { 204: { description: 'Done' } },
    errors: { 404: noSuchNode, 409: 'The node is not running' },
    async handle({ params }, context) {
      const { labs, agentFor } = labsOf(context)
      const lab = await labs.lab(params.project_id)
      const node = nodeOnCompute(lab, params.node_id)
      await agentFor(node.compute_id).nodes.resetConsole(nodeRefOf(lab, node))
      return noContent
    },
  }),
]

function lifecycleOf(action: Exclude<NodeAction, 'resume'>): Endpoint[] {
  const does = { start: 'Start', stop: 'Stop', suspend: 'Suspend', reload: 'Reload' }[action]
  return [
    endpoint({
      method: 'POST',
      path: `${list}/${action}`,
      owner,
      tag,
      params: inProject,
      summary: `${does} all nodes of a project`,
      description: `Starts a job, whose id is in ${jobHeader}. The job continues when the client disconnects.`,
      query: action === 'start' ? startQuery : Type.Object({}),
      bodyKind: 'ignored',
      replies: { 204: { description: 'All requests to the nodes have succeeded' } },
      errors: {
        404: noSuchProject,
        409: 'A node has failed; the requests to the others were sent',
        ...(action === 'start' && { 400: 'The members `after` of the nodes form a cycle' }),
        429: 'Too many jobs are running',
      },
      async handle({ params, query, request }, context) {
        const { labs, agentFor } = labsOf(context)
        const job = labs.timers.act(await labs.lab(params.project_id), { action }, agentFor, context.conventions)
        const { wait } = query as Static<typeof startQuery>
        await abortable(wait === 'ready' ? job.over : job.requested, request.signal)
        return new Response(null, { status: 204, headers: { [jobHeader]: job.id } })
      },
    }),
    endpoint({
      method: 'POST',
      path: `${path}/${action}`,
      owner,
      tag,
      params,
      summary: `${does} a node`,
      ...(action === 'suspend' && {
        description:
          'A node that is stopped, or whose kind cannot be suspended (`can_be_suspended` of GET /v2/kinds), stays as it is; the response shows its status.',
      }),
      bodyKind: 'ignored',
      replies: { 200: { description: 'The node', schema: LabNode } },
      errors: { 404: noSuchNode, 409: 'Not possible in the current status; the message says why' },
      async handle({ params }, context) {
        const { labs, agentFor } = labsOf(context)
        const lab = await labs.lab(params.project_id)
        const node = lab.node(params.node_id)
        if (action !== 'start' && context.conventions?.runsAlways(node.node_type) === true)
          return ok(lab.nodeView(node))
        return ok(await runNodeAction(labs, lab, node, action, agentFor))
      },
    }),
  ]
}
