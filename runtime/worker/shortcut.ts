import { type App, createApp } from '../../src/app.ts'
import type { TokenStore } from '../../src/auth/token-store.ts'
import { ApiError } from '../../src/errors.ts'
import type { FeedSource } from '../../src/events/fleet-feed.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { fetchTransport } from '../../src/fleet/transport.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import { createGateway } from '../../src/gateway/gateway-agent.ts'
import type { Members } from '../../src/gateway/members.ts'
import { RequestMetrics } from '../../src/http/request-metrics.ts'
import { isUpgrade } from '../../src/http/socket.ts'
import type { TicketOffice } from '../../src/http/tickets.ts'
import { openAuth } from './auth.ts'
import { aliasesOf, type Env } from './env.ts'
import type { FleetObject, Snapshot } from './fleet-object.ts'
import { common, gatewayHost } from './host.ts'
import { objectFeeds } from './object-feeds.ts'
import { Places } from './places.ts'
import { socketTransport, upgrade } from './sockets.ts'

/** How long what the object said of the computes is used, ms: until it is asked again beside a request, and at most. */
const freshMs = 5000
const staleMs = 10_000

/** What is about one project. */
const ofProject = /^\/(?:v1|v2\/compute)\/projects\/([0-9a-f-]{36})(?:\/|$)/i

/** The feeds; that of a project names it. */
const ofFeed =
  /^\/(?:v2\/(?:compute\/)?notifications|(?:v1|v2\/compute)\/projects\/([0-9a-f-]{36})\/notifications)(?:\/ws)?\/?$/i

type Stub = DurableObjectStub<FleetObject>

/** What the object said last, and when, ms. */
interface Taken extends Pick<Snapshot, 'revision' | 'shown'> {
  readonly fleet: Fleet
  readonly at: number
}

/**
 * Answers what is about one project at a compute with an address, without the object: it would be the way of every byte of
 * every lab. It answers all feeds, too, so that the object sleeps while nothing happens in them. What was found out is shared by
 * the requests of this isolate, and never what is under way.
 */
export class Shortcut {
  readonly #object: () => Stub
  readonly #places: Places
  readonly #app: App
  #taken: Taken | undefined
  readonly #lost = new Set<string>()
  /** What was answered here since the object was told. */
  readonly #answered = new RequestMetrics()

  constructor(env: Env) {
    this.#object = () => env.FLEET.getByName('fleet')
    this.#places = new Places(this.#object)
    this.#app = this.#open(env)
  }

  /** Undefined: the object has to be asked. */
  async answer(request: Request, context: ExecutionContext): Promise<Response | undefined> {
    const { pathname, searchParams } = new URL(request.url)
    const feed = request.method === 'GET' ? ofFeed.exec(pathname) : null
    if (feed !== null) {
      const current = this.#current(context)
      // That of all projects is of the object: it is told meanwhile what was answered here.
      if (feed[1] === undefined) context.waitUntil(current.catch(() => {}))
      else await current
      return this.#answer(isUpgrade(request) ? request : withPings(request), context)
    }
    const project = ofProject.exec(pathname)?.[1]?.toLowerCase()
    // Tickets are where they were given.
    if (project === undefined || searchParams.has('ticket')) return undefined
    await this.#current(context)
    if (!(await this.#isNear(project))) return undefined
    const response = await this.#answer(request, context)
    if (response.status !== 404) return response
    // It may be elsewhere: the object can look for it.
    this.#places.avoid(project)
    if (!isLeft(request.method, response.status)) return response
    response.body?.cancel().catch(() => {})
    return undefined
  }

  async #answer(request: Request, context: ExecutionContext): Promise<Response> {
    const response = await this.#app.fetch(request)
    if (this.#lost.size > 0) context.waitUntil(this.#tell())
    return response
  }

  async #current(context: ExecutionContext): Promise<Fleet> {
    const taken = this.#taken
    const ageMs = Date.now() - (taken?.at ?? 0)
    if (taken === undefined || ageMs > staleMs) return this.#take()
    if (ageMs > freshMs) context.waitUntil(this.#take().catch(() => {}))
    return taken.fleet
  }

  async #take(): Promise<Fleet> {
    const before = this.#taken
    const answered = this.#answered.take()
    const snapshot = await this.#object()
      .snapshot(before?.revision, answered)
      .catch((error: unknown) => {
        this.#answered.add(answered)
        throw error
      })
    // Only what is here already is not said again.
    if (snapshot === undefined) return this.#keep(before as Taken)
    const { revision, records, shown } = snapshot
    const fetchOf = (url: string, init: RequestInit) => fetch(url, init)
    const fleet = await Fleet.open({
      registry: { load: async () => records, save: async () => {}, remove: async () => {} },
      transport: fetchTransport(fetchOf),
      sockets: socketTransport(fetchOf),
      version: PATCHBAY_VERSION,
      upkeep: false,
    })
    fleet.listen((event) => {
      if (event.type === 'compute.updated' && !event.compute.connected) this.#lost.add(event.compute.compute_id)
    })
    return this.#keep({ fleet, revision, shown, at: 0 })
  }

  /** What the object found is in force again, whatever requests found meanwhile: it was told of that. */
  #keep(taken: Taken): Fleet {
    taken.fleet.recall(taken.shown, 0)
    this.#taken = { ...taken, at: Date.now() }
    return taken.fleet
  }

