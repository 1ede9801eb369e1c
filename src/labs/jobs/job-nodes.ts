import { badRequest } from '../../lib/errors/api-error.ts'
import type { LabJobNode } from '../../model/lab/job.ts'
import { nameKey } from '../../model/lab/names.ts'
import type { NodeRecord } from '../lab/document.ts'

/** One node of a job. */
export interface JobNode {
  readonly record: NodeRecord
  /** Nodes that must be done before this one. */
  before: readonly JobNode[]
  state: LabJobNode['state']
  reason: string | null
  /** The image that its compute lacks. */
  image?: string | undefined
  /** Resolve when the request to the node has ended or was skipped, and when it is done with. */
  readonly requested: Promise<void>
  readonly over: Promise<void>
  readonly settle: { requested(): void; over(): void }
}

/** A node that waits for its turn. */
export function newJobNode(record: NodeRecord): JobNode {
  const settle = { requested() {}, over() {} }
  const settled = (of: keyof typeof settle) =>
    new Promise<void>((resolve) => {
      settle[of] = resolve
    })
  return {
    record,
    before: [],
    state: 'waiting',
    reason: null,
    requested: settled('requested'),
    over: settled('over'),
    settle,
  }
}

/** Sets `before` of each node, by the names in `after`; names of other nodes are ignored. 400 with the names of a cycle. */
export function putInOrder(nodes: readonly JobNode[]): void {
  const byName = new Map(nodes.map((node) => [nameKey(node.record.name), node]))
  for (const node of nodes)
    node.before = node.record.after.map((name) => byName.get(nameKey(name))).filter((it) => it !== undefined)
  const settled = new Set<JobNode>()
  for (const first of nodes) {
    // Without recursion: a chain may be as long as the lab has nodes.
    const path: { node: JobNode; next: number }[] = [{ node: first, next: 0 }]
    const onPath = new Set([first])
    for (let top = path.at(-1); top !== undefined; top = path.at(-1)) {
      const next = settled.has(top.node) ? undefined : top.node.before[top.next++]
      if (next === undefined) {
        settled.add(top.node)
        onPath.delete(top.node)
        path.pop()
      } else if (onPath.has(next)) {
        const names = path.slice(path.findIndex(({ node }) => node === next)).map(({ node }) => node.record.name)
        throw badRequest(`after: these nodes wait for each other in a cycle: ${[...names, names[0]].join(', ')}`)
      } else if (!settled.has(next)) {
        path.push({ node: next, next: 0 })
        onPath.add(next)
      }
    }
  }
}
