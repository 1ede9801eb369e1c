import type { FeedItem } from '../model/event.ts'

/** Items that may wait for a subscriber before its oldest are dropped. */
const maxQueued = 256
const pingMs = 5000
/** A feed on which something happens all the time tells the load, too. */
const busyPingMs = 10_000

export interface SubscriberOptions {
  /** A ping; everything up to `seq` was told, without it everything that happened. */
  readonly ping: (seq?: number) => FeedItem
  /** False: nothing is told, and no clock runs, while nothing happens. */
  readonly pings?: boolean
  readonly left: () => void
  /** Told of every event that is thrown away. */
  readonly dropped: () => void
}

/** One reader of a channel: a bounded queue that loses its oldest events, and pings when nothing was read for 5 s, or only events for 10. */
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
      // The ping and a resync that come first stay: they say what the rest means.
      this.#queue.splice(
        this.#queue.findIndex(({ kind }) => kind === 'event'),
        1,
      )
      this.#dropped += 1
      this.#options.dropped()
    }
    this.#wake?.()
  }

  /** No more events; what waits can still be read, and then the failure, if it is one. */
  finish(failure?: Error): void {
    this.#failure ??= failure
    this.#isFinished = true
    this.#options.left()
    this.#wake?.()
  }

  /** The reader has gone. */
  leave(): void {
    this.#queue.length = 0
    this.#dropped = 0
    this.finish()
  }

  async #pull(controller: ReadableStreamDefaultController<FeedItem>): Promise<void> {
    if (this.#queue.length === 0 && this.#dropped === 0 && !this.#isFinished) await this.#something()
    const [next] = this.#queue
    if (this.#dropped > 0 && (next === undefined || next.kind === 'event')) {
      controller.enqueue({ kind: 'dropped', count: this.#dropped })
      this.#dropped = 0
      return
    }
    const isBusy = this.#pings && next?.kind === 'event' && Date.now() - this.#pingedAt >= busyPingMs
    if (isBusy) return this.#tellLoad(controller, next.event.seq - 1)
    const item = this.#queue.shift()
    if (item !== undefined) controller.enqueue(item)
    else if (!this.#isFinished) this.#tellLoad(controller)
    else if (this.#failure === undefined) controller.close()
    else throw this.#failure
  }

  #tellLoad(controller: ReadableStreamDefaultController<FeedItem>, seq?: number): void {
    this.#pingedAt = Date.now()
    controller.enqueue(this.#options.ping(seq))
  }

  get #pings(): boolean {
    return this.#options.pings !== false
  }

  /** Resolves with the next item, the end, or after 5 s. */
  #something(): Promise<void> {
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
