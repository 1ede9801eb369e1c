import { type TArray, type TObject, type TSchema, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { NodeAgent } from '../host-agent.ts'
import { kindOf, type Node, type NodeKindName, type NodeRef, nodeKinds } from '../kinds/node.ts'
import type { Call, Connection } from './connection.ts'
import { path, search } from './paths.ts'
import { tolerant } from './tolerant.ts'

type Lives = Pick<
  NodeAgent,
  | 'list'
  | 'create'
  | 'get'
  | 'update'
  | 'remove'
  | 'start'
  | 'stop'
  | 'suspend'
  | 'resume'
  | 'reload'
  | 'duplicate'
  | 'resetConsole'
>

const lists = new Map<NodeKindName, TSchema>(nodeKinds.map((kind) => [kind, Type.Array(kindOf(kind).node)]))
/** A node of a kind, made sure by its schema. */
const ofKind = <K extends NodeKindName>(kind: K, node: object): Node<K> => ({ kind, ...node }) as Node<K>

/** A node as an event shows it, of the kind whose schema it fits; undefined when it fits none. */
export function anyNode(value: unknown): Node | undefined {
  const kind = nodeKinds.find((it) => Check(tolerant(kindOf(it).node), value))
  return kind && ofKind(kind, value as object)
}

const nodesPath = (projectId: string, kind: NodeKindName): string =>
  path`/v2/compute/projects/${projectId}/${kind}/nodes`
/** Where a node is in v2. */
export const nodePath = ({ project_id, kind, node_id }: NodeRef): string =>
  nodesPath(project_id, kind) + path`/${node_id}`

/** The lives of nodes. */
export function remoteLives(connection: Connection): Lives {
  const answer = async <K extends NodeKindName>(kind: K, call: Call): Promise<Node<K>> =>
    ofKind(kind, await connection.json(kindOf(kind).node, call))
  const action =
    (name: 'start' | 'stop' | 'suspend' | 'resume' | 'reload') =>
    <K extends NodeKindName>(ref: NodeRef<K>, input?: unknown) =>
      answer(ref.kind, { method: 'POST', path: `${nodePath(ref)}/${name}?view=full`, input })
  return {
    async list<K extends NodeKindName>(projectId: string, kind: K) {
      const call = { method: 'GET', path: nodesPath(projectId, kind) } as const
      const nodes: object[] = await connection.json(lists.get(kind) as TArray<TObject>, call)
      return nodes.map((node) => ofKind(kind, node))
    },
    async create<K extends NodeKindName>(
      projectId: string,
      kind: K,
      input: unknown,
      { existing }: { existing: 'refuse' | 'update' },
    ) {
      const { value, status } = await connection.answer(kindOf(kind).node, {
        method: 'POST',
        path: nodesPath(projectId, kind) + search({ existing, view: 'full' }),
        input,
      })
      return { node: ofKind(kind, value), created: status === 201 }
    },
    get: (ref) => answer(ref.kind, { method: 'GET', path: nodePath(ref) }),
    update: (ref, input) => answer(ref.kind, { method: 'PUT', path: nodePath(ref), input }),
    async remove(ref, { files }) {
      const { project_id, kind, node_id } = ref
      // Files that stay for a while are a thing of v1.
      const v1 = path`/v1/projects/${project_id}/${kind}/vms/${node_id}`
      await connection.done({ method: 'DELETE', path: files === 'now' ? nodePath(ref) : v1 })
    },
    start: action('start'),
    stop: action('stop'),
    suspend: action('suspend'),
    resume: action('resume'),
    reload: action('reload'),
    async resetConsole(ref) {
      await connection.done({ method: 'POST', path: `${nodePath(ref)}/console/reset` })
    },
    duplicate: (ref, destinationId) =>
      answer(ref.kind, {
        method: 'POST',
        path: `${nodePath(ref)}/duplicate`,
        input: { destination_node_id: destinationId },
      }),
  }
}
