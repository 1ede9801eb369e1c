import { seqOf } from '../../../src/fleet/events/member-feed.ts'
import type { EventAgent } from '../../../src/host-agent.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import { FeedLimit } from '../../../src/model/feed-limit.ts'

/** The subscription of the directory to the events of a compute, and the number of the last event that it has. */
export interface EventSubscription {
  /** Names the subscription: the directory ignores events for an earlier one. */
  readonly subscriptionId: string
  readonly heard?: number
}

export interface EventPumpOptions {
  /** The events of the compute. */
  readonly events: EventAgent
  /** Sends an item to the directory; undefined: no more follow. False: it does not listen any more. */
  readonly deliver: (subscriptionId: string, item: FeedItem | undefined) => Promise<boolean>
  /** Stores the subscription for the next program of the object. */
  readonly keep: (listening: EventSubscription | undefined) => void
}

/**
 * Sends the events of a compute to the directory by calls, one after the other. Both objects can hibernate between two events, which a stream
 * between them would prevent.
 */
export class EventPump {
  readonly #options: EventPumpOptions
  readonly #limit = new FeedLimit()
  #subscriptionId: string | undefined
  #over = new AbortController()

  constructor(options: EventPumpOptions) {
    this.#options = options
  }

  /** Resolves when the events are read from `since` on, or rejects. */
  async listen(subscriptionId: string, since: number | undefined): Promise<void> {
    this.#over.abort()
    const over = new AbortController()
    this.#over = over
    this.#subscriptionId = subscriptionId
    const { signal } = over
    const limit = this.#limit
    const feed = await this.#options.events.open({ ...(since !== undefined && { since }), pings: false, limit, signal })
    this.#options.keep({ subscriptionId, ...(since !== undefined && { heard: since }) })
    void this.#pump(feed, subscriptionId, signal)
  }

  /** Continues a subscription that an earlier program of the object had. */
  resume(listening: EventSubscription | undefined): void {
    if (listening === undefined) return
    const { subscriptionId, heard } = listening
    const failed = () => this.reportEnd(subscriptionId)
    void this.listen(subscriptionId, heard).catch(failed)
  }

  stop(subscriptionId: string): void {
    if (this.#subscriptionId !== subscriptionId) return
    this.#over.abort()
    this.#subscriptionId = undefined
    this.#options.keep(undefined)
  }

  async #pump(feed: ReadableStream<FeedItem>, subscriptionId: string, signal: AbortSignal): Promise<void> {
    try {
      for await (const item of feed) {
        if (signal.aborted) return
        if (!(await this.#options.deliver(subscriptionId, item))) return this.stop(subscriptionId)
        const heard = seqOf(item)
        if (!signal.aborted && heard !== undefined) this.#options.keep({ subscriptionId, heard })
      }
    } catch {
      // The directory asks again.
    }
    if (!signal.aborted) await this.reportEnd(subscriptionId)
  }

  /** Tells the directory that no more events follow, unless a new subscription has begun. */
  async reportEnd(subscriptionId: string): Promise<void> {
    if (this.#subscriptionId !== undefined && this.#subscriptionId !== subscriptionId) return
    this.stop(subscriptionId)
    await this.#options.deliver(subscriptionId, undefined).catch(ignore('the directory finds it out by itself'))
  }
}
