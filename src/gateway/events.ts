import { onAbort } from '../async/abort.ts'
import { pause } from '../async/pause.ts'
import { relay } from '../async/relay.ts'
import { EventLog } from '../events/event-log.ts'
import type { EventAgent, FeedRequest } from '../host-agent.ts'
import type { FeedItem } from '../model/event.ts'
import type { Load } from '../model/host.ts'
import { type MetricFamily, single } from '../model/metrics.ts'
import { MemberFeed } from './member-feed.ts'
import type { FleetMembers, Member } from './members.ts'
import type { ProjectLocator } from './project-locator.ts'

/** Events kept for feeds that are opened again. */
const history = 1000
const maxFeeds = 64
/** How long a new reader waits for the feeds of the computes, ms. */
const openMs = 3000
/** Wait before a feed of a compute is opened again, ms: the first, and the longest, for which readers hear nothing of a compute that is there. */
const againMs = [500, 5000] as const

/**
 * Up to which number each compute was heard, kept by whoever may sleep while feeds are open: what was not heard meanwhile is then
 * asked for.
 */
export interface Bookmarks {
  /** By the id of the compute; undefined: it is not known what was heard. */
  get(id: string): number | undefined
  put(id: string, seq: number): void
  /** What was heard until now is of no use. */
  clear(): void
}

const noBookmarks: Bookmarks = { get: () => undefined, put() {}, clear() {} }

/**
 * The events of all computes in one feed, with numbers of its own. Nothing is read of the computes while nobody reads it. What
 * a compute told while its feed was not read is lost: then readers are told to read the resources again.
 */
export class GatewayEvents implements EventAgent {
  readonly #members: FleetMembers
  readonly #locator: ProjectLocator
  readonly #log: EventLog
  readonly #bookmarks: Bookmarks
  readonly #feeds = new Map<string, Feed>()
  readonly #readers = new Set<object>()
  #dropped = 0
  /** Whether anybody reads already what is told now. */
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
    // What was heard for readers of another time says nothing about now.
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
   * As `open`, for a reader whom the program before this one served: it is told what was missed, by the bookmarks, and to read the
   * resources again when that is not known. All such readers come at once: who comes after the computes were asked misses it.
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

  /** Something that a person has to look at, in the feeds of the project and of all. */
  warn(projectId: string, message: string): void {
    this.#log.emit(projectId, { type: 'log.warning', message })
  }

  /** Events that computes told of projects which are not theirs; they are told to nobody. */
  metrics(): MetricFamily[] {
    const help = 'Events that were dropped because the compute that told them does not have the project.'
    return [single('patchbay_gateway_foreign_events_total', 'counter', help, this.#dropped)]
  }

  /** Ends all feeds. */
  close(): void {
    this.#log.close()
    this.#stop()
  }

  /** What is told from here on is read of the computes. */
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
    // From here on it is not known what happens.
    this.#log.gap()
  }

  /** Begins with computes that came, and ends with those that went. */
  async #follow(): Promise<void> {
    const members = await this.#members.all().catch((): Member[] => [])
    if (this.#readers.size === 0) return
    const there = new Map(members.filter(({ isConnected }) => isConnected).map((member) => [member.id, member]))
    for (const [id, feed] of this.#feeds) {
      if (there.has(id)) continue
      feed.over.abort()
      this.#feeds.delete(id)
    }
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
    for (let wait: number = againMs[0]; !signal.aborted; wait = Math.min(2 * wait, againMs[1])) {
      const items = this.#feedOf(member)
      const forget = onAbort(signal, () => items.end())
      try {
        const since = this.#bookmarks.get(member.id)
        const asked = { ...(since !== undefined && { since }), pings: false, signal }
        const feed = await (this.#members.openFeed?.(member, asked) ?? member.agent.events.open(asked))
        // What happened there before is not known to who reads already.
        if (this.#isServing && since === undefined) this.#log.gap()
        opened()
        for await (const item of feed) {
          // What was read before the end is not told after it.
          if (signal.aborted) return
          wait = againMs[0]
          await items.take(item)
          if (signal.aborted) return
        }
      } catch {
        // It is opened again; that the compute has gone is told by the fleet.
      } finally {
        forget()
        items.end()
      }
      await pause(wait * (0.5 + Math.random() / 2), signal)
    }
  }

  #feedOf(member: Member): MemberFeed {
    return new MemberFeed({
      ...{ locator: this.#locator, member },
      tell: ({ project_id, payload, by }) => this.#log.emit(project_id, payload, by),
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
