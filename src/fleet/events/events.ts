import type { EventAgent, FeedRequest } from '../../host-agent.ts'
import { onAbort } from '../../lib/async/abort.ts'
import { pause } from '../../lib/async/pause.ts'
import { relay } from '../../lib/async/relay.ts'
import type { FeedItem } from '../../model/event.ts'
import { FeedLimit } from '../../model/feed-limit.ts'
import type { Load } from '../../model/host.ts'
import { type MetricFamily, single } from '../../model/metrics.ts'
import type { FleetMembers, Member } from '../members/members.ts'
import type { ProjectLocator } from '../placement/project-locator.ts'
import { EventLog } from './event-log.ts'
import { MemberFeed } from './member-feed.ts'

/** Events kept for feeds that are opened again. */
const history = 1000
const maxFeeds = 64
/** How long a new reader waits for the feeds of the computes, ms. */
const openMs = 3000
/** Wait before a feed of a compute is opened again, ms: the first, and the longest. Events of a connected compute are delayed as long. */
const againMs = [500, 5000] as const

/**
 * The number of the last event that was read of each compute. A program that may sleep while feeds are open stores it, and asks for the
 * events after it when it wakes up.
 */
export interface Bookmarks {
  /** By the id of the compute; undefined: unknown. */
  get(id: string): number | undefined
  put(id: string, seq: number): void
  /** Forgets all numbers. */
  clear(): void
}

const noBookmarks: Bookmarks = { get: () => undefined, put() {}, clear() {} }

/**
 * The events of all computes in one feed, with numbers of its own. The feeds of the computes are read only while this feed has readers.
 * Events of a compute whose feed was not read are lost: readers then get `resync`.
 */
export class GatewayEvents implements EventAgent {
  readonly #members: FleetMembers
  readonly #locator: ProjectLocator
  readonly #log: EventLog
  readonly #bookmarks: Bookmarks
  readonly #feeds = new Map<string, Feed>()
  /** Of the computes that the gateway has, also while they are not connected. */
  readonly #limits = new Map<string, FeedLimit>()
  readonly #readers = new Set<object>()
  #dropped = 0
  /** Whether a reader gets the events that are emitted now. */
  #isServing = false
  #unwatch = () => {}

  constructor(members: FleetMembers, locator: ProjectLocator, load: () => Load, bookmarks = noBookmarks) {
    this.#members = members
    this.#locator = locator
    this.#bookmarks = bookmarks
    this.#log = new EventLog({ history, feeds: () => maxFeeds }, load)
  }

