import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { conflict } from '../../lib/errors/api-error.ts'
import type { TokenLimits } from '../../model/access/access-token.ts'
import type { NodeRecord } from './document.ts'
import type { Lab } from './lab.ts'

// The limits of a token: every creation of a node passes `requireNodesWithin`, and every start passes `reserveStart`. Where they are given and
// shown the compiler asks for each member of `TokenLimits`.

/** 409 when a lab would have more nodes than the token of the caller may make in it. */
export function requireNodesWithin(limits: TokenLimits | undefined, nodes: number): void {
  const max = limits?.max_nodes
  if (max !== undefined && nodes > max)
    throw beyond(`Your token is limited to ${max} nodes in a lab, and it would have ${nodes}`)
}

/** The same for a lab that is to get one node more, beside those that other requests are making. */
export function requireOneMoreWithin(limits: TokenLimits | undefined, { document, claimed }: Lab): void {
  if (limits?.max_nodes === undefined) return
  const pending = [...claimed].filter((claim) => {
    const [, id] = /^node-id\/(.*)$/.exec(claim) ?? []
    return id !== undefined && !document.nodes.has(id)
  })
  requireNodesWithin(limits, document.nodes.size + pending.length + 1)
}

/**
 * Counts a node as running until the result is disposed of; its compute has reported its state by then. 409 when more nodes would run
 * than the token of the caller may start, or would have more memory.
 */
export function reserveStart(limits: TokenLimits | undefined, lab: Lab, record: NodeRecord): Disposable {
  if (limits !== undefined && !isSegmentKind(record.node_type)) {
    const { max_running: running, max_ram_mb: ram_mb } = limits
    const others = runningNodes(lab).filter(({ node_id }) => node_id !== record.node_id)
    if (running !== undefined && others.length >= running)
      throw beyond(
        `Your token is limited to ${running} running nodes in a lab, and ${others.length} run: stop one first`,
      )
    const used = others.reduce((sum, other) => sum + ramOf(other), 0)
    if (ram_mb !== undefined && used + ramOf(record) > ram_mb)
      throw beyond(
        `Your token is limited to ${ram_mb} MB of memory in a lab, its running nodes have ${used} MB, and ${record.name} needs ` +
          `${ramOf(record)} MB: stop a node first, or give it less`,
      )
  }
  lab.starting.add(record.node_id)
  return { [Symbol.dispose]: () => void lab.starting.delete(record.node_id) }
}

/** Nodes that run, are suspended, or are being started; segments pass frames always and do not count. */
const runningNodes = ({ document, reported, starting }: Lab): NodeRecord[] =>
  [...document.nodes.values()].filter(
    ({ node_id, node_type }) =>
      !isSegmentKind(node_type) &&
      (starting.has(node_id) || (reported.get(node_id)?.status ?? 'stopped') !== 'stopped'),
  )

/** MB; 0 for a node whose kind has no such setting. */
const ramOf = ({ properties: { ram } }: NodeRecord): number => (typeof ram === 'number' ? ram : 0)

const beyond = (message: string) => conflict(message, { code: 'limit-reached' })
