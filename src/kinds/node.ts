import type { Static } from '@sinclair/typebox'
import { kinds } from './index.ts'
import type { KindDescriptor } from './kind.ts'

type Kind = (typeof kinds)[number]

/** What each kind of node is shown as, created with and changed by. The wire has no `kind`: the path names it. */
type NodeTypes = {
  [D in Kind as D['name']]: {
    node: Static<D['node']> & { readonly kind: D['name'] }
    create: Static<D['create']>
    update: Static<D['update']>
  }
}

/** The kinds of node this version runs. */
export type NodeKindName = Kind['name']
export const nodeKinds: readonly NodeKindName[] = kinds.map(({ name }) => name)

const list: readonly KindDescriptor[] = kinds
const byName = Object.fromEntries(list.map((it) => [it.name, it])) as Record<NodeKindName, KindDescriptor>
export const kindOf = (name: NodeKindName): KindDescriptor => byName[name]

/** Whether nodes of a kind can be linked. Others are no part of a network. */
export const isLinkable = (kind: NodeKindName): boolean => kindOf(kind).nioTypes.length > 0

/** A node, its create and its update input; of any kind when none is named. */
export type Node<K extends NodeKindName = NodeKindName> = NodeTypes[K]['node']
/** The same without its kind, as the schema of the kind has it. */
export type NodeView = Static<Kind['node']>
export type NodeCreate<K extends NodeKindName = NodeKindName> = NodeTypes[K]['create']
export type NodeUpdate<K extends NodeKindName = NodeKindName> = NodeTypes[K]['update']

/** A node as the wire has it. */
export function shownNode({ kind: _, ...node }: Node): Readonly<Record<string, unknown>> {
  return node
}

/** Where a node is. */
export interface NodeRef<K extends NodeKindName = NodeKindName> {
  readonly project_id: string
  readonly kind: K
  readonly node_id: string
}
