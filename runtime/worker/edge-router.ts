import { waitUntil } from 'cloudflare:workers'
import { type App, type Asked, createApp } from '../../src/app.ts'
import { ignore } from '../../src/async/ignore.ts'
import type { Identity } from '../../src/auth/identity.ts'
import { ListedTokens } from '../../src/auth/listed-tokens.ts'
import { Sessions } from '../../src/auth/sessions.ts'
import { fetchTransport } from '../../src/client/transport.ts'
import { notFound } from '../../src/errors/api-error.ts'
import { type ErrorWord, errorHeader } from '../../src/errors/words.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import { createGateway } from '../../src/gateway/gateway-agent.ts'
import type { ProjectRequest } from '../../src/gateway/hand-on.ts'
import type { BringImage } from '../../src/gateway/image-copies.ts'
import type { FleetMembers } from '../../src/gateway/members.ts'
import { bearerOf } from '../../src/http/access/credentials.ts'
import { readBytes } from '../../src/http/body.ts'
import type { Endpoint } from '../../src/http/endpoint.ts'
import { RequestMetrics } from '../../src/http/request-metrics.ts'
import { SignedTickets } from '../../src/http/signed-tickets.ts'
import { isUpgrade } from '../../src/http/socket.ts'
import { metricsPath } from '../../src/routes/metrics.ts'
import { ticketPath } from '../../src/routes/server.ts'
import { noJoinToken } from '../../src/routes/v2/join.ts'
import { sessionPath } from '../../src/routes/v2/session.ts'
import { isUuid } from '../../src/schema/fields.ts'
import { Admissions, projectHeader } from './admitted.ts'
import { openAuth, sessionKey, tokenKey } from './auth.ts'
import { aliasesOf, type Env } from './env.ts'
import type { FleetObject, FleetSnapshot } from './fleet-object.ts'
import { commonOptions, dialectOf, gatewayHost } from './host.ts'
import { objectFeeds } from './object-feeds.ts'
import { PlacementCache } from './placement-cache.ts'
import { socketTransport, upgrade } from './sockets.ts'
import { sendWhole, wholeFetch } from './whole-bodies.ts'

/** How long what the object said of the computes is used, ms: until it is asked again beside a request, and at most. */
const freshMs = 5000
const staleMs = 10_000

type Stub = DurableObjectStub<FleetObject>

/** What the object said last, and when, ms. */
interface Taken extends Pick<FleetSnapshot, 'revision' | 'shown'> {
  readonly fleet: Fleet
  readonly at: number
}

/**
 * Decides who is let in, with nothing but what this isolate knows: the object is asked nothing for a request without credentials.
 * It answers what is about one project at a compute with an address, without the object: it would be the way of every byte of
 * every lab. It answers all feeds, too, so that the object sleeps while nothing happens in them. What was found out is shared by
 * the requests of this isolate, and never what is under way.
 */
export class EdgeRouter {
  readonly #object: () => Stub
  readonly #projects: Env['PROJECTS']
  readonly #placementCache: PlacementCache
  readonly #tokens: ListedTokens
  readonly #admissions: Admissions
  readonly #app: App
  #taken: Taken | undefined
  readonly #lost = new Set<string>()
  /** What was answered here since the object was told. */
  readonly #answered = new RequestMetrics()
  /** The requests that are handed on to a compute from here, and not by the object. */
  readonly #near = new WeakMap<Request, Near>()

