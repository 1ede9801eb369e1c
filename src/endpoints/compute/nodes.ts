import { type Static, Type } from '@sinclair/typebox'
import { ignoreNotFound } from '../../lib/errors/api-error.ts'
import { isLinkable, type NodeCreate, type NodeUpdate, nodeKinds } from '../../model/kinds/node.ts'
import { closedSchema, oneOf, Uuid } from '../../model/schema/fields.ts'
import { requireAddresses } from '../../model/validation/addresses.ts'
import { created, type Endpoint, endpoint, ok } from '../../server/http/endpoint.ts'
import { noSuchNode, noSuchProject, projectParams, view } from '../../server/http/params.ts'
import { actionEndpoints, computeActionEndpoints } from './actions.ts'
import { captureEndpoints } from './captures.ts'
import { consoleEndpoints } from './consoles.ts'
import { linkEndpoints } from './links.ts'
import { noContentAfter } from './no-content.ts'
import { nodeActionEndpoints } from './node-actions.ts'
import { type NodeForm, nodeFormOf } from './node-form.ts'

const Duplicates = {
  v1: closedSchema('InstanceDuplicate', 'The instance that becomes a copy; it must exist and be stopped', {
    destination_vm_id: Uuid,
  }),
  v2: closedSchema('Duplicate', 'The node that becomes a copy; it must exist and be stopped', {
    destination_node_id: Uuid,
    destination_project_id: Type.Optional({ ...Uuid, description: 'Project of that node; default: the same one' }),
  }),
} as const

const creation = Type.Object({
  existing: Type.Optional(
    oneOf(['update', 'refuse'], {
      default: 'update',
      description:
        'If a node of this project already has the id: update changes that node; refuse returns 409, as in v1',
    }),
  ),
  addresses: Type.Optional(
    Type.Literal('stored', {
      description: 'The node was stored before: MAC addresses that a new node cannot have are accepted',
    }),
  ),
  ...view,
})

const removal = Type.Object({
  files: Type.Optional(
    oneOf(['now', 'later'], {
      default: 'now',
      description:
        'When its directory is deleted; later: when the project is closed, unless a node with its id exists again',
    }),
  ),
})

/** The endpoints of nodes, and of kinds on a compute, for every kind in both versions of the API. */
export const nodeEndpoints: readonly Endpoint[] = (['v1', 'v2'] as const).flatMap((version) =>
  nodeKinds.flatMap((kind) => endpointsOf(nodeFormOf(version, kind))),
)

