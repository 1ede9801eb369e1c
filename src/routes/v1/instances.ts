import { type TObject, Type } from '@sinclair/typebox'
import { created, type Endpoint, endpoint, noContent, ok } from '../../http/endpoint.ts'
import { noSuchNode, noSuchProject, projectParams } from '../../http/params.ts'
import { Uuid } from '../../model/common.ts'
import {
  isLinkable,
  type Node,
  type NodeCreate,
  type NodeKindName,
  type NodeRef,
  type NodeUpdate,
} from '../../model/node.ts'
import { nodeActions } from '../actions.ts'
import { captureEndpoints } from '../captures.ts'
import { kindFacts } from '../kinds.ts'
import { linkEndpoints } from '../links.ts'
import { DynamipsV1, DynamipsV1Create, DynamipsV1Update } from './dynamips-face.ts'
import { instanceV1, MachineV1, MachineV1Create, MachineV1Update, PcV1, PcV1Create, PcV1Update } from './faces.ts'
import { HypervisorV1, HypervisorV1Create, HypervisorV1Update } from './hypervisor-face.ts'
import { IouV1, IouV1Create, IouV1Update, iouInput } from './iou-face.ts'

/** The schemas of a kind in v1; a new kind is one more line below. */
interface InstanceSchemas {
  readonly instance: TObject
  readonly create: TObject
  readonly update: TObject
  /** Whether start answers with the instance: what older clients of the kind expect. */
  readonly startShows: boolean
  /** The input in the words of the model, where v1 has others. */
  readonly input?: <T extends Record<string, unknown>>(body: T) => T
}

const kinds: Readonly<Record<NodeKindName, InstanceSchemas>> = {
  pc: { instance: PcV1, create: PcV1Create, update: PcV1Update, startShows: false },
  iou: { instance: IouV1, create: IouV1Create, update: IouV1Update, startShows: false, input: iouInput },
  hypervisor: { instance: HypervisorV1, create: HypervisorV1Create, update: HypervisorV1Update, startShows: false },
  'machine-emulator': { instance: MachineV1, create: MachineV1Create, update: MachineV1Update, startShows: true },
  dynamips: { instance: DynamipsV1, create: DynamipsV1Create, update: DynamipsV1Update, startShows: false },
}

const Duplicate = Type.Object(
  { destination_vm_id: Uuid },
  {
    $id: 'InstanceDuplicate',
    additionalProperties: false,
    description: 'The instance that becomes a copy; it must exist and be stopped',
  },
)

/** The instance interface of v1, the same for every kind. */
export const instancesV1: readonly Endpoint[] = Object.entries(kinds).flatMap(([kind, schemas]) =>
  instanceEndpoints(kind as NodeKindName, schemas),
)

function instanceEndpoints(kind: NodeKindName, schemas: InstanceSchemas): readonly Endpoint[] {
  const base = `/v1/projects/{project_id}/${kind}/vms`
  const one = `${base}/{vm_id}`
  const tag = `v1 ${kind} instances`
  const { noun, conflicts, isStrict = false, canBeCopied = true } = kindFacts[kind]
  const params = Type.Object({ project_id: Uuid, vm_id: Uuid })
  const instance = (description: string) => ({ description, schema: schemas.instance })
  const ref = ({ project_id, vm_id }: { project_id: string; vm_id: string }): NodeRef => ({
    project_id,
    kind,
    node_id: vm_id,
  })
  const inputOf = (body: unknown) => {
    const given = body as Record<string, unknown>
    return schemas.input?.(given) ?? given
  }
  const shown = (node: Node) => ok(instanceV1(node))
  const actions = schemas.startShows
    ? nodeActions(one, tag, params, kind, ref, shown, instance(`The ${noun}, started`))
    : nodeActions(one, tag, params, kind, ref, () => noContent, undefined, { refusesRunning: isStrict })

  const copy = endpoint({
    method: 'POST',
    path: `${one}/duplicate`,
    tag,
    summary: `Copy the settings and files of a ${noun} into another one`,
    params,
    body: Duplicate,
    replies: { 201: instance('The copy') },
    errors: { 404: noSuchNode, 409: 'The destination runs', 507: 'The disk is nearly full' },
    handle: async ({ params, body }, { agent }) =>
      created(instanceV1(await agent.nodes.duplicate(ref(params), body.destination_vm_id.toLowerCase()))),
  })

  return [
    endpoint({
      method: 'GET',
      path: base,
      tag,
      summary: `List the ${noun}s of a project`,
      params: projectParams,
      replies: { 200: { description: `The ${noun}s`, schema: Type.Array(schemas.instance) } },
      errors: { 404: noSuchProject },
      handle: async ({ params }, { agent }) => ok((await agent.nodes.list(params.project_id, kind)).map(instanceV1)),
    }),
    endpoint({
      method: 'POST',
      path: base,
      tag,
      summary: `Create a ${noun}`,
      params: projectParams,
      body: schemas.create,
      takesBack: schemas.instance,
      replies: { 201: instance('Created, stopped') },
      errors: { 404: noSuchProject, 409: `The id is known, ${conflicts.create}`, 507: 'The disk is nearly full' },
      async handle({ params, body }, { agent }) {
        const { vm_id, ...input } = inputOf(body) as NodeCreate & { vm_id?: string | number | null }
        const node_id = typeof vm_id === 'string' ? vm_id.toLowerCase() : vm_id
        const { node } = await agent.nodes.create(
          params.project_id,
          kind,
          { ...input, ...(node_id !== undefined && { node_id }) },
          { existing: 'refuse' },
        )
        return created(instanceV1(node))
      },
    }),
    endpoint({
      method: 'GET',
      path: one,
      tag,
      summary: `Read a ${noun}`,
      params,
      replies: { 200: instance(`The ${noun}`) },
      errors: { 404: noSuchNode },
      handle: async ({ params }, { agent }) => shown(await agent.nodes.get(ref(params))),
    }),
    endpoint({
      method: 'PUT',
      path: one,
      tag,
      summary: `Change a ${noun}`,
      params,
      body: schemas.update,
      takesBack: schemas.instance,
      current: async ({ params }, { agent }) => instanceV1(await agent.nodes.get(ref(params))),
      replies: { 200: instance(`The changed ${noun}`) },
      errors: { 404: noSuchNode, 409: conflicts.update, 507: 'The disk is nearly full' },
      handle: async ({ params, body }, { agent }) =>
        shown(await agent.nodes.update(ref(params), inputOf(body) as NodeUpdate)),
    }),
    endpoint({
      method: 'DELETE',
      path: one,
      tag,
      summary: `Delete a ${noun}; its files go when the project is committed or closed`,
      params,
      replies: { 204: { description: 'Deleted' } },
      errors: { 404: noSuchNode },
      async handle({ params }, { agent }) {
        await agent.nodes.remove(ref(params), { files: 'later' })
        return noContent
      },
    }),
    ...actions,
    ...(canBeCopied ? [copy] : []),
    ...(isLinkable(kind)
      ? [...linkEndpoints(one, tag, params, kind, ref), ...captureEndpoints(one, tag, params, ref)]
      : []),
  ]
}
