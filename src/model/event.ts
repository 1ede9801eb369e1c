import type { Node } from '../kinds/node.ts'
import type { DirectLink } from './direct-link.ts'
import type { Load } from './host.ts'
import type { Project } from './project.ts'

/** What can happen in a project. The feeds of v1 and v2 name it in their own words (http/feed.ts). */
export type EventPayload =
  | {
      readonly type: 'node.created' | 'node.updated' | 'node.deleted'
      readonly node: Node
      readonly change?: NodeChange
    }
  | { readonly type: 'project.updated' | 'project.closed'; readonly project: Project }
  /** A link of the compute was joined, changed, lost an end (`verdict: 'detached'`), or was removed. */
  | { readonly type: 'link.updated' | 'link.deleted'; readonly link: DirectLink }
  | { readonly type: 'log.error' | 'log.warning' | 'log.info'; readonly message: string }
  /** What only a newer compute tells: handed on as it is. `more`: the members of its line beside `action` and `event`. */
  | {
      readonly type: 'other'
      readonly action: string
      readonly event: unknown
      readonly more: Readonly<Record<string, unknown>>
    }

/** Set on `node.updated` when the status changed, so that v1 can say vm.started and vm.stopped. */
export type NodeChange = 'started' | 'stopped' | 'suspended' | 'resumed'

/**
 * A happening with its number. Numbers grow over the whole compute, also over restarts of the service; the
 * feed of one project shows those of its events, so they have gaps there.
 */
export interface LabEvent {
  readonly seq: number
  readonly project_id: string
  readonly payload: EventPayload
  /** Who had it done: the name of a token or a user. Absent for what happened by itself. */
  readonly by?: string
}

/** What a subscriber of the event log receives. */
export type FeedItem =
  | { readonly kind: 'event'; readonly event: LabEvent }
  /** The subscriber asked for more history than is kept: it must read the resources again. Events from `seq` on follow. */
  | { readonly kind: 'resync'; readonly seq: number }
  /** The subscriber was slow; this many of its oldest events were thrown away. */
  | { readonly kind: 'dropped'; readonly count: number }
  /** Sent first, whenever nothing else was sent for 5 s, and at least every 10 s in between. */
  | {
      readonly kind: 'ping'
      readonly load: Load
      /** Everything up to this number was told: a feed can be opened again from here. */
      readonly seq: number
    }
