import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { OpenProject } from '../projects/open-project.ts'
import type { EngineNode } from './engine-node.ts'
import type { NodeTable } from './node-table.ts'

/** Nodes that write at once: more take turns on the disk. */
const maxWriters = 2

/** Has the nodes of a project write what they keep elsewhere into their directories. 409, also while one of them runs, 507. */
export async function gatherFiles(project: OpenProject, table: Pick<NodeTable, 'lock' | 'get'>): Promise<void> {
  const gather = (node: EngineNode) =>
    table.lock(node.key, async () => {
      if (table.get(node.key) !== node) return
      if (!node.isStopped)
        throw conflict(`${node.record.name} is running: what it keeps can be read when it is stopped`, {
          code: 'node-running',
        })
      await node.kind.gather?.(node, node.directory)
    })
  const all = [...project.nodes.values()].filter(({ kind }) => kind.gather !== undefined)
  await mapLimit(all, gather, maxWriters)
}
