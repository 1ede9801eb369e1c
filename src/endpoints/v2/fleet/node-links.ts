import { reserveApart } from '../../../fleet/link-check/link-check.ts'
import type { FleetAgent, PortRef } from '../../../host-agent.ts'
import { ignore } from '../../../lib/async/ignore.ts'
import { ApiError, badRequest, conflict } from '../../../lib/errors/api-error.ts'
import { Revert } from '../../../lib/revert.ts'
import { localId } from '../../../model/compute.ts'
import { isLinkable, type NodeRef } from '../../../model/kinds/node.ts'
import { Link, LinkCreate, type LinkEnd } from '../../../model/link.ts'
import type { Nio } from '../../../model/schema/nio.ts'
import { type Context, created, type Endpoint, endpoint } from '../../../server/http/endpoint.ts'

/** One request links two ports, also on two computes: else a client sends four requests, and has to undo them after a failure. */
export const nodeLinkEndpoints: readonly Endpoint[] = [
  endpoint({
    method: 'POST',
    path: '/v2/links',
    owner: 'all',
    scope: 'own',
    tag: 'v2 links',
    summary: 'Link two ports, on one compute or on two',
    description:
      'The service reserves a UDP port at each end and attaches a nio_udp to each port. If a step fails, the others are ' +
      'reverted. To remove the link, delete both NIOs.',
    body: LinkCreate,
    replies: { 201: { description: 'Linked', schema: Link } },
    errors: {
      404: 'There is no such project, node or port',
      409: 'A port already has a NIO, no UDP port is left, or no UDP passes between the computes',
    },
    async handle({ body: { nodes, filters } }, context) {
      const [a, b] = nodes.map(endIn) as [LinkEnd, LinkEnd]
      for (const { project_id } of [a, b]) context.projects.require(project_id)
      if (keyOf(a) === keyOf(b)) throw badRequest('nodes: a port cannot be linked to itself')
      const unlock = lockPorts(context.linking, [a, b])
      try {
        return created(await link([a, b], filters, context))
      } finally {
        unlock()
      }
    },
  }),
]

async function link([a, b]: [LinkEnd, LinkEnd], filters: LinkCreate['filters'], context: Context): Promise<Link> {
  const { agent, peers, host, labs } = context
  for (const { project_id, node_id } of host === undefined ? [] : [a, b]) {
    const at = labs?.documents.computeOf(project_id, node_id) ?? localId
    if (at !== localId)
      throw conflict(
        `nodes: a node is on the compute ${at}; POST /v2/projects/${project_id}/links links nodes of several`,
      )
  }
  for (const end of [a, b]) await requireFree(agent, end)
  await using revert = new Revert(ignore('the client gets the first error'))
  const reserve = async (end: LinkEnd) => ({
    ...end,
    udp_port: await agent.projects.reserveUdpPort(end.project_id, end.node_id),
  })
  const release = ({ project_id, node_id, udp_port }: LinkEnd & { udp_port: number }) =>
    agent.projects.releaseUdpPort(project_id, udp_port, node_id)
  const attach = (end: LinkEnd, nio: Nio): Promise<Nio> =>
    revert.make(
      () => agent.nodes.attachNio(refOf(end), portOf(end), nio, 'service'),
      () => agent.nodes.detachNio(refOf(end), portOf(end)),
    )
  const ports = await reserveApart([() => reserve(a), () => reserve(b)], release, revert)
  const [portA, portB] = ports
  const [toB, toA] = await peers(ports)
  const options = { type: 'nio_udp' as const, ...(filters !== undefined && { filters }) }
  const nioA = await attach(a, { ...options, lport: portA.udp_port, rhost: toB.address, rport: toB.port })
  const nioB = await attach(b, { ...options, lport: portB.udp_port, rhost: toA.address, rport: toA.port })
  revert.commit()
  return {
    nodes: [
      { ...a, nio: nioA },
      { ...b, nio: nioB },
    ],
  }
}

/** Locks the ports for this request until the result is called: a free port must stay free. 409 when another request has one. */
function lockPorts(linking: Set<string>, ends: readonly LinkEnd[]): () => void {
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

/** 404 for a missing node or port, 409 for a port with a NIO. */
async function requireFree(agent: FleetAgent, end: LinkEnd): Promise<void> {
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
/** The end without its NIO, with lower-case ids. */
const endIn = ({ nio: _, ...end }: LinkCreate['nodes'][number]): LinkEnd => ({
  ...end,
  project_id: end.project_id.toLowerCase(),
  node_id: end.node_id.toLowerCase(),
})
