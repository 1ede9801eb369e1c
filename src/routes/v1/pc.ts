import { Type } from '@sinclair/typebox'
import { created, type Endpoint, endpoint, noContent, ok } from '../../http/endpoint.ts'
import { noSuchNode, noSuchProject, projectParams } from '../../http/params.ts'
import { Uuid } from '../../model/common.ts'
import type { NodeRef } from '../../model/node.ts'
import { PcUpdate } from '../../model/pc.ts'
import { nodeActions } from '../actions.ts'
import { captureEndpoints } from '../captures.ts'
import { linkEndpoints } from '../links.ts'
import { PcV1, PcV1Create, pcV1 } from './faces.ts'

const base = '/v1/projects/{project_id}/pc/vms'
const one = `${base}/{vm_id}`
const tag = 'v1 pc instances'
const params = Type.Object({ project_id: Uuid, vm_id: Uuid })
const instance = (description: string) => ({ description, schema: PcV1 })

const ref = (params: { project_id: string; vm_id: string }): NodeRef<'pc'> => ({
  project_id: params.project_id,
  kind: 'pc',
  node_id: params.vm_id,
})

const { console_type: _, ...updatable } = PcUpdate.properties
const PcV1Update = Type.Object(updatable, {
  $id: 'PcInstanceUpdate',
  additionalProperties: false,
  description: 'Changes of a pc; absent and null mean "leave as it is"',
})

const Duplicate = Type.Object(
  { destination_vm_id: Uuid },
  {
    $id: 'InstanceDuplicate',
    additionalProperties: false,
    description: 'The pc that becomes a copy; it must exist and be stopped',
  },
)

export const pcV1Endpoints: readonly Endpoint[] = [
  endpoint({
    method: 'GET',
    path: base,
    tag,
    summary: 'List the pcs of a project',
    params: projectParams,
    replies: { 200: { description: 'The pcs', schema: Type.Array(PcV1) } },
    errors: { 404: noSuchProject },
    handle: async ({ params }, { agent }) => ok((await agent.nodes.list(params.project_id, 'pc')).map(pcV1)),
  }),
  endpoint({
    method: 'POST',
    path: base,
    tag,
    summary: 'Create a pc',
    params: projectParams,
    body: PcV1Create,
    replies: { 201: instance('Created, stopped') },
    errors: { 404: noSuchProject, 409: 'The id is known, or no port or pc id is left', 507: 'The disk is nearly full' },
    async handle({ params, body }, { agent }) {
      const { vm_id, ...input } = body
      const node_id = typeof vm_id === 'string' ? vm_id.toLowerCase() : vm_id
      const { node } = await agent.nodes.create(
        params.project_id,
        'pc',
        { ...input, ...(node_id !== undefined && { node_id }) },
        { existing: 'refuse' },
      )
      return created(pcV1(node))
    },
  }),
  endpoint({
    method: 'GET',
    path: one,
    tag,
    summary: 'Read a pc',
    params,
    replies: { 200: instance('The pc') },
    errors: { 404: noSuchNode },
    handle: async ({ params }, { agent }) => ok(pcV1(await agent.nodes.get(ref(params)))),
  }),
  endpoint({
    method: 'PUT',
    path: one,
    tag,
    summary: 'Change a pc',
    params,
    body: PcV1Update,
    replies: { 200: instance('The changed pc') },
    errors: { 404: noSuchNode, 409: 'The change is not possible now', 507: 'The disk is nearly full' },
    handle: async ({ params, body }, { agent }) => ok(pcV1(await agent.nodes.update(ref(params), body))),
  }),
  endpoint({
    method: 'DELETE',
    path: one,
    tag,
    summary: 'Delete a pc; its files go when the project is committed or closed',
    params,
    replies: { 204: { description: 'Deleted' } },
    errors: { 404: noSuchNode },
    async handle({ params }, { agent }) {
      await agent.nodes.remove(ref(params), { files: 'later' })
      return noContent
    },
  }),
  ...nodeActions(one, tag, params, ref, () => noContent),
  endpoint({
    method: 'POST',
    path: `${one}/duplicate`,
    tag,
    summary: 'Copy the settings and files of a pc into another one',
    params,
    body: Duplicate,
    replies: { 201: instance('The copy') },
    errors: { 404: noSuchNode, 409: 'The destination runs', 507: 'The disk is nearly full' },
    handle: async ({ params, body }, { agent }) =>
      created(pcV1(await agent.nodes.duplicate(ref(params), body.destination_vm_id.toLowerCase()))),
  }),
  ...linkEndpoints(one, tag, params, 'pc', ref),
  ...captureEndpoints(one, tag, params, ref),
]
