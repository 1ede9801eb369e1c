import type { LabLine } from '../../../src/client/patchbay.ts'
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
  { action, event }: LabLine,
  { nodes }: Pick<LabStore, 'nodes'>,
): Pick<EventView, 'text' | 'nodes'> | undefined {
  const [subject, what = ''] = action.split('.')
  switch (action) {
    case 'node.created':
    case 'node.updated':
    case 'node.deleted': {
      const { node_id, name, status } = event
      const before = nodes.get(node_id)
      const isNewStatus = action === 'node.updated' && before !== undefined && before.status !== status
      return { text: `${name} ${isNewStatus ? status : what}`, nodes: [node_id] }
    }
    case 'link.created':
    case 'link.updated':
    case 'link.deleted': {
      const ends = event.nodes.map((it) => it.node_id)
      return { text: `Link ${ends.map((id) => nodes.get(id)?.name ?? '?').join(' – ')} ${what}`, nodes: ends }
    }
    case 'job.created':
    case 'job.updated':
    case 'job.deleted': {
      const { action: does, status, reason } = event
      if (status === 'running') return undefined
      return { text: `Job ${does} ${status}${reason === null ? '' : `: ${reason}`}`, nodes: [] }
    }
    case 'snapshot.created':
    case 'snapshot.deleted':
    case 'snapshot.restored':
      return { text: `Snapshot “${event.name}” ${what}`, nodes: [] }
    case 'log.error':
    case 'log.warning':
    case 'log.info':
      return { text: event.message, nodes: [] }
    default:
      if (subject !== 'project' && subject !== 'drawing') return undefined
      return { text: `${subject === 'project' ? 'Lab' : 'Drawing'} ${what}`, nodes: [] }
  }
}
