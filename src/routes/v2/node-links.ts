import { ignore } from '../../async/ignore.ts'
import { ApiError, badRequest, conflict } from '../../errors/api-error.ts'
import type { PortRef, SharedAgent } from '../../host-agent.ts'
import { type Context, created, type Endpoint, endpoint } from '../../http/endpoint.ts'
import { isLinkable, type NodeRef } from '../../kinds/node.ts'
import { Link, LinkCreate, type LinkEnd } from '../../model/link.ts'
import type { Nio } from '../../schema/nio.ts'

/** Patches two ports together, wherever they are: what takes four requests and an undo otherwise. */
export const nodeLinkEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'POST',
    path: '/v2/links',
    owner: 'all',
    tag: 'v2 links',
    summary: 'Patch two ports together, also over two computes',
    description:
      'A UDP port is reserved at each end and a nio_udp attached to each port; when one of the steps fails nothing is left of the ' +
      'others. It is removed by deleting both NIOs.',
    body: LinkCreate,
    replies: { 201: { description: 'Linked', schema: Link } },
    errors: {
      404: 'There is no such project, node or port',
      409: 'Something is attached already, no UDP port is left, or the computes have no addresses for each other',
    },
    async handle({ body: { nodes, filters } }, context) {
      const [a, b] = nodes.map(endIn) as [LinkEnd, LinkEnd]
      if (keyOf(a) === keyOf(b)) throw badRequest('nodes: a port cannot be linked with itself')
      const leave = enter(context.linking, [a, b])
      try {
        return created(await link([a, b], filters, context))
      } finally {
        leave()
      }
    },
  }),
]

async function link([a, b]: [LinkEnd, LinkEnd], filters: LinkCreate['filters'], context: Context): Promise<Link> {
  const { agent, between } = context
  for (const end of [a, b]) await requireFree(agent, end)
  const undo: (() => Promise<void>)[] = []
  const reserve = async ({ project_id }: LinkEnd): Promise<number> => {
    const port = await agent.projects.reserveUdpPort(project_id)
    undo.push(() => agent.projects.releaseUdpPort(project_id, port))
    return port
  }
  const attach = async (end: LinkEnd, nio: Nio): Promise<Nio> => {
    const detach = () => agent.nodes.detachNio(refOf(end), portOf(end))
    try {
      const attached = await agent.nodes.attachNio(refOf(end), portOf(end), nio)
      undo.push(detach)
      return attached
    } catch (error) {
      // What was refused is not ours to detach; what may have been attached without our knowing is.
      if (isUnclear(error)) undo.push(detach)
      throw error
    }
  }
  try {
    const [toB, toA] = await Promise.all([between(a.project_id, b.project_id), between(b.project_id, a.project_id)])
    const [portA, portB] = [await reserve(a), await reserve(b)]
    const options = { type: 'nio_udp' as const, ...(filters !== undefined && { filters }) }
    const nioA = await attach(a, { ...options, lport: portA, rhost: toB, rport: portB })
    const nioB = await attach(b, { ...options, lport: portB, rhost: toA, rport: portA })
    return {
      nodes: [
        { ...a, nio: nioA },
        { ...b, nio: nioB },
      ],
    }
  } catch (error) {
    for (const step of undo.reverse())
      await step().catch(ignore('what is not there needs no undoing, and what cannot be undone must not hide why'))
    throw error
  }
}

/** Nobody else may link these ports until the result is called: what is found free must stay so. 409 when somebody does. */
function enter(linking: Set<string>, ends: readonly LinkEnd[]): () => void {
  const keys = ends.map(keyOf)
  const busy = ends.find((end) => linking.has(keyOf(end)))
  if (busy !== undefined) {
    throw conflict(
      `nodes: port ${busy.adapter_number}/${busy.port_number} of the node ${busy.node_id} is being linked by another request`,
    )
  }
  for (const key of keys) linking.add(key)
  return () => {
    for (const key of keys) linking.delete(key)
  }
}

const isUnclear = (error: unknown): boolean => !(error instanceof ApiError) || [502, 504].includes(error.status)

/** 404 for what is not there, 409 when something is attached. */
async function requireFree(agent: SharedAgent, end: LinkEnd): Promise<void> {
  const { node_type, node_id, adapter_number, port_number } = end
  if (!isLinkable(node_type)) throw badRequest(`node_type: nodes of the kind ${node_type} cannot be linked`)
  await agent.nodes.get(refOf(end))
  const attached = await agent.nodes.nioState(refOf(end), portOf(end)).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  })
  if (attached === undefined) return
  throw conflict(
    `nodes: something is attached to port ${adapter_number}/${port_number} of the node ${node_id} already; delete its NIO first`,
  )
}

const refOf = ({ project_id, node_type, node_id }: LinkEnd): NodeRef => ({ project_id, kind: node_type, node_id })
const portOf = ({ adapter_number, port_number }: LinkEnd): PortRef => ({ adapter: adapter_number, port: port_number })
const keyOf = ({ project_id, node_id, ...port }: LinkEnd): string =>
  [project_id, node_id, port.adapter_number, port.port_number].join('/')
/** The end without what was shown with it; ids are lower-case from here on. */
const endIn = ({ nio: _, ...end }: LinkCreate['nodes'][number]): LinkEnd => ({
  ...end,
  project_id: end.project_id.toLowerCase(),
  node_id: end.node_id.toLowerCase(),
})
