import type { FeedRequest } from '../../../src/host-agent.ts'
import { onAbort } from '../../../src/lib/async/abort.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import type { Objects } from '../shared/objects.ts'

/** Most items of a compute that wait; with more its object waits. */
const maxWaiting = 16

interface Subscription {
  readonly subscriptionId: string
  readonly writer: WritableStreamDefaultWriter<FeedItem>
}

/** The feeds of computes in the directory: the objects of the computes send the events, see `EventPump`. */
export class PushedFeeds {
  readonly #objects: Objects
  readonly #open = new Map<string, Subscription>()

  constructor(objects: Objects) {
    this.#objects = objects
  }

  /** See `EventAgent.open`. */
  async open(id: string, { since, signal }: FeedRequest): Promise<ReadableStream<FeedItem>> {
    const { readable, writable } = new TransformStream<FeedItem, FeedItem>(
      {},
      { highWaterMark: maxWaiting },
      { highWaterMark: 0 },
    )
    const subscription = { subscriptionId: crypto.randomUUID(), writer: writable.getWriter() }
    subscription.writer.closed.catch(ignore('the reader of the feed gets the error'))
    subscription.writer.ready.catch(ignore('the reader of the feed gets the error'))
    this.#open.set(id, subscription)
    const leave = () => {
      this.#end(id, subscription, signal.reason)
      void this.#objects
        .compute(id)
        .unlisten(subscription.subscriptionId)
        .catch(ignore('its next event gets the answer that nobody listens'))
    }
    try {
      await this.#objects.compute(id).listen(subscription.subscriptionId, since)
    } catch (error) {
      this.#end(id, subscription, error)
      throw error
    }
    onAbort(signal, leave)
    if (signal.aborted) leave()
    return readable
  }

  /** Passes an item to the reader of a subscription; undefined: no more follow. False: nobody reads it any more. */
  async heard(id: string, subscriptionId: string, item: FeedItem | undefined): Promise<boolean> {
    const subscription = this.#open.get(id)
    if (subscription?.subscriptionId !== subscriptionId) return false
    if (item === undefined) {
      this.#end(id, subscription, new Error('The feed of the compute ended'))
      return false
    }
    try {
      await subscription.writer.ready
      void subscription.writer.write(item).catch(ignore('the reader has left'))
      return true
    } catch {
      return false
    }
  }

  #end(id: string, subscription: Subscription, reason: unknown): void {
    if (this.#open.get(id) === subscription) this.#open.delete(id)
    subscription.writer.abort(reason).catch(ignore('it has ended already'))
  }
}
