import { EventLog } from '../events/event-log.ts'
import type { EventAgent } from '../host-agent.ts'
import type { FeedItem, LabEvent } from '../model/event.ts'
import type { Load } from '../model/host.ts'
import { pause } from '../pause.ts'
import type { Member, Members } from './members.ts'
import type { Whereabouts } from './whereabouts.ts'

/** Events kept for feeds that are opened again. */
const history = 1000
const mostFeeds = 64
/** How long a new reader waits for the feeds of the computes, ms. */
const openMs = 3000
/** Wait before a feed of a compute is opened again, ms: the first, and the longest. */
const againMs = [500, 30_000] as const

/**
 * The events of all computes in one feed, with numbers of its own. Nothing is read of the computes while nobody reads it. What
 * a compute told while its feed was not read is lost: then readers are told to read the resources again.
 */
export class GatewayEvents implements EventAgent {
  readonly #members: Members
  readonly #whereabouts: Whereabouts
  readonly #log: EventLog
  readonly #feeds = new Map<string, Feed>()
  #readers = 0
  /** Whether anybody reads already what is told now. */
  #isServing = false
  #unwatch = () => {}

  constructor(members: Members, whereabouts: Whereabouts, load: () => Load) {
    this.#members = members
    this.#whereabouts = whereabouts
    this.#log = new EventLog({ history, feeds: () => mostFeeds }, load)
  }

  async open(options: { projectId?: string; since?: number; signal: AbortSignal }): Promise<ReadableStream<FeedItem>> {
    const { projectId, signal } = options
    if (projectId !== undefined)
      return this.#whereabouts.at(projectId, ({ events }) => events.open({ ...options, projectId }))
    let isLeft = false
    const leave = () => {
      if (!isLeft) this.#leave()
      isLeft = true
    }
    this.#readers += 1
    try {
      await this.#enter(signal)
      const feed = this.#log.open(options)
      this.#isServing = true
      signal.addEventListener('abort', leave, { once: true })
      if (signal.aborted) leave()
      return watched(feed, leave)
    } catch (error) {
      leave()
      throw error
    }
  }

  /** Ends all feeds. */
  close(): void {
    this.#log.close()
    this.#stop()
  }

  /** What is told from here on is read of the computes. */
  async #enter(signal: AbortSignal): Promise<void> {
    if (this.#readers === 1) this.#unwatch = this.#members.watch(() => void this.#follow())
    await this.#follow()
    const opened = Promise.all([...this.#feeds.values()].map(({ opened }) => opened))
    const enough = new AbortController()
    await Promise.race([opened, pause(openMs, AbortSignal.any([signal, enough.signal]))])
    enough.abort()
  }

  #leave(): void {
    this.#readers -= 1
    if (this.#readers === 0) this.#stop()
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
    if (this.#readers === 0) return
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
      try {
        const feed = await member.agent.events.open({ signal })
        // What happened there before is not known to who reads already.
        if (this.#isServing) this.#log.gap()
        opened()
        for await (const item of feed) {
          // What was read before the end is not told after it.
          if (signal.aborted) return
          wait = againMs[0]
          if (item.kind === 'event') this.#heard(item.event)
          else if (item.kind !== 'ping') this.#log.gap()
        }
      } catch {
        // It is opened again; that the compute has gone is told by the fleet.
      }
      await pause(wait * (0.5 + Math.random() / 2), signal)
    }
  }

  #heard({ project_id, happening }: LabEvent): void {
    this.#log.emit(project_id, happening)
  }
}

/** The feed of one compute. */
interface Feed {
  readonly over: AbortController
  /** Resolves when it was opened for the first time, or never will be. */
  readonly opened: Promise<void>
}

/** The same items; `left` is called when they end, or the reader goes. */
function watched(feed: ReadableStream<FeedItem>, left: () => void): ReadableStream<FeedItem> {
  const reader = feed.getReader()
  return new ReadableStream<FeedItem>(
    {
      async pull(controller) {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        left()
        controller.close()
      },
      async cancel(reason) {
        left()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
