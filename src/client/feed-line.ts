import type { LabFeedLine, ServiceFeedLine } from './calls.ts'

declare const another: unique symbol
/**
 * A line that this version does not know: a newer service sent it. Its action is any other text; the compiler takes it for none of the
 * known ones, so that these tell what an event is.
 */
export interface OtherLine {
  readonly action: 'another action' & { readonly [another]: true }
  readonly event: unknown
  readonly seq?: number
  readonly project_id?: string
  readonly by?: string
}

/** A line of the feed of a lab. */
export type LabLine = LabFeedLine | OtherLine
/** A line of the feed of the service. */
export type ServiceLine = ServiceFeedLine | OtherLine
export type FeedLine = LabLine | ServiceLine

type KnownLine = LabFeedLine | ServiceFeedLine
type Action = KnownLine['action']
/** The event of an action. */
type EventOf<A extends Action, Line = KnownLine> = Line extends { action: infer Actions; event: infer Event }
  ? A extends Actions
    ? Event
    : never
  : never

/** A member that the event of each action has. The compiler compares these with the declarations of the feeds. */
const members: { readonly [A in Action]: keyof EventOf<A> } = {
  'node.created': 'node_id',
  'node.updated': 'node_id',
  'node.deleted': 'node_id',
  'link.created': 'link_id',
  'link.updated': 'link_id',
  'link.deleted': 'link_id',
  'link.state': 'link_id',
  'drawing.created': 'drawing_id',
  'drawing.updated': 'drawing_id',
  'drawing.deleted': 'drawing_id',
  'snapshot.created': 'snapshot_id',
  'snapshot.deleted': 'snapshot_id',
  'snapshot.restored': 'snapshot_id',
  'project.created': 'project_id',
  'project.updated': 'project_id',
  'project.opened': 'project_id',
  'project.closed': 'project_id',
  'project.deleted': 'project_id',
  'job.created': 'job_id',
  'job.updated': 'job_id',
  'job.deleted': 'job_id',
  'job.step': 'job_id',
  'template.created': 'template_id',
  'template.updated': 'template_id',
  'template.deleted': 'template_id',
  'compute.created': 'compute_id',
  'compute.updated': 'compute_id',
  'compute.deleted': 'compute_id',
  presence: 'selection',
  'log.error': 'message',
  'log.warning': 'message',
  'log.info': 'message',
  ping: 'cpu_usage_percent',
  resync: 'message',
}

/** Whether a value is a line of a feed: of an action that is not known, or with an event of the known one. */
export function isFeedLine(value: unknown): value is FeedLine {
  if (typeof value !== 'object' || value === null || !('action' in value) || typeof value.action !== 'string')
    return false
  const { action } = value
  if (!Object.hasOwn(members, action)) return true
  const { event } = value as { event?: unknown }
  return typeof event === 'object' && event !== null && members[action as Action] in event
}
