import { waitUntil } from 'cloudflare:workers'
import { Check } from '@sinclair/typebox/value'
import { type App, createApp } from '../../../src/app.ts'
import { ticketPath } from '../../../src/endpoints/compute/server.ts'
import { mcpPath } from '../../../src/endpoints/service/assistants.ts'
import { metricsPath } from '../../../src/endpoints/service/metrics.ts'
import { noJoinToken } from '../../../src/endpoints/v2/fleet/join.ts'
import { sessionPath } from '../../../src/endpoints/v2/fleet/session.ts'
import type { FeedSource } from '../../../src/fleet/events/fleet-feed.ts'
import type { ProjectRequest } from '../../../src/fleet/gateway/forward-request.ts'
import type { ReplicateImage } from '../../../src/fleet/images/image-copies.ts'
import type { Member } from '../../../src/fleet/members/members.ts'
import type { RequestNotes } from '../../../src/fleet/members/requesting-caller.ts'
import { isReserved } from '../../../src/fleet/pool/computes.ts'
import { JoinLimit } from '../../../src/fleet/pool/join-limit.ts'
import { projectIdOf } from '../../../src/labfile/ids.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { thenSync } from '../../../src/lib/async/then-sync.ts'
import { ApiError, badRequest, notFound } from '../../../src/lib/errors/api-error.ts'
import { type ErrorCode, errorHeader } from '../../../src/lib/errors/error-codes.ts'
import { readBytes } from '../../../src/lib/http/body.ts'
import { isUpgrade } from '../../../src/lib/http/socket.ts'
import type { Identity } from '../../../src/model/access/identity.ts'
import { isInScope } from '../../../src/model/access/project-scope.ts'
import { ComputeId } from '../../../src/model/compute.ts'
import { capabilitiesPath } from '../../../src/model/host.ts'
import { isUuid } from '../../../src/model/schema/fields.ts'
import { bearerOf } from '../../../src/server/access/credentials.ts'
import type { Trace } from '../../../src/server/app-options.ts'
import { ListedTokens } from '../../../src/server/auth/listed-tokens.ts'
import { RateLimit } from '../../../src/server/auth/rate-limit.ts'
import { Sessions } from '../../../src/server/auth/sessions.ts'
import type { SignedTokens } from '../../../src/server/auth/token-text.ts'
import { isKeyOfToken } from '../../../src/server/auth/tokens.ts'
import { composeIsolate } from '../../../src/server/compose.ts'
import { requireUpgrade } from '../../../src/server/feeds/feed.ts'
import type { Endpoint } from '../../../src/server/http/endpoint.ts'
import { RequestMetrics } from '../../../src/server/http/request-metrics.ts'
import { SignedTickets } from '../../../src/server/http/signed-tickets.ts'
import { allowOrigin } from '../../../src/server/steps/allow-origin.ts'
import { answerErrors } from '../../../src/server/steps/answer-errors.ts'
import { authenticate } from '../../../src/server/steps/authenticate.ts'
import { authorize } from '../../../src/server/steps/authorize.ts'
import { type AdmittedRequest, delegateRequest } from '../../../src/server/steps/delegate-request.ts'
import { directReads } from '../../../src/server/steps/direct-reads.ts'
import { findEndpoint } from '../../../src/server/steps/find-endpoint.ts'
import { finishResponse } from '../../../src/server/steps/finish-response.ts'
import { forwardToCompute } from '../../../src/server/steps/forward-to-compute.ts'
import { limitRate } from '../../../src/server/steps/limit-rate.ts'
import { recordRequest } from '../../../src/server/steps/record-request.ts'
import { ownCompute } from '../../../src/server/steps/refuse-own-requests.ts'
import { runHandler } from '../../../src/server/steps/run-handler.ts'
import { translate } from '../../../src/server/steps/translate.ts'
import { Admissions, projectHeader } from '../shared/admissions.ts'
import { openAuth, sessionKey, tokenKey } from '../shared/auth.ts'
import { CachedComputes } from '../shared/cached-computes.ts'
import type { Env } from '../shared/env.ts'
import { sendWhole } from '../shared/fixed-length-bodies.ts'
import { commonAdmission, commonOptions, gatewayHost, jsonBytes, objectError, reportDefect } from '../shared/host.ts'
import { ObjectTunnels } from '../shared/object-tunnels.ts'
import { Objects } from '../shared/objects.ts'
import { isOwnCheck } from '../shared/own-checks.ts'
import type { EdgeRouters } from './edge-routers.ts'
import { objectFeeds } from './object-feeds.ts'
import { PlacementCache } from './placement-cache.ts'

