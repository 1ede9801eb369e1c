import { notFound, tooMany } from '../../../src/errors.ts'
import type { FeedItem, Happening, LabEvent } from '../../../src/model/event.ts'
import type { Load } from '../../../src/model/host.ts'

/** Items that may wait for a subscriber before its oldest are dropped. */
const mostQueued = 256
const pingMs = 5000
/** A feed on which something happens all the time tells the load, too. */
const busyPingMs = 10_000

interface Limits {
  /** Events kept, a project. */
  readonly history: number
  /** Open feeds, a project. */
  readonly feeds: () => number
}

/** What the log has done since the service began. */
export interface EventFigures {
  readonly emitted: number
  /** Open now. */
  readonly feeds: number
  /** Feeds that asked for more history than is kept. */
  readonly resyncs: number
  /** Events that slow feeds lost. */
  readonly dropped: number
}

/** The events of one project, or of the whole compute. */
class Channel {
  readonly #ring: LabEvent[] = []
  readonly #history: number
  readonly subscribers = new Set<Subscriber>()
  /** Everything up to this number is not known here any more. */
  #forgotten: number

  constructor(history: number, begin: number) {
    this.#history = history
    this.#forgotten = begin
  }

  add(event: LabEvent): void {
    this.#ring.push(event)
    if (this.#ring.length > this.#history) this.#forgotten = this.#ring.shift()?.seq ?? this.#forgotten
    for (const subscriber of this.subscribers) subscriber.push({ kind: 'event', event })
  }

  /** What came after that number; undefined when that is not known any more, or was never told by us. */
  after(since: number, last: number): LabEvent[] | undefined {
    if (since < this.#forgotten || since > last) return undefined
    return this.#ring.filter(({ seq }) => seq > since)
  }
}

/** The numbered events of all projects, and the feeds that read them. */
export class EventLog {
  readonly #limits: Limits
  readonly #load: () => Load
  readonly #projects = new Map<string, Channel>()
  readonly #all: Channel
  // Numbers must grow over restarts without being written down: the clock does, and no lab has a thousand events a ms.
  #last = Date.now() * 1000
  #emitted = 0
  #resyncs = 0
  #dropped = 0

  constructor(limits: Limits, load: () => Load) {
    this.#limits = limits
    this.#load = load
    this.#all = new Channel(limits.history * 4, this.#last)
  }

  openProject(projectId: string): void {
    this.#projects.set(projectId, new Channel(this.#limits.history, this.#last))
  }

  /** Ends the feeds of the project, after what they have still to read. */
  closeProject(projectId: string): void {
    const channel = this.#projects.get(projectId)
    this.#projects.delete(projectId)
    for (const subscriber of channel?.subscribers ?? []) subscriber.finish()
  }

  emit(projectId: string, happening: Happening): void {
    const event = { seq: ++this.#last, project_id: projectId, happening }
    this.#emitted += 1
    this.#projects.get(projectId)?.add(event)
    this.#all.add(event)
  }

  /** Counted as it happens, so that asking costs nothing. */
  get figures(): EventFigures {
    let feeds = this.#all.subscribers.size
    for (const { subscribers } of this.#projects.values()) feeds += subscribers.size
    return { emitted: this.#emitted, feeds, resyncs: this.#resyncs, dropped: this.#dropped }
  }

  /** See `EventAgent.open`. */
  open({
    projectId,
    since,
    signal,
  }: {
    projectId?: string
    since?: number
    signal: AbortSignal
  }): ReadableStream<FeedItem> {
    const channel = projectId === undefined ? this.#all : this.#projects.get(projectId)
    if (channel === undefined) throw notFound(`project_id: there is no open project ${projectId}`)
    const most = this.#limits.feeds()
    if (channel.subscribers.size >= most) throw tooMany(`There are ${most} open feeds already; close one first`)
    const ping = (seq = this.#last): FeedItem => ({ kind: 'ping', load: this.#load(), seq })
    const subscriber: Subscriber = new Subscriber({
      ping,
      left: () => channel.subscribers.delete(subscriber),
      dropped: () => {
        this.#dropped += 1
      },
    })
    // What was missed comes after this ping, so it must not tell a later number.
    subscriber.push({ kind: 'ping', load: this.#load(), seq: since ?? this.#last })
    if (since !== undefined) {
      const missed = channel.after(since, this.#last)
      if (missed === undefined) {
        this.#resyncs += 1
        subscriber.push({ kind: 'resync', seq: this.#last })
      } else for (const event of missed) subscriber.push({ kind: 'event', event }, Number.POSITIVE_INFINITY)
    }
    channel.subscribers.add(subscriber)
    signal.addEventListener('abort', () => subscriber.leave(), { once: true })
    if (signal.aborted) subscriber.leave()
    return subscriber.stream
  }

  /** Ends all feeds. */
  close(): void {
    for (const channel of [this.#all, ...this.#projects.values()]) {
      for (const subscriber of channel.subscribers) subscriber.finish()
    }
  }
}

interface SubscriberOptions {
  /** A ping; everything up to `seq` was told, without it everything that happened. */
  readonly ping: (seq?: number) => FeedItem
  readonly left: () => void
  /** Told of every event that is thrown away. */
  readonly dropped: () => void
}

/** One reader of a channel: a bounded queue that loses its oldest events, and pings when nothing was read for 5 s, or only events for 10. */
class Subscriber {
  readonly stream: ReadableStream<FeedItem>
  readonly #options: SubscriberOptions
  readonly #queue: FeedItem[] = []
  #dropped = 0
  #isFinished = false
  #wake: (() => void) | undefined
  #ping: NodeJS.Timeout | undefined
  #pingedAt = Date.now()

  constructor(options: SubscriberOptions) {
    this.#options = options
    this.stream = new ReadableStream<FeedItem>(
      { pull: (controller) => this.#pull(controller), cancel: () => this.leave() },
      { highWaterMark: 0 },
    )
  }

  push(item: FeedItem, most = mostQueued): void {
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

  /** No more events; what waits can still be read. */
  finish(): void {
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
    const isBusy = next?.kind === 'event' && Date.now() - this.#pingedAt >= busyPingMs
    if (isBusy) return this.#tellLoad(controller, next.event.seq - 1)
    const item = this.#queue.shift()
    if (item !== undefined) controller.enqueue(item)
    else if (this.#isFinished) controller.close()
    else this.#tellLoad(controller)
  }

  #tellLoad(controller: ReadableStreamDefaultController<FeedItem>, seq?: number): void {
    this.#pingedAt = Date.now()
    controller.enqueue(this.#options.ping(seq))
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
      this.#ping = setTimeout(done, pingMs)
      this.#ping.unref()
    })
  }
}
