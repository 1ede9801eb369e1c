import { type TSchema, Type } from '@sinclair/typebox'
import type { NodeAgent } from '../host-agent.ts'
import type { Node, NodeKindName, NodeRef } from '../model/node.ts'
import { kinds } from '../routes/v2/nodes.ts'
import type { Connection } from './connection.ts'
import { path, search } from './paths.ts'

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

/** What a node of each kind is shown as. */
const schemas = new Map<NodeKindName, { node: TSchema; list: TSchema }>(
  Object.entries(kinds).map(([kind, { node }]) => [kind as NodeKindName, { node, list: Type.Array(node) }]),
)
/** A node whose kind is not known. */
export const AnyNode = Type.Union(Object.values(kinds).map(({ node }) => node))

const nodesPath = (projectId: string, kind: NodeKindName): string =>
  path`/v2/compute/projects/${projectId}/${kind}/nodes`
/** Where a node is in v2. */
export const nodePath = ({ project_id, kind, node_id }: NodeRef): string =>
  nodesPath(project_id, kind) + path`/${node_id}`

/** The lives of nodes. The schema of a kind makes its type sure. */
export function remoteLives(connection: Connection): Lives {
  const schemaOf = (kind: NodeKindName, what: 'node' | 'list'): TSchema => {
    const schema = schemas.get(kind)?.[what]
    if (schema === undefined) throw new Error(`there is no kind ${kind}`)
    return schema
  }
  const action =
    (name: 'start' | 'stop' | 'suspend' | 'resume' | 'reload') =>
    async <K extends NodeKindName>(ref: NodeRef<K>): Promise<Node<K>> =>
      (await connection.json(schemaOf(ref.kind, 'node'), {
        method: 'POST',
        path: `${nodePath(ref)}/${name}?view=full`,
      })) as Node<K>
  return {
    async list<K extends NodeKindName>(projectId: string, kind: K) {
      const call = { method: 'GET', path: nodesPath(projectId, kind) } as const
      return (await connection.json(schemaOf(kind, 'list'), call)) as Node<K>[]
    },
    async create<K extends NodeKindName>(
      projectId: string,
      kind: K,
      input: unknown,
      { existing }: { existing: 'refuse' | 'update' },
    ) {
      const { value, status } = await connection.answer(schemaOf(kind, 'node'), {
        method: 'POST',
        path: nodesPath(projectId, kind) + search({ existing, view: 'full' }),
        input,
      })
      return { node: value as Node<K>, created: status === 201 }
    },
    async get<K extends NodeKindName>(ref: NodeRef<K>) {
      return (await connection.json(schemaOf(ref.kind, 'node'), { method: 'GET', path: nodePath(ref) })) as Node<K>
    },
    async update<K extends NodeKindName>(ref: NodeRef<K>, input: unknown) {
      const call = { method: 'PUT', path: nodePath(ref), input } as const
      return (await connection.json(schemaOf(ref.kind, 'node'), call)) as Node<K>
    },
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
    async duplicate<K extends NodeKindName>(ref: NodeRef<K>, destinationId: string) {
      return (await connection.json(schemaOf(ref.kind, 'node'), {
        method: 'POST',
        path: `${nodePath(ref)}/duplicate`,
        input: { destination_node_id: destinationId },
      })) as Node<K>
    },
  }
}
