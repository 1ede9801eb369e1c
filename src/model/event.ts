import type { DirectLink } from './direct-link.ts'
import type { NodeChange } from './feed-line.ts'
import type { Load } from './host.ts'
import type { Node } from './kinds/node.ts'
import type { Project } from './project.ts'

/** An event of a project on a compute; those of labs are `LabEvent`. The feeds of v1 and v2 have their own names for it (endpoints/v1/views.ts, endpoints/v2/views.ts). */
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
  /** An event of a newer compute, handed on unchanged. `more`: the members of its line besides `action` and `event`. */
  | {
      readonly type: 'other'
      readonly action: string
      readonly event: unknown
      readonly more: Readonly<Record<string, unknown>>
    }

/**
 * An event with its number. Numbers grow over all projects of the compute, and over restarts of the service; the feed of one
 * project therefore has gaps.
 */
export interface NumberedEvent<P = EventPayload> {
  readonly seq: number
  readonly project_id: string
  readonly payload: P
  /** The caller: the name of a token or a user. Absent for an event that no request caused. */
  readonly by?: string
}

/** What a subscriber of the event log receives. */
export type FeedItem<P = EventPayload> =
  | { readonly kind: 'event'; readonly event: NumberedEvent<P> }
  /** The history does not go back to `since`: the subscriber must read the resources again. Events from `seq` on follow. */
  | { readonly kind: 'resync'; readonly seq: number }
  /** The subscriber was slow; this many of its oldest events were dropped. */
  | { readonly kind: 'dropped'; readonly count: number }
  /** Sent first, after 5 s without another item, and at least every 10 s. */
  | {
      readonly kind: 'ping'
      readonly load: Load
      /** The subscriber has all events up to this number, and can reopen the feed from it. */
      readonly seq: number
    }
