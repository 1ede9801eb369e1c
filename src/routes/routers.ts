import { Type } from '@sinclair/typebox'
import { type Endpoint, endpoint, ok } from '../http/endpoint.ts'
import { noSuchNode } from '../http/params.ts'
import { Uuid } from '../model/common.ts'
import { IouConfigs } from '../model/iou.ts'
import type { NodeRef } from '../model/node.ts'

const v1 = '/v1/projects/{project_id}/iou/vms/{vm_id}'
const v2 = '/v2/compute/projects/{project_id}/iou/nodes/{node_id}'
const v1Params = Type.Object({ project_id: Uuid, vm_id: Uuid })
const v2Params = Type.Object({ project_id: Uuid, node_id: Uuid })

/** The configurations of routers. */
export const routerEndpoints: readonly Endpoint[] = [
  ...configs(v1, 'v1 iou instances', v1Params),
  ...configs(v2, 'v2 iou nodes', v2Params),
  endpoint({
    method: 'GET',
    path: `${v1}/initial_config`,
    tag: 'v1 iou instances',
    summary: 'Older form of configs: the startup configuration',
    params: v1Params,
    replies: {
      200: {
        description: 'The startup configuration; null when there is none',
        schema: Type.Object({ content: Type.Union([Type.String(), Type.Null()]) }),
      },
    },
    errors: { 404: noSuchNode },
    async handle({ params }, { agent }) {
      const { startup_config_content = null } = await agent.routers.configs(refOf(params))
      return ok({ content: startup_config_content })
    },
  }),
]

function refOf(params: { project_id: string } & ({ vm_id: string } | { node_id: string })): NodeRef<'iou'> {
  return { project_id: params.project_id, kind: 'iou', node_id: 'vm_id' in params ? params.vm_id : params.node_id }
}

function configs(node: string, tag: string, params: typeof v1Params | typeof v2Params): readonly Endpoint[] {
  return [
    endpoint({
      method: 'GET',
      path: `${node}/configs`,
      tag,
      summary: 'Read what the router has stored, else its configuration files',
      params,
      replies: { 200: { description: 'The configurations', schema: IouConfigs } },
      errors: { 404: noSuchNode },
      handle: async ({ params }, { agent }) => ok(await agent.routers.configs(refOf(params))),
    }),
    endpoint({
      method: 'POST',
      path: `${node}/configs/save`,
      tag,
      summary: 'Copy what the router has stored into its configuration files',
      params,
      bodyKind: 'ignored',
      replies: { 200: { description: 'Done' } },
      errors: { 404: noSuchNode, 409: 'The router is just writing it, or it is damaged' },
      async handle({ params }, { agent }) {
        await agent.routers.saveConfigs(refOf(params))
        return { status: 200 }
      },
    }),
  ]
}
