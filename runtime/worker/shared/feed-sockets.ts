import { Check } from '@sinclair/typebox/value'
import type { GatewayEvents } from '../../../src/fleet/events/events.ts'
import { isEventVisible, type ServiceEvent } from '../../../src/fleet/events/fleet-feed.ts'
import { seqOf } from '../../../src/fleet/events/member-feed.ts'
import type { Fleet } from '../../../src/fleet/pool/fleet.ts'
import type { LabRegistry } from '../../../src/labs/registry.ts'
import { ApiError, notFound } from '../../../src/lib/errors/api-error.ts'
import { unauthorized } from '../../../src/model/access/identity.ts'
import { isInScope } from '../../../src/model/access/project-scope.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import type { Load } from '../../../src/model/host.ts'
import { type FeedMessage, revoked, WantedFeed, wantedIn } from './feed-message.ts'
import type { HibernatableSocket, HibernatableSockets } from './hibernatable-sockets.ts'
import { encodeError } from './rpc-error.ts'

export interface FeedSocketsOptions {
  readonly sockets: HibernatableSockets
  /** `resume`: only where feeds are over all projects. */
  readonly events: Pick<GatewayEvents, 'open'> & Partial<Pick<GatewayEvents, 'resume'>>
  /** Absent: the feeds have the events of one project. */
  readonly fleet?: Pick<Fleet, 'listen'>
  readonly labs?: Pick<LabRegistry, 'listen' | 'nameOf'>
  /** The load of the compute of a project, or of all computes; undefined while unknown. */
  readonly load: (projectId: string | undefined) => Promise<Load | undefined>
  /** Whether the credential with this key is still valid. Isolates may not know yet that it was revoked. */
  readonly isGood: (key: string) => Promise<boolean>
}

interface Open {
  readonly socket: HibernatableSocket
  readonly wanted: WantedFeed
  readonly over: AbortController
}

/**
 * The feeds that isolates read for their clients, each by a websocket that outlives this program. They are silent while nothing happens,
 * so that the object can hibernate; the isolates add the pings.
 */
export class FeedSockets {
  readonly #options: FeedSocketsOptions
  readonly #open = new Set<Open>()
  #unlisten: (() => void) | undefined

  constructor(options: FeedSocketsOptions) {
    this.#options = options
  }

  /** Number of open feeds. */
  get size(): number {
    return this.#open.size
  }

