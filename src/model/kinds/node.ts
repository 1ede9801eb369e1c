import type { Static } from '@sinclair/typebox'
import { kinds } from './index.ts'
import type { KindDescriptor } from './kind.ts'

type Kind = (typeof kinds)[number]

/** The types of a node, its create and its update input, by kind. The wire has no `kind`: the path names it. */
type NodeTypes = {
  [D in Kind as D['name']]: {
    node: Static<D['node']> & { readonly kind: D['name'] }
    create: Static<D['create']>
    update: Static<D['update']>
  }
}

/** The kinds of node of this version. */
export type NodeKindName = Kind['name']
export const nodeKinds: readonly NodeKindName[] = kinds.map(({ name }) => name)

const list: readonly KindDescriptor[] = kinds
const byName = Object.fromEntries(list.map((it) => [it.name, it])) as Record<NodeKindName, KindDescriptor>
export const kindOf = (name: NodeKindName): KindDescriptor => byName[name]
/** The same for a kind that may not be known here. */
export const kindIfKnown = (name: string): KindDescriptor | undefined => list.find((kind) => kind.name === name)

/** See `KindDescriptor.isAlwaysOn`; a kind that is not known here is not. */
export const isAlwaysOn = (kind: string): boolean =>
  list.some((known) => known.name === kind && known.isAlwaysOn === true)

/** Whether nodes of a kind always run for clients of GNS3. */
export const runsAlwaysInGns3 = (kind: string): boolean =>
  list.some((known) => known.name === kind && (known.isAlwaysOn === true || known.gns3?.runsAlways === true))

/** Whether nodes of a kind have no state: a project is exported and copied while they run. */
export const isStateless = runsAlwaysInGns3

/** Whether nodes of a kind have ports, and can be linked. */
export const isLinkable = (kind: NodeKindName): boolean => kindOf(kind).nioTypes.length > 0

/** A node, its create and its update input; by default of any kind. */
export type Node<K extends NodeKindName = NodeKindName> = NodeTypes[K]['node']
export type NodeCreate<K extends NodeKindName = NodeKindName> = NodeTypes[K]['create']
export type NodeUpdate<K extends NodeKindName = NodeKindName> = NodeTypes[K]['update']

/** A node in the form of the wire. */
export function nodeView(node: Node): Readonly<Record<string, unknown>> {
  const known = views.get(node)
  if (known !== undefined) return known
  const { kind: _, ...rest } = node
  if (Object.isFrozen(node)) views.set(node, Object.freeze(rest))
  return rest
}

/** Cache, for frozen nodes: they never change. */
const views = new WeakMap<Node, Readonly<Record<string, unknown>>>()

/** Identifies a node. */
export interface NodeRef<K extends NodeKindName = NodeKindName> {
  readonly project_id: string
  readonly kind: K
  readonly node_id: string
}
