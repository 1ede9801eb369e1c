import { type TObject, Type } from '@sinclair/typebox'
import { created, type Endpoint, endpoint, noContent, ok } from '../../http/endpoint.ts'
import { noSuchNode, noSuchProject, projectParams, view } from '../../http/params.ts'
import { Uuid } from '../../model/common.ts'
import { DynamipsCreate, DynamipsNode, DynamipsUpdate } from '../../model/dynamips.ts'
import { HypervisorCreate, HypervisorNode, HypervisorUpdate } from '../../model/hypervisor.ts'
import { IouCreate, IouNode, IouUpdate } from '../../model/iou.ts'
import { MachineEmulatorCreate, MachineEmulatorNode, MachineEmulatorUpdate } from '../../model/machine-emulator.ts'
import { isLinkable, type NodeCreate, type NodeKindName, type NodeRef, type NodeUpdate } from '../../model/node.ts'
import { PcCreate, PcNode, PcUpdate } from '../../model/pc.ts'
import { nodeActions } from '../actions.ts'
import { captureEndpoints } from '../captures.ts'
import { kindFacts } from '../kinds.ts'
import { linkEndpoints } from '../links.ts'
import { consoleEndpoints } from './consoles.ts'

const Duplicate = Type.Object(
  { destination_node_id: Uuid },
  {
    $id: 'Duplicate',
    additionalProperties: false,
    description: 'The node that becomes a copy; it must exist and be stopped',
  },
)

const creation = Type.Object({
  existing: Type.Optional(
    Type.Union([Type.Literal('update'), Type.Literal('refuse')], {
      default: 'update',
      description: 'What becomes of a node of this project that has the id already; refuse: 409, as in v1',
    }),
  ),
  ...view,
})

/** The schemas of a kind; a new kind is one more line below. */
interface KindSchemas {
  readonly node: TObject
  readonly create: TObject
  readonly update: TObject
  /** Changes as they are meant; else as they are given. */
  readonly changes?: (body: NodeUpdate) => NodeUpdate
}

const named = (schema: TObject, $id: string, description: string): TObject => ({ ...schema, $id, description })

/** What the nodes of each kind are shown as, created with and changed by. */
export const kinds: Readonly<Record<NodeKindName, KindSchemas>> = {
  pc: {
    node: PcNode,
    create: named(PcCreate, 'PcNodeCreate', 'What a pc is created with'),
    update: named(PcUpdate, 'PcNodeUpdate', 'Changes of a pc; absent and null mean "leave as it is"'),
  },
  iou: {
    node: IouNode,
    create: named(IouCreate, 'IouNodeCreate', 'What a router is created with; absent and null mean "the default"'),
    update: named(IouUpdate, 'IouNodeUpdate', 'Changes of a router; absent and null mean "leave as it is"'),
  },
  hypervisor: {
    node: HypervisorNode,
    create: named(
      HypervisorCreate,
      'HypervisorNodeCreate',
      'What a VM is created with; absent and null mean "the default"',
    ),
    update: named(
      HypervisorUpdate,
      'HypervisorNodeUpdate',
      'Changes of a VM; absent and null mean "leave as it is". With a name, vmname is ignored',
    ),
    // Controllers send all that they know of a node; of a linked clone that is renamed they know the name of before.
    changes: (body) => (body.name == null ? body : { ...body, vmname: null }),
  },
  'machine-emulator': {
    node: MachineEmulatorNode,
    create: named(
      MachineEmulatorCreate,
      'MachineEmulatorNodeCreate',
      'What a machine is created with; absent and null mean "the default"',
    ),
    update: named(
      MachineEmulatorUpdate,
      'MachineEmulatorNodeUpdate',
      'Changes of a machine; absent and null mean "leave as it is"',
    ),
  },
  dynamips: {
    node: DynamipsNode,
    create: named(
      DynamipsCreate,
      'DynamipsNodeCreate',
      'What a router is created with; absent and null mean "the default"',
    ),
    update: named(DynamipsUpdate, 'DynamipsNodeUpdate', 'Changes of a router; absent and null mean "leave as it is"'),
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
  const { changes = (body: NodeUpdate) => body } = schemas
  const { conflicts, consoles, startShows = true, canBeCopied = true } = kindFacts[kind]
  const node = (description: string) => ({ description, schema: schemas.node })
  const ref = (params: { project_id: string; node_id: string }): NodeRef => ({ ...params, kind })

  const copy = endpoint({
    method: 'POST',
    path: `${one}/duplicate`,
    tag,
    summary: 'Copy the settings and files of a node into another one, which is there and stopped',
    params,
    body: Duplicate,
    replies: { 201: node('The copy') },
    errors: { 404: noSuchNode, 409: 'The destination runs', 507: 'The disk is nearly full' },
    async handle({ params, body }, { agent }) {
      return created(await agent.nodes.duplicate(ref(params), body.destination_node_id.toLowerCase()))
    },
  })

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
      query: creation,
      body: schemas.create,
      takesBack: schemas.node,
      replies: { 200: node('With view=full: it was known, and changed'), 201: node('Created, stopped') },
      errors: {
        404: noSuchProject,
        409: `The id is known in another project or existing=refuse, ${conflicts.create}`,
        507: 'The disk is nearly full',
      },
      async handle({ params, query, body }, { agent }) {
        const input = body as NodeCreate
        const id = typeof input.node_id === 'string' ? { node_id: input.node_id.toLowerCase() } : {}
        const { existing = 'update', view } = query
        const { node, created: isNew } = await agent.nodes.create(
          params.project_id,
          kind,
          { ...input, ...id },
          { existing },
        )
        return view === 'full' && !isNew ? ok(node) : created(node)
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
      takesBack: schemas.node,
      current: async ({ params }, { agent }) => agent.nodes.get(ref(params)),
      replies: { 200: node('The changed node') },
      errors: { 404: noSuchNode, 409: conflicts.update, 507: 'The disk is nearly full' },
      handle: async ({ params, body }, { agent }) =>
        ok(await agent.nodes.update(ref(params), changes(body as NodeUpdate))),
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
    ...(startShows
      ? nodeActions(one, tag, params, kind, ref, ok, node('The node, started'), { full: schemas.node })
      : nodeActions(one, tag, params, kind, ref, () => noContent, undefined, { full: schemas.node })),
    ...(canBeCopied ? [copy] : []),
    ...(isLinkable(kind)
      ? [...linkEndpoints(one, tag, params, kind, ref), ...captureEndpoints(one, tag, params, ref)]
      : []),
    ...consoleEndpoints(one, tag, params, ref, { consoles }),
  ]
}