  constructor(env: Env) {
    this.#object = () => env.FLEET.getByName('fleet')
    this.#projects = env.PROJECTS
    this.#placementCache = new PlacementCache(this.#object)
    this.#admissions = new Admissions(env)
    this.#tokens = new ListedTokens({
      key: tokenKey(env),
      read: (known, reason) => this.#object().tokenList(known, reason),
      waitUntil,
    })
    this.#app = this.#open(env)
  }

  async answer(asked: Request): Promise<Response> {
    const request = withPings(asked)
    const response = await this.#app.fetch(request)
    if (this.#lost.size > 0) waitUntil(this.#tell())
    const near = this.#near.get(request)
    if (near === undefined || !isNoSuchProject(response.headers.get(errorHeader))) return response
    // It may be elsewhere: the object can look for it.
    this.#placementCache.avoid(near.projectId)
    if (!isRead(request)) return response
    response.body?.cancel().catch(ignore('the answer is not wanted any more'))
    return this.#hand(request, near.identity)
  }

  /** What is not answered here; undefined: it is. */
  async #elsewhere({ request, endpoint, params, projectId, identity }: Asked): Promise<Response | undefined> {
    if (endpoint.joins === true) {
      if (!(await this.#tokens.isJoinToken(bearerOf(request) ?? ''))) throw noJoinToken()
      // The object looks at the token itself, as it may belong to one compute.
      return this.#hand(request, undefined)
    }
    if (endpoint.createsLab === true) return this.#toNewLab(request, identity)
    if (endpoint.owner === 'self' && params.project_id !== undefined)
      return this.#toLab(await this.#labOf(params.project_id), request, identity)
    if (endpoint.path === ticketPath || endpoint.path === sessionPath) return undefined
    if (endpoint.path === metricsPath) await this.#count()
    // The object is told meanwhile what was answered here.
    if (endpoint.owner !== 'project' && isFeed(endpoint))
      waitUntil(this.#current().catch(ignore('a request that needs the fleet takes it again, and is told')))
    // Names of projects are known to the object.
    if (projectId !== undefined && identity.projects === undefined) {
      await this.#current()
      if (await this.#isNear(projectId)) this.#near.set(request, { projectId, identity })
    }
    return this.#near.has(request) || isFeed(endpoint) ? undefined : this.#hand(request, identity)
  }

  /** Tells the object what was answered here, of which it gives the figures. */
  async #count(): Promise<void> {
    const answered = this.#answered.take()
    await this.#object()
      .count(answered)
      .catch(() => this.#answered.add(answered))
  }

  async #hand(request: Request, identity: Identity | undefined): Promise<Response> {
    return sendWhole(this.#object(), await this.#admissions.mark(request, identity))
  }

  /** The id of a lab that a path names by its id or its name. 404. */
  async #labOf(word: string): Promise<string> {
    const id = isUuid(word) ? word.toLowerCase() : await this.#object().labNamed(word)
    if (id === undefined) throw notFound(`project_id: there is no project ${word}`, { word: 'no-such-project' })
    return id
  }

  async #toLab(id: string, request: Request, identity: Identity): Promise<Response> {
    const marked = await this.#admissions.mark(request, identity, { [projectHeader]: id })
    return sendWhole(this.#projects.getByName(id), marked)
  }

  /** A new lab goes to the object of the id that it is given, or of a new one. */
  async #toNewLab(request: Request, identity: Identity): Promise<Response> {
    const body = await readBytes(request, commonOptions.jsonBytes)
    const headers = new Headers(request.headers)
    headers.set('content-length', String(body.byteLength))
    const whole = new Request(request.url, { method: 'POST', headers, body, signal: request.signal })
    return this.#toLab(wantedId(body) ?? crypto.randomUUID(), whole, identity)
  }

  async #current(): Promise<Fleet> {
    const taken = this.#taken
    const ageMs = Date.now() - (taken?.at ?? 0)
    if (taken === undefined || ageMs > staleMs) return this.#take()
    if (ageMs > freshMs)
      waitUntil(this.#take().catch(ignore('a request that needs the fleet takes it again, and is told')))
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
      transport: fetchTransport(wholeFetch(fetchOf)),
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
    const members: FleetMembers = {
      // Nothing is looked for from here.
      all: async () => [],
      find: async (id) => this.#taken && fleetMembers(this.#taken.fleet).find(id),
      watch: () => () => {},
    }
    const { access, rateLimit } = openAuth(env, (token) => this.#tokens.identify(token))
    const placements = this.#placementCache
    const bring: BringImage = (compute, image) => this.#object().bringImage(compute, image)
    // Anew for every request: none may wait for what another one began.
    const gateway = () => createGateway({ members, placements, host: gatewayHost(), bring })
    return createApp({
      ...commonOptions,
      aliases: aliasesOf(env),
      dialect: dialectOf(env),
      agent: (asker) => {
        const agent = gateway().agent(asker)
        const { handOn } = agent
        // Feeds of projects that are not near are read of the object.
        return Object.assign(agent, {
          handOn: (it: ProjectRequest) => (this.#near.has(it.request) ? handOn(it) : undefined),
        })
      },
      feeds: objectFeeds(this.#object, env),
      tickets: new SignedTickets({ key: tokenKey(env), use: (ticket) => this.#object().useTicket(ticket) }),
      sessions: this.#sessions(env),
      elsewhere: (asked) => this.#elsewhere(asked),
      scopes: 'elsewhere',
      access,
      rateLimit,
      upgrade,
      trace: ({ route, method, status, ms, credential, error }) => {
        // The object counts what it is asked after all.
        if (!isRead({ method }) || !isNoSuchProject(error))
          this.#answered.count(route, method, status, ms / 1000, credential)
      },
    })
  }

  #sessions(env: Env): Sessions {
    const tokens = this.#tokens
    const object = this.#object
    return new Sessions({
      key: sessionKey(env),
      keeper: {
        holds: (session) => tokens.isSessionValid(session),
        async end(session) {
          const { id, begunAt, endsAt } = session
          await object().endSession({ id, begunAt, endsAt })
          tokens.endSession(session)
        },
      },
    })
  }

  async #isNear(project: string): Promise<boolean> {
    const compute = await this.#placementCache.lookUp(project)
    return compute !== undefined && this.#taken !== undefined && (await isConnected(this.#taken.fleet, compute))
  }
}

interface Near {
  readonly projectId: string
  /** Who asks. */
  readonly identity: Identity
}

/** The id in the body of a creation; undefined where it has none that is valid. */
function wantedId(body: Uint8Array): string | undefined {
  try {
    const { project_id } = JSON.parse(new TextDecoder().decode(body)) as { project_id?: unknown }
    return typeof project_id === 'string' && isUuid(project_id) ? project_id.toLowerCase() : undefined
  } catch {
    return undefined
  }
}

const isFeed = ({ path, websocket }: Endpoint): boolean => websocket === true && path.includes('/notifications')

/** Here it is noticed by what is sent that the client of a feed has gone, so no feed goes without pings, but for a websocket. */
function withPings(request: Request): Request {
  if (request.method !== 'GET' || isUpgrade(request) || !request.url.includes('/notifications')) return request
  const url = new URL(request.url)
  if (!url.searchParams.has('pings')) return request
  url.searchParams.delete('pings')
  return new Request(url, request)
}

const isNoSuchProject = (word: string | null | undefined): boolean => word === ('no-such-project' satisfies ErrorWord)

const isRead = ({ method }: { method: string }): boolean => method === 'GET' || method === 'HEAD'

async function isConnected(fleet: Fleet, id: string): Promise<boolean> {
  return (await fleetMembers(fleet).find(id))?.isConnected === true
}