  async open(options: FeedRequest): Promise<ReadableStream<FeedItem>> {
    const { projectId, signal } = options
    if (projectId !== undefined)
      return this.#locator.at(projectId, ({ events }) => events.open({ ...options, projectId }))
    const leave = this.#come()
    // The numbers are of an earlier time with readers: the events since then are of no use to this reader.
    if (this.#readers.size === 1) this.#bookmarks.clear()
    try {
      await this.#enter(signal)
      return this.#serve(options, leave)
    } catch (error) {
      leave()
      throw error
    }
  }

  /**
   * As `open`, for a reader that an earlier process served. It gets the events that it missed, by the bookmarks; `resync` when these are
   * unknown. All such readers must be added together: one that comes after the computes were asked misses these events.
   */
  resume(options: Omit<FeedRequest, 'projectId' | 'since'>): ReadableStream<FeedItem> {
    const leave = this.#come()
    try {
      const feed = this.#serve(options, leave)
      void this.#enter(options.signal)
      return feed
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Adds a reader; the result removes it, and may be called more than once. */
  #come(): () => void {
    const reader = {}
    this.#readers.add(reader)
    return () => {
      if (this.#readers.delete(reader) && this.#readers.size === 0) this.#stop()
    }
  }

  #serve(options: FeedRequest, leave: () => void): ReadableStream<FeedItem> {
    const feed = this.#log.open(options)
    this.#isServing = true
    onAbort(options.signal, leave)
    return relay(feed, { onEnd: leave })
  }

  /** Sends a warning for people to the feeds of the project and of the service. */
  warn(projectId: string, message: string): void {
    this.#log.emit(projectId, { type: 'log.warning', message })
  }

  /** Counts the events of computes about projects that they do not have; these events are dropped. */
  metrics(): MetricFamily[] {
    const help = 'Events that were dropped because the compute that sent them does not have the project.'
    return [single('patchbay_gateway_foreign_events_total', 'counter', help, this.#dropped)]
  }

  /** Ends all feeds. */
  close(): void {
    this.#log.close()
    this.#stop()
  }

  /** Opens the feeds of the computes, for a new reader. */
  async #enter(signal: AbortSignal): Promise<void> {
    if (this.#readers.size === 1) this.#unwatch = this.#members.watch(() => void this.#follow())
    await this.#follow()
    const opened = Promise.all([...this.#feeds.values()].map(({ opened }) => opened))
    const enough = new AbortController()
    await Promise.race([opened, pause(openMs, AbortSignal.any([signal, enough.signal]))])
    enough.abort()
  }

  #stop(): void {
    this.#unwatch()
    for (const { over } of this.#feeds.values()) over.abort()
    this.#feeds.clear()
    this.#isServing = false
    // Events from here on are missed.
    this.#log.gap()
  }

  /** Opens the feeds of computes that were connected, and closes those of computes that are not. */
  async #follow(): Promise<void> {
    const members = await this.#members.all().catch((): Member[] => [])
    if (this.#readers.size === 0) return
    const there = new Map(members.filter(({ isConnected }) => isConnected).map((member) => [member.id, member]))
    for (const [id, feed] of this.#feeds) {
      if (there.has(id)) continue
      feed.over.abort()
      this.#feeds.delete(id)
    }
    const ids = new Set(members.map(({ id }) => id))
    for (const id of this.#limits.keys()) if (!ids.has(id)) this.#limits.delete(id)
    for (const member of there.values()) if (!this.#feeds.has(member.id)) this.#begin(member)
  }

  #begin(member: Member): void {
    const over = new AbortController()
    const opened = new Promise<void>((resolve) => {
      void this.#read(member, over.signal, resolve).finally(resolve)
    })
    this.#feeds.set(member.id, { over, opened })
  }

  async #read(member: Member, signal: AbortSignal, opened: () => void): Promise<void> {
    const limit = this.#limits.get(member.id) ?? new FeedLimit()
    this.#limits.set(member.id, limit)
    for (let wait: number = againMs[0]; !signal.aborted; wait = Math.min(2 * wait, againMs[1])) {
      const items = this.#feedOf(member, limit, signal)
      const forget = onAbort(signal, () => items.end())
      try {
        const since = this.#bookmarks.get(member.id)
        const feedOptions = { ...(since !== undefined && { since }), pings: false, limit, signal }
        const feed = await (this.#members.openFeed?.(member, feedOptions) ?? member.agentFor().events.open(feedOptions))
        // Present readers have missed what happened at the compute before.
        if (this.#isServing && since === undefined) {
          await limit.gap(signal)
          this.#log.gap()
        }
        opened()
        for await (const item of feed) {
          // An item that was read just before the end must not be emitted after it.
          if (signal.aborted) return
          wait = againMs[0]
          await items.handle(item)
          if (signal.aborted) return
        }
      } catch {
        // The feed is opened again. The fleet reports that the compute is not connected.
      } finally {
        forget()
        items.end()
      }
      await pause(wait * (0.5 + Math.random() / 2), signal)
    }
  }

  #feedOf(member: Member, limit: FeedLimit, signal: AbortSignal): MemberFeed {
    const locator = this.#locator
    return new MemberFeed({
      member,
      locator: {
        knownAt: (id, at) => locator.knownAt(id, at),
        // A compute may name any number of projects that no compute has.
        async isAt(id, at) {
          await limit.search(signal)
          return !signal.aborted && locator.isAt(id, at)
        },
      },
      emit: ({ project_id, payload, by }) => this.#log.emit(project_id, payload, by),
      foreign: () => {
        this.#dropped += 1
      },
      gap: () => this.#log.gap(),
      told: (seq) => this.#bookmarks.put(member.id, seq),
    })
  }
}

/** The feed of one compute. */
interface Feed {
  readonly over: AbortController
  /** Resolves when it was opened for the first time, or never will be. */
  readonly opened: Promise<void>
}
