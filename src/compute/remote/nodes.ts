import { Check } from '@sinclair/typebox/value'
import type { PortRef, SharedAgent } from '../../host-agent.ts'
import { ownLinkHeader } from '../../model/access/caller.ts'
import { kindOf, type Node, type NodeKindName, type NodeRef, nodeKinds } from '../../model/kinds/node.ts'
import { Nio, NioState } from '../../model/schema/nio.ts'
import type { Connection } from './connection.ts'
import { path } from './paths.ts'
import { tolerant } from './tolerant.ts'

/** Marks the NIO of a link that this service makes itself. */
export const ofOwnLink = { headers: { [ownLinkHeader]: 'yes' } } as const

/** A node of a kind, as its schema was checked. */
const ofKind = <K extends NodeKindName>(kind: K, node: object): Node<K> => ({ kind, ...node }) as Node<K>

/** A node as an event shows it, of the kind whose schema it fits; undefined when it fits none. */
export function anyNode(value: unknown): Node | undefined {
  const kind = nodeKinds.find((it) => Check(tolerant(kindOf(it).node), value))
  return kind && ofKind(kind, value as object)
}

/** The operations that a link needs at a node. */
export const remoteNodes = (connection: Connection): SharedAgent['nodes'] => ({
  async get(ref) {
    const node = await connection.json(kindOf(ref.kind).node, { method: 'GET', path: nodePath(ref) })
    connection.requireId(ref.node_id, String(node.node_id))
    return ofKind(ref.kind, node)
  },
  async nioState(ref, port) {
    // A cast: the schema is a union of the types of NIO, each with its state.
    const call = { method: 'GET', path: nioPath(ref, port), pace: 'work' } as const
    return (await connection.json(NioState, call)) as NioState
  },
  attachNio: (ref, port, input, origin) =>
    connection.json(Nio, { method: 'POST', path: nioPath(ref, port), input, ...(origin === 'service' && ofOwnLink) }),
  async detachNio(ref, port) {
    await connection.done({ method: 'DELETE', path: nioPath(ref, port) })
  },
})

/** Where a node is in v2. */
const nodePath = ({ project_id, kind, node_id }: NodeRef): string =>
  path`/v2/compute/projects/${project_id}/${kind}/nodes/${node_id}`

const nioPath = (ref: NodeRef, { adapter, port }: PortRef): string =>
  nodePath(ref) + path`/adapters/${adapter}/ports/${port}/nio`
