import type { FeedRequest } from '../../host-agent.ts'
import { onAbort } from '../../lib/async/abort.ts'
import { notFound, tooMany } from '../../lib/errors/api-error.ts'
import type { EventPayload, FeedItem, NumberedEvent } from '../../model/event.ts'
import { type Load, noLoad } from '../../model/host.ts'
import { Subscriber } from './subscriber.ts'

interface Limits {
  /** Events kept for each project. */
  readonly history: number
  /** Most open feeds of a project. */
  readonly feeds: () => number
}

/** Counters since the start of the service. */
export interface EventFigures {
  readonly emitted: number
  /** Open feeds. */
  readonly feeds: number
  /** Feeds whose `since` was older than the kept history. */
  readonly resyncs: number
  /** Events that slow subscribers lost. */
  readonly dropped: number
}

/** Size of the events that are kept for a project, bytes: few large ones take as much memory as many small ones. */
const maxBytes = 4 << 20
/** Size of the events that are kept for all open projects together, bytes. */
const maxSumBytes = 64 << 20
/** The whole compute keeps so many times the events of one project. */
const allTimes = 4

/** An event with its size, bytes: the length of its payload as JSON. */
interface KeptEvent<P> {
  readonly event: NumberedEvent<P>
  readonly bytes: number
}

/** The events of one project, or of the whole compute. */
class Channel<P> {
  readonly #ring: KeptEvent<P>[] = []
  readonly #most: { readonly events: number; readonly bytes: number }
  readonly subscribers = new Set<Subscriber<P>>()
  /** Whether the project is closed, and only its feeds keep the channel. */
  isIdle = false
  /** Size of the kept events, bytes. */
  bytes = 0
  /** Events up to this number are no longer kept. */
  #forgotten: number

  constructor(history: number, begin: number, times = 1) {
    this.#most = { events: history * times, bytes: maxBytes * times }
    this.#forgotten = begin
  }