/** Time between two reports of request counts to the directory, ms. */
const countMs = 5000

/** Paths that need neither the directory nor a compute. */
const answeredHere = new Set([ticketPath, sessionPath, mcpPath])

export interface EdgeRouterOptions {
  /** Of all organizations. */
  readonly signed: SignedTokens
  /** Given to the router of `default`, which lets requests in for all organizations. */
  readonly all?: EdgeRouters
}

/**
 * Authenticates requests in the isolate: a request without valid credentials costs no call of the object. It hands requests about a project
 * on to its compute itself, so that the data of labs bypass the directory. It also serves all feeds, so that the object can
 * hibernate while nothing happens. Requests of an isolate share results, never promises (see auth.ts).
 */
export class EdgeRouter {
  /** The tokens of the organization. */
  readonly tokens: ListedTokens
  readonly #objects: Objects
  readonly #tunnels: ObjectTunnels
  /** The computes to which this isolate has handed requests on. */
  readonly #computes: CachedComputes
  readonly #all: EdgeRouters | undefined
  readonly #placementCache: PlacementCache
  readonly #admissions: Admissions
  readonly #app: App
  #countedAt = Date.now()
  readonly #lost = new Set<string>()
  /** Counts of answered requests that the object has not got yet. */
  readonly #answered = new RequestMetrics()
  /** Reads that were answered with "no such project", by the ids of the requests, until it is known whether the object answers them. */
  readonly #unsettled = new Map<string, Trace>()
  /** Limits the requests of the organization. */
  readonly #rate: RateLimit
  readonly #joins = new JoinLimit()

  constructor(env: Env, organization: string, { signed, all }: EdgeRouterOptions) {
    this.#objects = new Objects(env, organization)
    this.#tunnels = new ObjectTunnels(env, this.#objects)
    this.#computes = new CachedComputes(env, this.#objects, (id) => this.#lost.add(id))
    this.#all = all
    this.#placementCache = new PlacementCache(() => this.#objects.directory())
    this.#admissions = new Admissions(env)
    this.tokens = new ListedTokens({
      signed,
      organization: this.#objects.named,
      read: (known, reason) => this.#objects.directory().tokenList(known, reason),
      waitUntil,
    })
    const rate = () => ({ perSecond: this.tokens.requestsPerS, burst: 3 * this.tokens.requestsPerS })
    this.#rate = new RateLimit(rate, Date.now, (id) => `the credentials of the organization ${id}`)
    this.#app = this.#open(env)
  }

