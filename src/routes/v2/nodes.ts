import { type TObject, Type } from '@sinclair/typebox'
import { bridgeConsole } from '../../http/console.ts'
import { created, type Endpoint, endpoint, noContent, ok } from '../../http/endpoint.ts'
import { requireUpgrade } from '../../http/feed.ts'
import { noSuchNode, noSuchProject, projectParams, since } from '../../http/params.ts'
import { Uuid } from '../../model/common.ts'
import {
  type NodeCreate,
  type NodeKindName,
  type NodeRef,
  type NodeUpdate,
} from '../../model/node.ts'
import { PcCreate, PcNode, PcUpdate } from '../../model/pc.ts'
import { MachineEmulatorCreate, MachineEmulatorNode, MachineEmulatorUpdate } from '../../model/machine-emulator.ts'
import { nodeActions } from '../actions.ts'
import { captureEndpoints } from '../captures.ts'
import { linkEndpoints } from '../links.ts'

const Duplicate = Type.Object(
  { destination_node_id: Uuid },
  {
    $id: 'Duplicate',
    additionalProperties: false,
    description: 'The node that becomes a copy; it must exist and be stopped',
  },
)

/** The schemas of a kind; a new kind is one more line below. */
interface KindSchemas {
  readonly node: TObject
  readonly create: TObject
  readonly update: TObject
}

const named = (schema: TObject, $id: string, description: string): TObject => ({ ...schema, $id, description })

const kinds: Readonly<Record<NodeKindName, KindSchemas>> = {
  'machine-emulator': { node: MachineEmulatorNode, create: named(MachineEmulatorCreate, 'MC', ''), update: named(MachineEmulatorUpdate, 'MU', '') },
  pc: {
    node: PcNode,
    create: named(PcCreate, 'PcNodeCreate', 'What a pc is created with'),
    update: named(PcUpdate, 'PcNodeUpdate', 'Changes of a pc; absent and null mean "leave as it is"'),
  },
}

/** The node interface of v2, the same for every kind. */
export const nodesV2: readonly Endpoint[] = Object.entries(kinds).flatMap(([kind, schemas]) =>
  kindEndpoints(kind as NodeKindName, schemas),
)

function kindEndpoints(kind: NodeKindName, schemas: KindSchemas): readonly Endpoint[] {
  const base = `/v2/compute/projects/{project_id}/${kind}/nodes`
  const one = `${base}/{node_id}`
  const tag = `v2 ${kind} nodes`
  const params = Type.Object({ project_id: Uuid, node_id: Uuid })
  const node = (description: string) => ({ description, schema: schemas.node })
  const ref = (params: { project_id: string; node_id: string }): NodeRef => ({ ...params, kind })

  return [
    endpoint({
      method: 'GET',
      path: base,
      tag,
      summary: `List the ${kind} nodes of a project`,
      params: projectParams,
      replies: { 200: { description: 'The nodes', schema: Type.Array(schemas.node) } },
      errors: { 404: noSuchProject },
      handle: async ({ params }, { agent }) => ok(await agent.nodes.list(params.project_id, kind)),
    }),
    endpoint({
      method: 'POST',
      path: base,
      tag,
      summary: 'Create a node',
      description: 'With the id of a node of this project, that node is given the other fields. Nothing is started.',
      params: projectParams,
      body: schemas.create,
      replies: { 201: node('Created, stopped') },
      errors: {
        404: noSuchProject,
        409: 'The id is known in another project, or no port or id is left',
        507: 'The disk is nearly full',
      },
      async handle({ params, body }, { agent }) {
        const input = body as NodeCreate
        const id = typeof input.node_id === 'string' ? { node_id: input.node_id.toLowerCase() } : {}
        const { node } = await agent.nodes.create(params.project_id, kind, { ...input, ...id }, { existing: 'update' })
        return created(node)
      },
    }),
    endpoint({
      method: 'GET',
      path: one,
      tag,
      summary: 'Read a node',
      params,
      replies: { 200: node('The node') },
      errors: { 404: noSuchNode },
      handle: async ({ params }, { agent }) => ok(await agent.nodes.get(ref(params))),
    }),
    endpoint({
      method: 'PUT',
      path: one,
      tag,
      summary: 'Change a node',
      params,
      body: schemas.update,
      replies: { 200: node('The changed node') },
      errors: { 404: noSuchNode, 409: 'The change is not possible now', 507: 'The disk is nearly full' },
      handle: async ({ params, body }, { agent }) => ok(await agent.nodes.update(ref(params), body as NodeUpdate)),
    }),
    endpoint({
      method: 'DELETE',
      path: one,
      tag,
      summary: 'Stop and delete a node with its directory',
      params,
      replies: { 204: { description: 'Deleted' } },
      errors: { 404: noSuchNode },
      async handle({ params }, { agent }) {
        await agent.nodes.remove(ref(params), { files: 'now' })
        return noContent
      },
    }),
    ...nodeActions(one, tag, params, ref, ok, node('The node, started')),
    endpoint({
      method: 'POST',
      path: `${one}/duplicate`,
      tag,
      summary: 'Copy the settings and files of a node into another one',
      params,
      body: Duplicate,
      replies: { 201: node('The copy') },
      errors: { 404: noSuchNode, 409: 'The destination runs', 507: 'The disk is nearly full' },
      async handle({ params, body }, { agent }) {
        return created(await agent.nodes.duplicate(ref(params), body.destination_node_id.toLowerCase()))
      },
    }),
    ...linkEndpoints(one, tag, params, kind, ref),
    ...captureEndpoints(one, tag, params, ref),
    endpoint({
      method: 'GET',
      path: `${one}/console/ws`,
      tag,
      summary: 'The console as a websocket: the scroll-back, then live; binary frames out, text or binary in',
      params,
      query: Type.Pick(since, ['ticket']),
      websocket: true,
      replies: {},
      errors: { 404: `${noSuchNode}, or the request is no websocket upgrade`, 409: 'The node does not run' },
      async handle({ params, request }, { agent, upgrade }) {
        requireUpgrade(request)
        const over = new AbortController()
        const console = await agent.nodes.console(ref(params), over.signal)
        return upgrade(request, {
          open: (socket) => bridgeConsole(socket, console, over),
          abandon: () => over.abort(),
        })
      },
    }),
  ]
}
