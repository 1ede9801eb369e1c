import type { FeedLine, LabJob, LabLink, LabNode } from '../../../src/client/patchbay.ts'
import type { LabStore } from './lab-store.ts'

/** An event as people read it. */
export interface EventView {
  readonly id: number
  /** When the page learnt of it, ms since 1970. */
  readonly at: number
  readonly text: string
  /** Who did it; undefined: no request caused it. */
  readonly by: string | undefined
  /** Ids of the nodes that it is about. */
  readonly nodes: readonly string[]
}

/** What an event says, and about which nodes; undefined: nothing that people want to read. */
export function eventText(
  { action, event, change }: FeedLine,
  { nodes, links }: Pick<LabStore, 'nodes' | 'links'>,
): Pick<EventView, 'text' | 'nodes'> | undefined {
  const [resource = '', what = ''] = action.split('.')
  const { name = '' } = event as { name?: string }
  switch (resource) {
    case 'node': {
      const node = event as LabNode
      const before = nodes.get(node.node_id)
      const isNewStatus = what === 'updated' && before !== undefined && before.status !== node.status
      return { text: `${name} ${isNewStatus ? node.status : (change ?? what)}`, nodes: [node.node_id] }
    }
    case 'link': {
      if (what === 'state') return undefined
      const ends = ((event as LabLink).nodes ?? links.get((event as LabLink).link_id)?.nodes ?? []).map(
        (it) => it.node_id,
      )
      return { text: `Link ${ends.map((id) => nodes.get(id)?.name ?? '?').join(' – ')} ${what}`, nodes: ends }
    }
    case 'job': {
      const { action: does, status, reason } = event as LabJob
      if (status === 'running') return undefined
      return { text: `Job ${does} ${status}${reason === null ? '' : `: ${reason}`}`, nodes: [] }
    }
    case 'project':
      return { text: `Lab ${what}`, nodes: [] }
    case 'snapshot':
    case 'drawing':
      return { text: `${resource === 'snapshot' ? `Snapshot “${name}”` : 'Drawing'} ${what}`, nodes: [] }
    case 'log':
      return { text: String((event as { message?: unknown }).message), nodes: [] }
    default:
      return undefined
  }
}
