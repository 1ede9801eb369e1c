import { onAbort } from '../async/abort.ts'
import { notFound, tooMany } from '../errors/api-error.ts'
import type { FeedRequest } from '../host-agent.ts'
import type { EventPayload, FeedItem, LabEvent } from '../model/event.ts'
import type { Load } from '../model/host.ts'
import { Subscriber } from './subscriber.ts'

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

  /** What was told until that number is not known any more; who reads has to read the resources again. */
  forget(last: number): void {
    this.#ring.length = 0
    this.#forgotten = last
    for (const subscriber of this.subscribers) subscriber.push({ kind: 'resync', seq: last })
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
  readonly #by: () => string | undefined
  readonly #projects = new Map<string, Channel>()
  readonly #all: Channel
  // Numbers must grow over restarts without being written down: the clock does, and no lab has a thousand events a ms.
  #last = Date.now() * 1000
  #emitted = 0
  #resyncs = 0
  #dropped = 0

  /** `by`: who has done what is done now. */
  constructor(limits: Limits, load: () => Load, by: () => string | undefined = () => undefined) {
    this.#limits = limits
    this.#load = load
    this.#by = by
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

  emit(projectId: string, payload: EventPayload, by = this.#by()): void {
    const event = { seq: ++this.#last, project_id: projectId, payload, ...(by !== undefined && { by }) }
    this.#emitted += 1
    this.#projects.get(projectId)?.add(event)
    this.#all.add(event)
  }

  /** Something may have happened that is not told: whoever asks for what came before now is to read the resources again. */
  gap(): void {
    // A number of its own, so that `since` the last event before it is not taken for up to date.
    const last = ++this.#last
    for (const channel of [this.#all, ...this.#projects.values()]) channel.forget(last)
  }

  /** Counted as it happens, so that asking costs nothing. */
  get figures(): EventFigures {
    let feeds = this.#all.subscribers.size
    for (const { subscribers } of this.#projects.values()) feeds += subscribers.size
    return { emitted: this.#emitted, feeds, resyncs: this.#resyncs, dropped: this.#dropped }
  }

  /** See `EventAgent.open`. */
  open({ projectId, since, pings = true, signal }: FeedRequest): ReadableStream<FeedItem> {
    const channel = projectId === undefined ? this.#all : this.#projects.get(projectId)
    if (channel === undefined)
      throw notFound(`project_id: there is no open project ${projectId}`, { word: 'no-such-project' })
    const most = this.#limits.feeds()
    if (channel.subscribers.size >= most) throw tooMany(`There are ${most} open feeds already; close one first`)
    const ping = (seq = this.#last): FeedItem => ({ kind: 'ping', load: this.#load(), seq })
    const subscriber: Subscriber = new Subscriber({
      ping,
      pings,
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
    onAbort(signal, () => subscriber.leave())
    return subscriber.stream
  }

  /** Ends all feeds. */
  close(): void {
    for (const channel of [this.#all, ...this.#projects.values()]) {
      for (const subscriber of channel.subscribers) subscriber.finish()
    }
  }
}
