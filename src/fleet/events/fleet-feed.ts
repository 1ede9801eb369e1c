import type { EventAgent, FeedRequest } from '../../host-agent.ts'
import { onAbort } from '../../lib/async/abort.ts'
import type { ProjectScope } from '../../model/access/project-scope.ts'
import type { EventPayload, FeedItem } from '../../model/event.ts'
import type { LabListEvent } from '../../model/lab/event.ts'
import type { FleetEvent } from '../pool/options.ts'

/** Most events that wait for a reader: more than there can be computes. */
const maxWaiting = 1200

/** Events of a feed of the service beside those within projects: of computes, and of projects and templates as a whole. */
export type ServiceEvent =
  | FleetEvent
  | { readonly type: LabListEvent['action']; readonly resource: LabListEvent['event'] }
/** Where such events come from; the result of `listen` unsubscribes. */
export interface ServiceEvents {
  listen(listener: (event: ServiceEvent) => void): () => void
}

/** Whether a client may see an event when it sees only some projects, as `sees` says. A message may name any project. */
export function isEventVisible(
  event: ServiceEvent,
  sees: (projectId: string, name: string | undefined) => boolean,
): boolean {
  if ('compute' in event) return true
  if (!('resource' in event)) return false
  const { resource } = event
  if (!('project_id' in resource)) return true
  // A job of several projects needs the right to see all projects.
  return resource.project_id !== null && sees(resource.project_id, 'name' in resource ? resource.name : undefined)
}

/** Such an event. It has no number, and is not kept. */
export interface FleetItem {
  readonly kind: 'fleet'
  readonly event: ServiceEvent
}

/** A feed, as a client asks for it. */
interface ClientFeed extends FeedRequest {
  /** Whether the feed has the events of computes too. */
  readonly computes: boolean
  /** The credential of the client; see `Identity.key`. */
  readonly key: string
  /** See `Identity.projects`. */
  readonly projects?: ProjectScope
}

/** Opens feeds of clients; see `EventAgent.open`. */
export type FeedSource<P = EventPayload> = (feed: ClientFeed) => Promise<ReadableStream<FeedItem<P> | FleetItem>>

/** The feeds of a host agent, with the events of the fleet where there is one. */
export const feedsOf =
  (events: EventAgent, fleet: ServiceEvents | undefined): FeedSource =>
  async ({ computes, key: _, projects: __, ...feed }) => {
    const items = await events.open(feed)
    return computes && fleet !== undefined ? withFleet(items, fleet, feed.signal) : items
  }

/** The same items, and between them the events of the fleet until the signal aborts. Of the waiting events of one compute only the newest stays. */
export function withFleet(
  items: ReadableStream<FeedItem>,
  fleet: ServiceEvents,
  signal: AbortSignal,
): ReadableStream<FeedItem | FleetItem> {
  const reader = items.getReader()
  const waiting = new WaitingEvents()
  let wake = () => {}
  /** The last item that was read; undefined while a read is pending. */
  let result: ReadableStreamReadResult<FeedItem> | undefined
  let failure: { readonly error: unknown } | undefined
  let isReading = false
  let isBegun = false
  let isFleetNext = true
  const unsubscribe = fleet.listen((event) => {
    waiting.add(event)
    wake()
  })
  const removeListener = onAbort(signal, unsubscribe)
  const stop = () => {
    unsubscribe()
    removeListener()
  }
  const readNext = () => {
    if (isReading || result !== undefined || failure !== undefined) return
    isReading = true
    reader
      .read()
      .then(
        (value) => {
          result = value
        },
        (error: unknown) => {
          failure = { error }
        },
      )
      .finally(() => {
        isReading = false
        wake()
      })
  }
  return new ReadableStream<FeedItem | FleetItem>(
    {
      async pull(controller) {
        for (;;) {
          readNext()
          // The first line is the ping. Then both sources alternate, so that neither starves the other.
          const event = isBegun && (isFleetNext || result === undefined) ? waiting.next() : undefined
          isFleetNext = event === undefined
          if (event !== undefined) return controller.enqueue(event)
          if (failure !== undefined) {
            stop()
            throw failure.error
          }
          if (result !== undefined) {
            const { done, value } = result
            result = undefined
            isBegun = true
            if (!done) return controller.enqueue(value)
            stop()
            return controller.close()
          }
          await new Promise<void>((resolve) => {
            wake = resolve
          })
        }
      },
      async cancel(reason) {
        stop()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}

/** The fleet's events that wait for one reader. */
class WaitingEvents {
  readonly #events = new Map<string, ServiceEvent>()
  #warnings = 0
  #dropped = 0

  add(event: ServiceEvent): void {
    if (!('compute' in event)) this.#put(`warning ${this.#warnings++}`, event)
    else {
      const key = `compute ${event.compute.compute_id}`
      const isNew = event.type === 'compute.updated' && this.#events.get(key)?.type === 'compute.created'
      this.#put(key, isNew ? { ...event, type: 'compute.created' } : event)
    }
  }

  next(): FeedItem | FleetItem | undefined {
    if (this.#dropped > 0) {
      const count = this.#dropped
      this.#dropped = 0
      return { kind: 'dropped', count }
    }
    for (const [key, event] of this.#events) {
      this.#events.delete(key)
      return { kind: 'fleet', event }
    }
    return undefined
  }

  #put(key: string, event: ServiceEvent): void {
    this.#events.delete(key)
    this.#events.set(key, event)
    for (const oldest of this.#events.keys()) {
      if (this.#events.size <= maxWaiting) break
      this.#events.delete(oldest)
      this.#dropped += 1
    }
  }
}
