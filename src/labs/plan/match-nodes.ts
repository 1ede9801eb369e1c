import type { Desired, DesiredNode } from '../../labfile/desired.ts'
import { nodeIdOf } from '../../labfile/ids.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { NodeRecord } from '../lab/document.ts'
import type { Actual, PlanOptions } from './types.ts'

/** A node of the file, and the node of the lab that it describes, if there is one. */
export interface NodeMatch {
  readonly want: DesiredNode
  readonly have: NodeRecord | undefined
  /** Whether the file made the node: then absent keys mean defaults, and the node is deleted when it leaves the file. */
  readonly isManaged: boolean
}

/** All nodes of the file, in its order. */
export interface NodeMatches {
  readonly all: readonly NodeMatch[]
  /** By the key of the name in the file. */
  readonly byName: ReadonlyMap<string, NodeMatch>
  /** By the id of the node in the lab. */
  readonly byId: ReadonlyMap<string, NodeMatch>
}

/** A match of a node that the lab has. */
export type PresentMatch = NodeMatch & { readonly have: NodeRecord }
export const isPresent = (match: NodeMatch): match is PresentMatch => match.have !== undefined

/**
 * Finds the nodes of the file: by name, by the earlier name (`was`), then a node that was renamed in the lab by its id, which is
 * derived from its first name.
 */
export function matchNodes({ lab, nodes }: Desired, actual: Actual, { take_over }: PlanOptions): NodeMatches {
  const byName = new Map([...actual.nodes.values()].map((node) => [nameKey(node.name), node]))
  const found = new Map<DesiredNode, NodeRecord>()
  const taken = new Set<string>()
  const match = (want: DesiredNode, node: NodeRecord | undefined) => {
    if (node === undefined || taken.has(node.node_id) || found.has(want)) return
    found.set(want, node)
    taken.add(node.node_id)
  }
  for (const want of nodes) match(want, byName.get(nameKey(want.name)))
  for (const want of nodes) if (want.was !== undefined) match(want, byName.get(nameKey(want.was)))
  for (const want of nodes)
    for (const id of [want.node_id, ...(want.was === undefined ? [] : [nodeIdOf(lab, want.was)])]) {
      const node = actual.nodes.get(id)
      if (node?.lastApplied?.managed === true) match(want, node)
    }
  const all = nodes.map((want): NodeMatch => {
    const have = found.get(want)
    return { want, have, isManaged: have === undefined || have.lastApplied?.managed === true || take_over === true }
  })
  return {
    all,
    byName: new Map(all.map((it) => [nameKey(it.want.name), it])),
    byId: new Map(all.filter(isPresent).map((it) => [it.have.node_id, it])),
  }
}
