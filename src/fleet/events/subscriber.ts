import type { EventPayload, FeedItem } from '../../model/event.ts'

/** Most items that wait for a subscriber, and their bytes; then the oldest are dropped. */
const [maxQueued, maxBytes] = [256, 4 << 20]
const pingMs = 5000
/** A busy feed gets a ping with the load as often as this, ms. */
const busyPingMs = 10_000

export interface SubscriberOptions<P> {
  /** Makes a ping. The subscriber got every event up to `seq`; without `seq`, all events. */
  readonly ping: (seq?: number) => FeedItem<P>
  /** False: no pings and no timer while there are no events. */
  readonly pings?: boolean
  readonly onLeft: () => void
  /** Called for every event that is dropped. */
  readonly onDropped: () => void
}

/** A reader of a channel: a bounded queue that drops its oldest events. It adds a ping after 5 s without an item, or 10 s without a ping. */
export class Subscriber<P = EventPayload> {
  readonly stream: ReadableStream<FeedItem<P>>
  readonly #options: SubscriberOptions<P>
  readonly #queue: { readonly item: FeedItem<P>; readonly bytes: number }[] = []
  #bytes = 0
  #dropped = 0
  #isFinished = false
  #failure: Error | undefined
  #wake: (() => void) | undefined
  #ping: ReturnType<typeof setTimeout> | undefined
  #pingedAt = Date.now()

  constructor(options: SubscriberOptions<P>) {
    this.#options = options
    this.stream = new ReadableStream<FeedItem<P>>(
      { pull: (controller) => this.#pull(controller), cancel: () => this.leave() },
      { highWaterMark: 0 },
    )
  }

  /** `bytes`: the size of an event. `missed`: an event of the history, which has limits of its own. */
  push(item: FeedItem<P>, bytes = 0, when: 'now' | 'missed' = 'now'): void {
    if (this.#isFinished) return
    this.#queue.push({ item, bytes })
    this.#bytes += bytes
    if (when === 'now') {
      // What is dropped makes room for this event, and no more: much may wait of the history.
      let freed = this.#queue.length > maxQueued ? this.#dropFirst() : 0
      while (freed < bytes && this.#bytes > Math.max(maxBytes, bytes)) freed += this.#dropFirst()
    }
    this.#wake?.()
  }

  /** Drops the oldest event, and returns its size. A ping and a resync at the head stay: the items after them depend on them. */
  #dropFirst(): number {
    const at = this.#queue.findIndex(({ item }) => item.kind === 'event')
    const bytes = this.#queue.splice(at, 1)[0]?.bytes ?? 0
    this.#bytes -= bytes
    this.#dropped += 1
    this.#options.onDropped()
    return bytes
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
    this.#bytes = 0
    this.#dropped = 0
    this.finish()
  }

  async #pull(controller: ReadableStreamDefaultController<FeedItem<P>>): Promise<void> {
    if (this.#queue.length === 0 && this.#dropped === 0 && !this.#isFinished) await this.#waitForItem()
    const next = this.#queue[0]?.item
    if (this.#dropped > 0 && (next === undefined || next.kind === 'event')) {
      controller.enqueue({ kind: 'dropped', count: this.#dropped })
      this.#dropped = 0
      return
    }
    const isBusy = this.#pings && next?.kind === 'event' && Date.now() - this.#pingedAt >= busyPingMs
    if (isBusy) return this.#sendPing(controller, next.event.seq - 1)
    const first = this.#queue.shift()
    this.#bytes -= first?.bytes ?? 0
    if (first !== undefined) controller.enqueue(first.item)
    else if (!this.#isFinished) this.#sendPing(controller)
    else if (this.#failure === undefined) controller.close()
    else throw this.#failure
  }

  #sendPing(controller: ReadableStreamDefaultController<FeedItem<P>>, seq?: number): void {
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
