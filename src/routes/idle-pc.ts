import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, ok } from '../http/endpoint.ts'
import { noSuchNode } from '../http/params.ts'
import { Uuid } from '../model/common.ts'
import { IdlePc, IdlePcProposals } from '../model/dynamips.ts'
import type { NodeRef } from '../model/node.ts'

const v1 = '/v1/projects/{project_id}/dynamips/vms/{vm_id}'
const v2 = '/v2/compute/projects/{project_id}/dynamips/nodes/{node_id}'
const v1Params = Type.Object({ project_id: Uuid, vm_id: Uuid })
const v2Params = Type.Object({ project_id: Uuid, node_id: Uuid })

/** What may go wrong while an image is measured. */
export const measuring = {
  408: 'It took longer than four minutes',
  409: 'No value helps, another router is measured, or the router cannot run or was stopped; the message says what',
}
const description =
  'Takes minutes, and ends with the request. A router that is stopped is started for it and stopped again; one that runs is left as it was. One router of a host is measured at a time.'

/** The idle PC of routers, in both faces. */
export const idlePcEndpoints: readonly Endpoint[] = [
  ...idlePc(v1, 'v1 dynamips instances', v1Params),
  ...idlePc(v2, 'v2 dynamips nodes', v2Params),
]

function refOf(params: { project_id: string } & ({ vm_id: string } | { node_id: string })): NodeRef<'dynamips'> {
  return { project_id: params.project_id, kind: 'dynamips', node_id: 'vm_id' in params ? params.vm_id : params.node_id }
}

function idlePc(node: string, tag: string, params: typeof v1Params | typeof v2Params): readonly Endpoint[] {
  const errors = { 404: noSuchNode, ...measuring }
  return [
    endpoint({
      method: 'GET',
      path: `${node}/idlepc_proposals`,
      role: 'operate',
      tag,
      summary: 'Values that may be the idle PC of a router',
      description,
      params,
      replies: { 200: { description: 'The values', schema: IdlePcProposals } },
      errors,
      handle: async ({ params, request }, { agent }) =>
        ok(await agent.dynamips.idlePcProposals(refOf(params), request.signal)),
    }),
    endpoint({
      method: 'GET',
      path: `${node}/auto_idlepc`,
      role: 'operate',
      tag,
      summary: 'The first of the proposals that brings the load of the host down',
      description,
      params,
      replies: { 200: { description: 'The value', schema: IdlePc } },
      errors,
      handle: async ({ params, request }, { agent }) =>
        ok({ idlepc: await agent.dynamips.autoIdlePc(refOf(params), request.signal) }),
    }),
  ]
}
