import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import type { LinkRecord, NodeRecord } from '../lab/document.ts'
import { isManagedLink, nameOfLink } from './actual-links.ts'
import { deleteLink, endCapture } from './diff-link.ts'
import { type Actual, type PlanOptions, type PlanPart, stepOf } from './types.ts'

const because = 'it has left the file'

/** What becomes of a link that is not in the file. */
export function removeLink(link: LinkRecord, actual: Actual): PlanPart {
  if (isManagedLink(link)) return { steps: [deleteLink(link, actual, because)], withheld: [], extra: [] }
  const name = nameOfLink(link, actual.nodes)
  return { steps: endCapture(link, actual, because), withheld: [], extra: [{ what: 'link', name }] }
}

/** What becomes of a node that is not in the file. */
export function removeNode(
  { name, node_id, node_type, lastApplied, locked }: NodeRecord,
  { delete_extra }: PlanOptions,
): PlanPart {
  const isSegment = isSegmentKind(node_type)
  const object = { what: isSegment ? 'segment' : 'node', name } as const
  const nothing = { steps: [], withheld: [], extra: [] }
  if (lastApplied?.managed !== true) return { ...nothing, extra: [object] }
  if (locked) return { ...nothing, extra: [{ ...object, because: `${because}, and is locked` }] }
  const step = { do: 'delete', ...object, how: 'live', because } as const
  if (isSegment || delete_extra === true) return { ...nothing, steps: [stepOf(step, { type: 'delete-node', node_id })] }
  return { ...nothing, withheld: [{ ...step, flag: 'delete_extra' }] }
}
