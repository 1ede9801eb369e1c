import type { FeedItem } from '../model/event.ts'

/** Most items that wait for a subscriber; then the oldest is dropped. */
const maxQueued = 256
const pingMs = 5000
/** A busy feed gets a ping with the load as often as this, ms. */
const busyPingMs = 10_000

export interface SubscriberOptions {
  /** Makes a ping. The subscriber got every event up to `seq`; without `seq`, all events. */
  readonly ping: (seq?: number) => FeedItem
  /** False: no pings and no timer while there are no events. */
  readonly pings?: boolean
  readonly onLeft: () => void
  /** Called for every event that is dropped. */
  readonly onDropped: () => void
}

/** A reader of a channel: a bounded queue that drops its oldest events. It adds a ping after 5 s without an item, or 10 s without a ping. */
export class Subscriber {
  readonly stream: ReadableStream<FeedItem>
  readonly #options: SubscriberOptions
  readonly #queue: FeedItem[] = []
  #dropped = 0
  #isFinished = false
  #failure: Error | undefined
  #wake: (() => void) | undefined
  #ping: ReturnType<typeof setTimeout> | undefined
  #pingedAt = Date.now()

  constructor(options: SubscriberOptions) {
    this.#options = options
    this.stream = new ReadableStream<FeedItem>(
      { pull: (controller) => this.#pull(controller), cancel: () => this.leave() },
      { highWaterMark: 0 },
    )
  }

  push(item: FeedItem, most = maxQueued): void {
    if (this.#isFinished) return
    this.#queue.push(item)
    if (this.#queue.length > most) {
      // A ping and a resync at the head stay: the items after them depend on them.
      this.#queue.splice(
        this.#queue.findIndex(({ kind }) => kind === 'event'),
        1,
      )
      this.#dropped += 1
      this.#options.onDropped()
    }
    this.#wake?.()
  }

  /** Ends the feed after the items that wait, with the failure if one is given. */
  finish(failure?: Error): void {
    this.#failure ??= failure
    this.#isFinished = true
    this.#options.onLeft()
    this.#wake?.()
  }

  /** Called when the reader leaves. */
  leave(): void {
    this.#queue.length = 0
    this.#dropped = 0
    this.finish()
  }

  async #pull(controller: ReadableStreamDefaultController<FeedItem>): Promise<void> {
    if (this.#queue.length === 0 && this.#dropped === 0 && !this.#isFinished) await this.#waitForItem()
    const [next] = this.#queue
    if (this.#dropped > 0 && (next === undefined || next.kind === 'event')) {
      controller.enqueue({ kind: 'dropped', count: this.#dropped })
      this.#dropped = 0
      return
    }
    const isBusy = this.#pings && next?.kind === 'event' && Date.now() - this.#pingedAt >= busyPingMs
    if (isBusy) return this.#sendPing(controller, next.event.seq - 1)
    const item = this.#queue.shift()
    if (item !== undefined) controller.enqueue(item)
    else if (!this.#isFinished) this.#sendPing(controller)
    else if (this.#failure === undefined) controller.close()
    else throw this.#failure
  }

  #sendPing(controller: ReadableStreamDefaultController<FeedItem>, seq?: number): void {
    this.#pingedAt = Date.now()
    controller.enqueue(this.#options.ping(seq))
  }

  get #pings(): boolean {
    return this.#options.pings !== false
  }

  /** Resolves with the next item, at the end, or after 5 s. */
  #waitForItem(): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(this.#ping)
        this.#wake = undefined
        resolve()
      }
      this.#wake = done
      if (this.#pings) this.#ping = setTimeout(done, pingMs)
    })
  }
}
