import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { NodeAgent, PortRef } from '../../host-agent.ts'
import { ownLinkHeader } from '../../model/access/caller.ts'
import { CaptureStarted } from '../../model/capture.ts'
import { ConsoleMatch } from '../../model/console.ts'
import { namedAction } from '../../model/kinds/kind.ts'
import { kindOf, type Node, type NodeKindName, type NodeRef, nodeKinds } from '../../model/kinds/node.ts'
import { ConsoleClients } from '../../model/project.ts'
import { Nio, NioState } from '../../model/schema/nio.ts'
import { runAction } from './actions.ts'
import type { Call, Connection } from './connection.ts'
import { path, search } from './paths.ts'
import { tolerant } from './tolerant.ts'

/** Marks the NIO of a link that this service makes itself. */
const ofOwnLink = { headers: { [ownLinkHeader]: 'yes' } } as const

/** What every node has. The members of its kind pass unchanged: those of another version are others. */
const AnyNode = Type.Object({
  node_id: Type.String(),
  name: Type.String(),
  status: Type.String(),
  console: Type.Optional(Type.Union([Type.Integer(), Type.Null()])),
  console_type: Type.Optional(Type.String()),
  console_host: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  command_line: Type.Optional(Type.String()),
  node_directory: Type.Optional(Type.String()),
  status_reason: Type.Optional(Type.Union([Type.String(), Type.Null()])),
})
const list = Type.Array(AnyNode)

/** A node of a kind, as its schema was checked. */
const ofKind = <K extends NodeKindName>(kind: K, node: object): Node<K> => ({ kind, ...node }) as Node<K>

/** A node as an event shows it, of the kind whose schema it fits; undefined when it fits none. */
export function anyNode(value: unknown): Node | undefined {
  const kind = nodeKinds.find((it) => Check(tolerant(kindOf(it).node), value))
  return kind && ofKind(kind, value as object)
}

/** The nodes of a compute. */
export function remoteNodes(connection: Connection): NodeAgent {
  const done = async (call: Call): Promise<void> => void (await connection.done(call))
  const node = async <K extends NodeKindName>(kind: K, id: string, call: Call): Promise<Node<K>> => {
    const answered = await connection.json(AnyNode, call)
    connection.requireId(id, answered.node_id)
    return ofKind(kind, answered)
  }
  const act =
    (action: 'start' | 'stop' | 'suspend' | 'resume' | 'reload') =>
    <K extends NodeKindName>(ref: NodeRef<K>, input?: unknown): Promise<Node<K>> =>
      node(ref.kind, ref.node_id, { method: 'POST', path: `${nodePath(ref)}/${action}?view=full`, input })
  return {
    async list(projectId, kind) {
      const all = await connection.json(list, { method: 'GET', path: listPath({ project_id: projectId, kind }) })
      return all.map((it) => ofKind(kind, it))
    },
    async create(projectId, kind, input, { existing, addresses }) {
      const query = search({ existing, addresses, view: existing === 'update' ? 'full' : undefined })
      const call = { method: 'POST', path: listPath({ project_id: projectId, kind }) + query, input } as const
      const { value, status } = await connection.answer(AnyNode, call)
      if (typeof input.node_id === 'string') connection.requireId(input.node_id, value.node_id)
      return { node: ofKind(kind, value), created: status === 201 }
    },
    get: (ref) => node(ref.kind, ref.node_id, { method: 'GET', path: nodePath(ref) }),
    update: (ref, input) => node(ref.kind, ref.node_id, { method: 'PUT', path: nodePath(ref), input }),
    remove: (ref, { files } = { files: 'now' }) => done({ method: 'DELETE', path: nodePath(ref) + search({ files }) }),
    start: act('start'),
    stop: act('stop'),
    suspend: act('suspend'),
    resume: act('resume'),
    reload: act('reload'),
    duplicate(ref, destination_node_id, destination_project_id) {
      const input = { destination_node_id, ...(destination_project_id !== undefined && { destination_project_id }) }
      return node(ref.kind, destination_node_id, { method: 'POST', path: `${nodePath(ref)}/duplicate`, input })
    },
    attachNio: (ref, port, input, origin) =>
      connection.json(Nio, {
        method: 'POST',
        path: `${portPath(ref, port)}/nio`,
        input,
        ...(origin === 'service' && ofOwnLink),
      }),
    updateNio: (ref, port, input) => connection.json(Nio, { method: 'PUT', path: `${portPath(ref, port)}/nio`, input }),
    detachNio: (ref, port) => done({ method: 'DELETE', path: `${portPath(ref, port)}/nio` }),
    checkFilters: (ref, port, input) => done({ method: 'POST', path: `${portPath(ref, port)}/check_filters`, input }),
    async nioState(ref, port) {
      // A cast: the schema is a union of the types of NIO, each with its state.
      const call = { method: 'GET', path: `${portPath(ref, port)}/nio`, pace: 'work' } as const
      return (await connection.json(NioState, call)) as NioState
    },
    startCapture: (ref, port, input) =>
      connection.json(CaptureStarted, { method: 'POST', path: `${portPath(ref, port)}/start_capture`, input }),
    stopCapture: (ref, port) => done({ method: 'POST', path: `${portPath(ref, port)}/stop_capture` }),
    async streamCapture(ref, port, input, signal) {
      const call = {
        method: 'POST',
        path: `${portPath(ref, port)}/capture/stream`,
        input,
        longLived: true,
        signal,
      } as const
      const { response, body } = await connection.stream(call, { idleMs: undefined })
      const named = (header: string) => decoded(response.headers.get(header) ?? '')
      return { pcap: body, interface_name: named('X-Interface-Name'), comment: named('X-Comment') }
    },
    resetConsole: (ref) => done({ method: 'POST', path: `${nodePath(ref)}/console/reset` }),
    async telnetClients(projectId) {
      const call = { method: 'GET', path: path`/v2/compute/projects/${projectId}/console_clients` } as const
      return (await connection.json(ConsoleClients, call)).telnet_clients
    },
    expect: (ref, input, signal) =>
      connection.json(ConsoleMatch, { method: 'POST', path: `${nodePath(ref)}/console/expect`, input, signal }),
    ready: (ref, input, signal) => done({ method: 'POST', path: `${nodePath(ref)}/ready`, input, signal }),
    action: (ref, name, input, signal) =>
      runAction(connection, namedAction(kindOf(ref.kind).actions, name), { base: nodePath(ref), input, signal }),
  }
}

/** A name in a header; as it came when it is not percent-encoded. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Where nodes are in v2. */
const listPath = ({ project_id, kind }: Pick<NodeRef, 'project_id' | 'kind'>): string =>
  path`/v2/compute/projects/${project_id}/${kind}/nodes`

export const nodePath = (ref: NodeRef): string => listPath(ref) + path`/${ref.node_id}`

export const portPath = (ref: NodeRef, { adapter, port }: PortRef): string =>
  nodePath(ref) + path`/adapters/${adapter}/ports/${port}`
