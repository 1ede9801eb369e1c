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
/** The first word of an action: most are named after the resource that their events have. */
type Subject<Action> = Action extends `${infer First}.${string}` ? First : Action
type EventOf<S, Line = KnownLine> = Line extends { action: infer Action; event: infer Event }
  ? S extends Subject<Action>
    ? Event
    : never
  : never

/** Resources whose events have their id, such as `node_id`. The compiler compares them with the declarations of the feeds. */
const resources: {
  readonly [S in Subject<KnownLine['action']> as `${S}_id` extends keyof EventOf<S> ? S : never]: true
} = { node: true, link: true, drawing: true, snapshot: true, project: true, job: true, template: true, compute: true }

/** Whether a value is a line of a feed: an event of a resource has its id, also that of a newer service. */
export function isFeedLine(value: unknown): value is FeedLine {
  const { action, event } = (value ?? {}) as { action?: unknown; event?: unknown }
  if (typeof action !== 'string') return false
  const [resource = ''] = action.split('.')
  if (!Object.hasOwn(resources, resource)) return true
  return typeof event === 'object' && event !== null && `${resource}_id` in event
}