  /** The object looks itself whether what cannot be reached from here is there. */
  async #tell(): Promise<void> {
    const lost = [...this.#lost]
    this.#lost.clear()
    await this.#object().look(lost)
  }

  #open(env: Env): App {
    const members: Members = {
      // Nothing is looked for from here.
      all: async () => [],
      find: async (id) => this.#taken && fleetMembers(this.#taken.fleet).find(id),
      watch: () => () => {},
    }
    const { access, rateLimit } = openAuth(env, tokensOf(this.#object), freshMs)
    const placements = this.#places
    // Anew for every request: none may wait for what another one began.
    const gateway = () => createGateway({ members, placements, host: gatewayHost() })
    return createApp({
      ...common,
      aliases: aliasesOf(env),
      agent: (absent, caller) => gateway().agent(absent, caller),
      feeds: this.#feeds(env, (feed) => gateway().events.open(feed)),
      tickets: ticketsOf(this.#object),
      access,
      rateLimit,
      upgrade,
      trace: ({ route, method, status, ms }) => {
        if (!isLeft(method, status) || route.includes('/notifications'))
          this.#answered.count(route, method, status, ms / 1000)
      },
    })
  }

  /** Those of projects at computes with an address are read of them, all else of the object. */
  #feeds(env: Env, near: FeedSource): FeedSource {
    const far = objectFeeds(this.#object, env)
    return async (feed) => {
      const project = feed.projectId
      if (project === undefined || !(await this.#isNear(project))) return far(feed)
      try {
        return await near(feed)
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error
        // It may be elsewhere: the object can look for it.
        this.#places.avoid(project)
        return far(feed)
      }
    }
  }

  async #isNear(project: string): Promise<boolean> {
    const compute = await this.#places.lookUp(project)
    return compute !== undefined && this.#taken !== undefined && (await isConnected(this.#taken.fleet, compute))
  }
}

/** Here it is noticed by what is sent that the client of a stream has gone, so nothing goes without pings. */
function withPings(request: Request): Request {
  const url = new URL(request.url)
  if (!url.searchParams.has('pings')) return request
  url.searchParams.delete('pings')
  return new Request(url, request)
}

/** Whether the object is asked after all, and counts the request. */
const isLeft = (method: string, status: number): boolean => status === 404 && (method === 'GET' || method === 'HEAD')

async function isConnected(fleet: Fleet, id: string): Promise<boolean> {
  return (await fleetMembers(fleet).find(id))?.isConnected === true
}

/** The tokens of the object; they are made and revoked there. */
const tokensOf = (object: () => Stub): TokenStore => {
  const refused = async () => {
    throw new Error('Tokens are changed by the object')
  }
  return { get: (id) => object().token(id), list: refused, put: refused, replace: refused, remove: refused }
}

/** The tickets of the object, which are good once wherever they come. */
const ticketsOf = (object: () => Stub): TicketOffice => {
  const refused = () => {
    throw new Error('Tickets are given by the object')
  }
  return { redeem: (ticket) => object().redeem(ticket), issue: refused, void: refused }
}