  /**
   * Answers an isolate at once, as overlapping requests kept an object awake (seen with workerd). A refusal follows by the websocket.
   */
  open(request: Request): Response {
    const wanted = wantedIn(request.url)
    return this.#options.sockets.accept('feed', request, {
      open: (socket) => void this.#begin(this.#add({ socket, wanted, over: new AbortController() })),
    })
  }

  /** Resumes the feeds of an earlier program; their readers get the events that they missed. */
  resume(): void {
    const { events, sockets } = this.#options
    for (const { socket, kept } of sockets.existingSockets('feed')) {
      if (!Check(WantedFeed, kept)) {
        socket.close(1012, 'The gateway restarts')
        continue
      }
      const feed = this.#add({ socket, wanted: kept, over: new AbortController() })
      if (feed.wanted.projectId !== undefined) void this.#begin(feed)
      else this.#goOn(feed, events.resume?.bind(events))
    }
  }

  /** Ends the feeds of a revoked credential. */
  revoke(key: string): void {
    for (const feed of this.#open) if (feed.wanted.key === key) this.#close(feed, revoked, 'The token was revoked')
  }

  /** Sends the load of the computes, for the pings. */
  async publishLoads(): Promise<void> {
    for (const feed of this.#open) {
      const load = await this.#options.load(feed.wanted.projectId)
      if (load !== undefined) this.#send(feed, { kind: 'load', load })
    }
  }

  #add(feed: Open): Open {
    const { socket, wanted } = feed
    socket.keep(wanted)
    socket.onClose(() => this.#left(feed))
    this.#open.add(feed)
    if (wanted.computes) this.#unlisten ??= this.#listen()
    return feed
  }

  #listen(): () => void {
    const ends = [
      this.#options.fleet?.listen((event) => this.#happened(event)),
      this.#options.labs?.listen(({ action, event }) => this.#happened({ type: action, resource: event })),
    ]
    return () => {
      for (const end of ends) end?.()
    }
  }

  #goOn(feed: Open, resume: GatewayEvents['resume'] | undefined): void {
    try {
      if (resume === undefined) return this.#close(feed, 1012, 'The gateway restarts')
      void this.#pump(feed, resume({ pings: false, signal: feed.over.signal }))
    } catch {
      // Above the limit: accepted by an earlier program that ended before its refusal.
      this.#close(feed, 1001, 'The feed was refused')
    }
  }

  async #begin(feed: Open): Promise<void> {
    const { projectId, since } = feed.wanted
    let items: ReadableStream<FeedItem>
    try {
      if (projectId !== undefined && !this.#sees(feed, projectId))
        throw notFound(`project_id: there is no project ${projectId}`, { code: 'no-such-project' })
      items = await this.#options.events.open({
        ...(projectId !== undefined && { projectId }),
        ...(since !== undefined && { since }),
        pings: false,
        signal: feed.over.signal,
      })
      // Checked last: a revocation from here on finds the feed among the open ones.
      if (!(await this.#options.isGood(feed.wanted.key))) throw unauthorized()
    } catch (error) {
      if (!(error instanceof ApiError)) return this.#close(feed, 1011, 'The feed could not be opened')
      this.#send(feed, { kind: 'refused', ...encodeError(error) })
      // After hibernation a 404 means that the project was closed meanwhile.
      return this.#close(feed, error.status === 404 ? 1000 : 1001, 'The feed was refused')
    }
    await this.#pump(feed, items)
  }

  async #pump(feed: Open, items: ReadableStream<FeedItem>): Promise<void> {
    try {
      for await (const item of items) {
        if (item.kind !== 'event' || this.#sees(feed, item.event.project_id))
          this.#send(feed, item.kind === 'ping' ? await this.#withLoad(item, feed) : item)
        const since = seqOf(item)
        // The numbers of the feed of all computes are of this program, and restart with the next.
        if (feed.wanted.projectId !== undefined && since !== undefined) feed.socket.keep({ ...feed.wanted, since })
      }
      this.#close(feed, 1000, 'The project was closed')
    } catch {
      this.#close(feed, 1001, 'The feed broke off')
    }
  }

  /** Replaces the load of the object in a ping by that of the computes. */
  async #withLoad(ping: Extract<FeedItem, { kind: 'ping' }>, { wanted }: Open): Promise<FeedItem> {
    return { ...ping, load: (await this.#options.load(wanted.projectId)) ?? ping.load }
  }

  #happened(event: ServiceEvent): void {
    for (const feed of this.#open) {
      if (feed.wanted.computes && this.#mayHear(feed, event)) this.#send(feed, { kind: 'fleet', event })
    }
  }

  #sees({ wanted }: Open, id: string, name = this.#options.labs?.nameOf(id)): boolean {
    return isInScope(wanted.projects, id, name)
  }

  /** Whether the scope of the feed's token allows an event. */
  #mayHear(feed: Open, event: ServiceEvent): boolean {
    return feed.wanted.projects === undefined || isEventVisible(event, (id, name) => this.#sees(feed, id, name))
  }

  #send(feed: Open, message: FeedMessage): void {
    try {
      feed.socket.send(JSON.stringify(message))
    } catch {
      // Closed meanwhile.
      this.#left(feed)
    }
  }

  #close(feed: Open, code: number, reason: string): void {
    this.#left(feed)
    feed.socket.close(code, reason)
  }

  #left(feed: Open): void {
    this.#open.delete(feed)
    feed.over.abort()
    if ([...this.#open].some(({ wanted }) => wanted.computes)) return
    this.#unlisten?.()
    this.#unlisten = undefined
  }
}