function endpointsOf(form: NodeForm): readonly Endpoint[] {
  const { version, kind, descriptor, list, path, tag, params, noun, nouns, schemas } = form
  const { conflicts, canBeCopied = true } = descriptor
  const isV1 = version === 'v1'
  const one = { path, tag, params }
  const node = (description: string) => ({ description, schema: schemas.node })
  return [
    endpoint({
      method: 'GET',
      path: list,
      tag,
      summary: `List the ${nouns} of a project`,
      params: projectParams,
      replies: { 200: { description: isV1 ? `The ${nouns}` : 'The nodes', schema: Type.Array(schemas.node) } },
      errors: { 404: noSuchProject },
      handle: async ({ params }, { agent }) => ok((await agent.nodes.list(params.project_id, kind)).map(form.toView)),
    }),
    endpoint({
      method: 'POST',
      path: list,
      tag,
      summary: `Create a ${noun}`,
      isUncounted: true,
      ...(!isV1 && {
        description: 'With the id of a node of this project, the other fields change that node. No node is started.',
      }),
      params: projectParams,
      query: isV1 ? Type.Object({}) : creation,
      body: schemas.create,
      viewSchema: schemas.node,
      replies: {
        ...(!isV1 && { 200: node('With view=full: the node existed, and was changed') }),
        201: node('Created, stopped'),
      },
      errors: {
        404: noSuchProject,
        409: `A node has the id${isV1 ? '' : ' (in another project, or with existing=refuse)'}, ${conflicts.create}`,
        507: 'The disk is nearly full',
      },
      async handle({ params, query, body }, { agent }) {
        // The schema of the kind has validated it.
        const input = form.input(body) as NodeCreate
        const id = typeof input.node_id === 'string' && { node_id: input.node_id.toLowerCase() }
        const { existing = isV1 ? 'refuse' : 'update', addresses, view } = query as Static<typeof creation>
        const known = async () =>
          id ? agent.nodes.get({ project_id: params.project_id, kind, ...id }).catch(ignoreNotFound) : undefined
        if (addresses === undefined) await requireAddresses(descriptor, input, known)
        const made = await agent.nodes.create(params.project_id, kind, { ...input, ...id }, { existing })
        const shown = form.toView(made.node)
        return view === 'full' && !made.created ? ok(shown) : created(shown)
      },
    }),
    endpoint({
      ...one,
      method: 'GET',
      summary: `Read a ${noun}`,
      replies: { 200: node(`The ${noun}`) },
      errors: { 404: noSuchNode },
      handle: async ({ params }, { agent }) => ok(form.toView(await agent.nodes.get(form.ref(params)))),
    }),
    endpoint({
      ...one,
      method: 'PUT',
      summary: `Change a ${noun}`,
      body: schemas.update,
      viewSchema: schemas.node,
      current: async ({ params }, { agent }) => form.toView(await agent.nodes.get(form.ref(params))),
      replies: { 200: node(`The changed ${noun}`) },
      errors: { 404: noSuchNode, 409: conflicts.update, 507: 'The disk is nearly full' },
      async handle({ params, body }, { agent }) {
        const [ref, changes] = [form.ref(params), form.changes(body)]
        await requireAddresses(descriptor, changes, () => agent.nodes.get(ref))
        return ok(form.toView(await agent.nodes.update(ref, changes as NodeUpdate)))
      },
    }),
    endpoint({
      ...one,
      method: 'DELETE',
      summary: isV1
        ? `Delete a ${noun}; its files are deleted when the project is committed or closed`
        : 'Stop and delete a node with its directory',
      query: isV1 ? Type.Object({}) : removal,
      replies: { 204: { description: 'Deleted' } },
      errors: { 404: noSuchNode },
      handle({ params, query }, { agent }) {
        const { files = isV1 ? 'later' : 'now' } = query as Static<typeof removal>
        return noContentAfter(agent.nodes.remove(form.ref(params), { files }))
      },
    }),
    ...nodeActionEndpoints(form),
    ...(canBeCopied ? [copyOf(form)] : []),
    ...(isLinkable(kind) ? [...linkEndpoints(form), ...captureEndpoints(form)] : []),
    ...(isV1 ? [] : consoleEndpoints(form)),
    ...actionEndpoints(form),
    ...computeActionEndpoints(form),
  ]
}

function copyOf({ version, path, tag, params, noun, schemas, ref, toView: shown }: NodeForm): Endpoint {
  const more = version === 'v1' ? '' : ', which exists and is stopped'
  return endpoint({
    method: 'POST',
    path: `${path}/duplicate`,
    tag,
    summary: `Copy the settings and files of a ${noun} into another one${more}`,
    isUncounted: true,
    params,
    body: Duplicates[version],
    replies: { 201: { description: 'The copy', schema: schemas.node } },
    errors: { 404: noSuchNode, 409: 'The destination runs', 507: 'The disk is nearly full' },
    async handle({ params, body }, { agent }) {
      const destination = 'destination_vm_id' in body ? body.destination_vm_id : body.destination_node_id
      const project = 'destination_project_id' in body ? body.destination_project_id?.toLowerCase() : undefined
      return created(shown(await agent.nodes.duplicate(ref(params), destination.toLowerCase(), project)))
    },
  })
}