  /** `admitted`: the identity, when the router of `default` has authenticated the request. */
  answer(received: Request, admitted?: Identity): Promise<Response> {
    const request = withPings(received)
    const notes: RequestNotes = {}
    return this.#app.fetch(request, admitted, notes).then((response) => {
      if (this.#lost.size > 0) waitUntil(this.#reportLost())
      return response.status < 400 ? flowing(response) : this.#retryAtObject(response, request, notes)
    })
  }

  /** The answer to a request that this isolate has answered with an error. */
  async #retryAtObject(response: Response, request: Request, { localRoute }: RequestNotes): Promise<Response> {
    if (!isNoSuchProject(response.headers.get(errorHeader))) return response
    this.#settle(response, localRoute === undefined)
    if (localRoute === undefined) return response
    // The project may be on another compute: the object searches for it.
    this.#placementCache.avoid(localRoute.projectId)
    if (!isRead(request)) return response
    response.body?.cancel().catch(ignore('another answer replaces this one'))
    return this.#toDirectory(request, localRoute.identity).then(flowing, (error: unknown) =>
      unsearched(error, response.headers),
    )
  }

  /** Counts a read for which there was no such project, unless the object answers it after all and counts it there. */
  #settle({ headers }: Response, isAnsweredHere: boolean): void {
    const id = headers.get('x-request-id') ?? ''
    const entry = this.#unsettled.get(id)
    this.#unsettled.delete(id)
    if (entry !== undefined && isAnsweredHere) this.#note(entry)
  }

  #note({ route, method, status, ms, credential }: Trace): void {
    this.#answered.count(route, method, status, ms / 1000, credential)
  }

  /** Counts a request of this organization. The administrator of the deployment is not limited. */
  #limit({ key, isOfDeployment, organization }: Identity): void | Promise<void> {
    if (key === '' || isOfDeployment === true || organization !== this.#objects.named) return
    // The check of a token has read the list.
    if (isKeyOfToken(key)) return this.#rate.consume(this.#objects.organization)
    return this.tokens.refresh().then(() => this.#rate.consume(this.#objects.organization))
  }

  /** The answer of an object to the request; undefined when this isolate answers it, at once for a request whose compute it knows. */
  #delegate(admitted: AdmittedRequest): Response | undefined | Promise<Response | undefined> {
    const { request, endpoint, projectId, identity, notes } = admitted
    return thenSync(this.#otherFor(admitted), (other): Response | undefined | Promise<Response | undefined> => {
      if (other !== undefined) return other.answer(request, identity)
      if (projectId === undefined || endpoint.public === true || !this.#sees(projectId, admitted))
        return this.#delegateOther(admitted)
      return thenSync(this.#hasLocalRoute(projectId), (isNear) => {
        if (!isNear) return this.#delegateOther(admitted)
        notes.localRoute = { projectId, identity }
        this.#countInTime()
        return undefined
      })
    })
  }

  /** The same for a request that is not about a project whose compute this isolate knows. */
  async #delegateOther(admitted: AdmittedRequest): Promise<Response | undefined> {
    const { request, endpoint, params, identity } = admitted
    if (endpoint.path === capabilitiesPath && (await isOwnCheck(request))) throw ownCompute()
    if (endpoint.joins === true) return this.#join(request)
    if (endpoint.createsLab === true) return this.#toNewLab(request, identity)
    if (endpoint.owner === 'self' && params.project_id !== undefined)
      return this.#toLab(await this.#labOf(params.project_id, endpoint.makesLab === true), request, identity)
    // Requests without credentials must not reach the object: anybody may send them.
    if (endpoint.public === true || answeredHere.has(endpoint.path)) return undefined
    if (endpoint.path === metricsPath) await this.#count()
    const isHere = isFeed(endpoint) || (await this.#forwardsHere(admitted))
    this.#countInTime()
    if (isHere) return undefined
    const answer = await this.#toDirectory(request, identity)
    if (endpoint.ofDeployment === true && !isRead(request)) this.#all?.forgetAbsent()
    return answer
  }

  /**
   * Whether credentials are for a project by its id. Only the directory knows the names of labs. It also reads the feeds of credentials for some
   * projects, as it knows when these end.
   */
  #sees(projectId: string, { endpoint, identity: { projects } }: AdmittedRequest): boolean {
    return projects === undefined || (!isFeed(endpoint) && isInScope(projects, projectId, undefined))
  }

  /** Whether this isolate forwards a request for a compute by itself. Images pass the object of the compute, which makes their digests. */
  async #forwardsHere({ endpoint, params, identity }: AdmittedRequest): Promise<boolean> {
    const { compute_id: id } = params
    // The directory knows the names of labs, for a token that is for some projects.
    if (endpoint.forwardPath === undefined || identity.projects !== undefined) return false
    if (id === undefined || !Check(ComputeId, id) || isReserved(id)) return false
    // No object is made for an id that no compute has.
    const isKnown = this.#computes.find(id) !== undefined || (await this.#objects.directory().hasCompute(id))
    if (isKnown) await this.#computes.with(id)
    return this.#computes.find(id)?.isConnected === true
  }

  /** The router of the organization that a request belongs to; undefined: this one. */
  #otherFor({
    request,
    endpoint,
    identity,
  }: AdmittedRequest): EdgeRouter | undefined | Promise<EdgeRouter | undefined> {
    const all = this.#all
    if (all === undefined || endpoint.ofDeployment === true) return undefined
    const routerOf = (id: string | undefined) => (id === undefined ? undefined : all.of(id))
    if (endpoint.joins === true) return all.organizationIn(bearerOf(request) ?? '').then(routerOf)
    return routerOf(identity.organization)
  }

  /** Opens the tunnel of a compute at its object, which asks the directory whether the token is for this compute. */
  async #join(request: Request): Promise<Response> {
    const grant = await this.tokens.joinGrant(bearerOf(request) ?? '')
    if (grant === undefined) throw noJoinToken()
    requireUpgrade(request)
    this.#joins.consume(grant)
    const named = new URL(request.url).searchParams.get('compute_id') ?? grant.compute_id
    const id = named ?? (await this.#objects.directory().computeOf(grant.key))
    if (id === undefined || !Check(ComputeId, id))
      throw badRequest(
        'compute_id: the query needs the id of the compute, as computes of this version send it; or make a join token with its compute_id',
      )
    const { address } = commonAdmission.peer(request)
    return this.#tunnels.join(id, { key: grant.key, address, locationHint: nearestTo(request) })
  }

  /** For authenticated requests: others must not cause calls of the object, not even to report their counts. */
  #countInTime(): void {
    if (Date.now() - this.#countedAt > countMs) waitUntil(this.#count())
  }

  /** Reports the counts of answered requests to the object, which serves the metrics. */
  async #count(): Promise<void> {
    this.#countedAt = Date.now()
    const answered = this.#answered.drain()
    await this.#objects
      .directory()
      .count(answered)
      .catch(() => this.#answered.add(answered))
  }

  async #toDirectory(request: Request, identity: Identity | undefined): Promise<Response> {
    return sendWhole(this.#objects.directory(), await this.#admissions.mark(request, identity))
  }

  /** The id of a lab that a path names by its id or its name; `isMade`: also of one that is not there yet. 404. */
  async #labOf(word: string, isMade: boolean): Promise<string> {
    const known = isUuid(word) ? word.toLowerCase() : await this.#objects.directory().labNamed(word)
    const id = known ?? (isMade ? projectIdOf(word.toLowerCase()) : undefined)
    if (id === undefined) throw notFound(`project_id: there is no project ${word}`, { code: 'no-such-project' })
    return id
  }

  async #toLab(id: string, request: Request, identity: Identity): Promise<Response> {
    const marked = await this.#admissions.mark(request, identity, { [projectHeader]: id })
    return sendWhole(this.#objects.project(id), marked)
  }

  /** Sends the creation of a lab to the object of its id: that of the body, or a new one. */
  async #toNewLab(request: Request, identity: Identity): Promise<Response> {
    const body = await readBytes(request, jsonBytes)
    const headers = new Headers(request.headers)
    headers.set('content-length', String(body.byteLength))
    const whole = new Request(request.url, { method: 'POST', headers, body, signal: request.signal })
    return this.#toLab(wantedId(body) ?? crypto.randomUUID(), whole, identity)
  }

  /** Asks the objects of computes that this isolate could not reach to check them. */
  async #reportLost(): Promise<void> {
    const lost = [...this.#lost]
    this.#lost.clear()
    await mapLimit(lost, (id) => this.#objects.compute(id).look())
  }

  #open(env: Env): App {
    const all = this.#all
    const { access, rateLimit } = openAuth(
      env,
      (token) => all?.identify(token) ?? Promise.resolve(undefined),
      (token) => all?.atHand(token),
    )
    const placements = this.#placementCache
    const replicateImage: ReplicateImage = (compute, image) => this.#objects.directory().bringImage(compute, image)
    const find = (id: string) => this.#computes.find(id)
    const gateway = composeIsolate({ find, placements, host: gatewayHost(), replicateImage })
    const reads = directReads((projectId, identity) => this.#localRoute(projectId, identity))
    return createApp({
      ...commonOptions(env, this.#objects.named),
      answerAsClient: (request, identity) => this.answer(request, identity),
      agent: (requester) => {
        const agent = gateway().agent(requester)
        const { forwardRequest } = agent
        // Other feeds come from the object.
        return Object.assign(agent, {
          forwardRequest: (request: ProjectRequest) =>
            requester.notes.localRoute === undefined ? undefined : forwardRequest(request),
        })
      },
      services: { fleet: this.#computes.fleet, feeds: this.#feeds(env) },
      admission: {
        ...commonAdmission,
        access,
        rateLimit,
        tickets: new SignedTickets({
          key: tokenKey(env),
          use: (ticket) => new Objects(env, ticket.organization).directory().useTicket(ticket),
        }),
        sessions: this.#sessions(env),
        countForOrganization: (identity) => this.#limit(identity),
        ...(all !== undefined && { hasOrganization: (id) => all.has(id) }),
      },
      steps: {
        admit: [
          ...[recordRequest, finishResponse, answerErrors],
          ...[reads.find, authenticate, allowOrigin, limitRate, reads.forward],
          ...[findEndpoint, authorize],
        ],
        // The process that answers in the end checks for which projects credentials are.
        handle: [delegateRequest((admitted) => this.#delegate(admitted)), translate, forwardToCompute, runHandler],
      },
      trace: (entry) => {
        if (isRead(entry) && isNoSuchProject(entry.error)) this.#unsettled.set(entry.id, entry)
        else this.#note(entry)
      },
    })
  }

  /** Feeds of one project at the object of its compute, all others at the directory. */
  #feeds(env: Env): FeedSource {
    const atDirectory = objectFeeds(() => this.#objects.directory(), env)
    return async (feed) => {
      const compute = feed.projects === undefined ? await this.#computeOf(feed.projectId) : undefined
      if (compute === undefined) return atDirectory(feed)
      try {
        return await objectFeeds(() => this.#objects.compute(compute), env)(feed)
      } catch (error) {
        // The project may have moved, or the compute may be gone: the directory knows.
        if (error instanceof ApiError && [404, 503].includes(error.status)) return atDirectory(feed)
        throw error
      }
    }
  }

  async #computeOf(projectId: string | undefined): Promise<string | undefined> {
    if (projectId === undefined || !(await this.#hasLocalRoute(projectId))) return undefined
    return this.#placementCache.lookUp(projectId)
  }

  #sessions(env: Env): Sessions {
    const all = this.#all
    return new Sessions({
      key: sessionKey(env),
      keeper: {
        async holds(session) {
          const { organization } = session
          if (all === undefined || (organization !== undefined && !(await all.has(organization)))) return false
          return all.of(organization).tokens.isSessionValid(session)
        },
        async end(session) {
          const { id, begunAt, endsAt, organization } = session
          await new Objects(env, organization).directory().endSession({ id, begunAt, endsAt })
          all?.of(organization).tokens.endSession(session)
        },
      },
    })
  }

  /** The compute of a project, if this isolate forwards requests of the identity to it, and needs to ask nobody for that. */
  #localRoute(projectId: string, { organization, projects }: Identity): Member | undefined {
    if (organization !== this.#objects.named || !isInScope(projects, projectId, undefined)) return undefined
    const compute = this.#placementCache.atHand(projectId)
    const member = compute === undefined ? undefined : this.#computes.atHand(compute)
    if (member !== undefined) this.#countInTime()
    return member
  }

  #hasLocalRoute(project: string): boolean | Promise<boolean> {
    return thenSync(this.#placementCache.lookUp(project), (compute) => {
      if (compute === undefined) return false
      return thenSync(this.#computes.with(compute), () => this.#computes.find(compute)?.isConnected === true)
    })
  }
}

/** Disables compression for a live stream: the compressor would hold data back until it has enough of it. */
function flowing(response: Response): Response {
  const { status, headers } = response
  if (status === 101 || headers.get('x-accel-buffering') !== 'no' || headers.has('content-encoding')) return response
  const uncompressed = new Headers(headers)
  uncompressed.set('Content-Encoding', 'identity')
  return new Response(response.body, { status, headers: uncompressed })
}

/** The answer when the object could not search for a project. `headers`: of the answer that there was before. */
function unsearched(error: unknown, headers: Headers): Response {
  const known = error instanceof ApiError ? error : objectError(error)
  if (known === undefined) reportDefect(error, 'the directory could not search for a project')
  const { status, message, code, headers: more } = known ?? new ApiError(500, 'Internal error', { cause: error })
  const all = new Headers(headers)
  all.delete('content-length')
  for (const [name, value] of Object.entries({ ...more, [errorHeader]: code })) all.set(name, value)
  return new Response(`${JSON.stringify({ message, status })}\n`, { status, headers: all })
}

/** The `project_id` in the body of a creation; undefined without a valid one. */
function wantedId(body: Uint8Array): string | undefined {
  try {
    const { project_id } = JSON.parse(new TextDecoder().decode(body)) as { project_id?: unknown }
    return typeof project_id === 'string' && isUuid(project_id) ? project_id.toLowerCase() : undefined
  } catch {
    return undefined
  }
}

const isFeed = ({ path, websocket }: Endpoint): boolean => websocket === true && path.includes('/notifications')

/** Turns pings of a feed on: a Worker notices only by sending that a client has disconnected. Not for websockets. */
function withPings(request: Request): Request {
  if (!request.url.includes('/notifications') || request.method !== 'GET' || isUpgrade(request)) return request
  const url = new URL(request.url)
  if (!url.searchParams.has('pings')) return request
  url.searchParams.delete('pings')
  return new Request(url, request)
}

/** Where to place the object of a new compute: on the continent on which Cloudflare sees the compute. */
const nearestTo = ({ cf }: Request): DurableObjectLocationHint | undefined => hints.get(String(cf?.continent))
const hints: ReadonlyMap<string, DurableObjectLocationHint> = new Map([
  ['AF', 'afr'],
  ['AS', 'apac'],
  ['EU', 'weur'],
  ['NA', 'enam'],
  ['OC', 'oc'],
  ['SA', 'sam'],
])

const isNoSuchProject = (word: string | null | undefined): boolean => word === ('no-such-project' satisfies ErrorCode)

const isRead = ({ method }: { method: string }): boolean => method === 'GET' || method === 'HEAD'