  add(kept: KeptEvent<P>): void {
    this.#ring.push(kept)
    this.bytes += kept.bytes
    while (this.#ring.length > this.#most.events || this.bytes > this.#most.bytes) this.forgetFirst()
    for (const subscriber of this.subscribers) subscriber.push({ kind: 'event', event: kept.event }, kept.bytes)
  }

  forgetFirst(): void {
    const first = this.#ring.shift()
    if (first === undefined) return
    this.bytes -= first.bytes
    this.#forgotten = first.event.seq
  }

  /** Forgets the events up to that number; a feed that asks for them gets a resync. */
  forget(last: number): void {
    this.#ring.length = 0
    this.bytes = 0
    this.#forgotten = last
    for (const subscriber of this.subscribers) subscriber.push({ kind: 'resync', seq: last })
  }

  /** The events after that number; undefined when they are no longer kept, or the number was never assigned. */
  after(since: number, last: number): KeptEvent<P>[] | undefined {
    if (since < this.#forgotten || since > last) return undefined
    return this.#ring.filter(({ event }) => event.seq > since)
  }
}

/** The numbered events of all projects, and the feeds that read them. `P`: what an event says. */
export class EventLog<P = EventPayload> {
  readonly #limits: Limits
  readonly #load: () => Load
  readonly #by: () => string | undefined
  readonly #projects = new Map<string, Channel<P>>()
  readonly #all: Channel<P>
  /** Size of the events that are kept for projects, bytes. */
  #sum = 0
  // Numbers must grow across restarts without being stored. The clock grows, and no lab has a thousand events in a ms.
  #last = Date.now() * 1000
  #emitted = 0
  #resyncs = 0
  #dropped = 0

  /** `load`: of the host, for pings. `by`: the name of the caller whose request runs now. */
  constructor(limits: Limits, load = () => noLoad, by: () => string | undefined = () => undefined) {
    this.#limits = limits
    this.#load = load
    this.#by = by
    this.#all = new Channel(limits.history, this.#last, allTimes)
  }

  /** Keeps the events of a project from now on. Feeds that are open since before it was closed go on. */
  openProject(projectId: string): void {
    const channel = this.#projects.get(projectId) ?? new Channel<P>(this.#limits.history, this.#last)
    channel.isIdle = false
    this.#projects.set(projectId, channel)
  }

  /** Keeps the events of a closed project as long as a feed of it is open. */
  idleProject(projectId: string): void {
    const channel = this.#projects.get(projectId)
    if (channel === undefined) return
    channel.isIdle = true
    if (channel.subscribers.size > 0) return
    this.#sum -= channel.bytes
    this.#projects.delete(projectId)
  }

  /** Ends the feeds of the project, after the events that wait in them. */
  closeProject(projectId: string): void {
    const channel = this.#projects.get(projectId)
    this.#sum -= channel?.bytes ?? 0
    this.#projects.delete(projectId)
    for (const subscriber of channel?.subscribers ?? []) subscriber.finish()
  }

  /** Whether a feed of the project is open. */
  hasReaders(projectId: string): boolean {
    return (this.#projects.get(projectId)?.subscribers.size ?? 0) > 0
  }

  /** The name of the caller whose request runs now. */
  get caller(): string | undefined {
    return this.#by()
  }

  emit(projectId: string, payload: P, by = this.#by()): void {
    const event = { seq: ++this.#last, project_id: projectId, payload, ...(by !== undefined && { by }) }
    this.#emitted += 1
    const kept = { event, bytes: JSON.stringify(payload).length }
    this.#keep(this.#projects.get(projectId), kept)
    this.#all.add(kept)
  }

  /** When the projects together keep too much, those with most forget their first events. */
  #keep(channel: Channel<P> | undefined, kept: KeptEvent<P>): void {
    if (channel === undefined) return
    this.#sum -= channel.bytes
    channel.add(kept)
    this.#sum += channel.bytes
    while (this.#sum > maxSumBytes) {
      const largest = [...this.#projects.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a))
      this.#sum -= largest.bytes
      largest.forgetFirst()
      this.#sum += largest.bytes
    }
  }

  /** Events may have been missed: a feed that asks for earlier ones gets a resync. */
  gap(): void {
    // It takes a number, so that a feed since the last event before it does not count as up to date.
    const last = ++this.#last
    for (const channel of [this.#all, ...this.#projects.values()]) channel.forget(last)
    this.#sum = 0
  }

  /** The counters. */
  get figures(): EventFigures {
    let feeds = this.#all.subscribers.size
    for (const { subscribers } of this.#projects.values()) feeds += subscribers.size
    return { emitted: this.#emitted, feeds, resyncs: this.#resyncs, dropped: this.#dropped }
  }

  /** See `EventAgent.open`. */
  open({ projectId, since, pings = true, signal }: FeedRequest): ReadableStream<FeedItem<P>> {
    const channel = projectId === undefined ? this.#all : this.#projects.get(projectId)
    if (channel === undefined)
      throw notFound(`project_id: there is no open project ${projectId}`, { code: 'no-such-project' })
    const most = this.#limits.feeds()
    if (channel.subscribers.size >= most) throw tooMany(`The limit of ${most} open feeds is reached; close one first`)
    const ping = (seq = this.#last): FeedItem<P> => ({ kind: 'ping', load: this.#load(), seq })
    const subscriber: Subscriber<P> = new Subscriber({
      ping,
      pings,
      onLeft: () => {
        channel.subscribers.delete(subscriber)
        if (projectId !== undefined && channel === this.#projects.get(projectId) && channel.isIdle)
          this.idleProject(projectId)
      },
      onDropped: () => {
        this.#dropped += 1
      },
    })
    // Missed events follow this ping, so its number must not be later than theirs.
    subscriber.push({ kind: 'ping', load: this.#load(), seq: since ?? this.#last })
    if (since !== undefined) {
      const missed = channel.after(since, this.#last)
      if (missed === undefined) {
        this.#resyncs += 1
        subscriber.push({ kind: 'resync', seq: this.#last })
      } else for (const { event, bytes } of missed) subscriber.push({ kind: 'event', event }, bytes, 'missed')
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
