import type { TObject } from '@sinclair/typebox'
import { ignore } from './async/ignore.ts'
import { type Caller, callerOf, callerThroughTunnel, requestIdOf } from './auth/caller.ts'
import { type Identity, requireDeployment, requireRole } from './auth/identity.ts'
import { LoginLimit, tooManyLogins } from './auth/login-limit.ts'
import type { RateLimit } from './auth/rate-limit.ts'
import type { Sessions } from './auth/sessions.ts'
import type { Tokens } from './auth/tokens.ts'
import type { Labs } from './controller/labs.ts'
import { ApiError, conflict } from './errors/api-error.ts'
import { errorHeader, wordOfStatus } from './errors/words.ts'
import { type FeedSource, feedsOf, type ServiceEvents } from './events/fleet-feed.ts'
import type { ApplianceVmService } from './fleet/appliance-vm.ts'
import type { Fleet } from './fleet/fleet.ts'
import type { RequestingCaller, RequestNotes } from './gateway/asker.ts'
import { withComputeContext } from './gateway/fan-out.ts'
import type { ProjectRequest } from './gateway/forward-request.ts'
import type { GatewayAgent } from './gateway/gateway-agent.ts'
import type { Member } from './gateway/members.ts'
import { peersOnOneHost } from './gateway/peer-address.ts'
import type { HostAgent } from './host-agent.ts'
import { type Access, Admission, corsOrigin, isPreflight } from './http/access/access.ts'
import { insidePeer, type Peer, peerByUrl } from './http/access/peer.ts'
import { ProjectAccess } from './http/access/project-access.ts'
import { roleNeeded } from './http/access/role-needed.ts'
import { isFromOtherSite, requireDeliberate } from './http/access/source.ts'
import type { Assets } from './http/assets.ts'
import { readAnyJson, readBytes, readJson } from './http/body.ts'
import type { Dialect, Unfinished } from './http/dialect.ts'
import { type DirectRead, DirectReads } from './http/direct-reads.ts'
import { type Context, type Endpoint, type Json, type JsonAnswer, roleOf } from './http/endpoint.ts'
import { withFormFile } from './http/form-file.ts'
import { jsonHeaders } from './http/json-headers.ts'
import { pathOf, queryOf, unalias } from './http/path.ts'
import { withReadOnly } from './http/read-only-members.ts'
import { type RelayedAnswer, responseOf } from './http/relayed-answer.ts'
import { RequestMetrics } from './http/request-metrics.ts'
import { type RouteMatch, Routes } from './http/router.ts'
import { isUpgrade, type Upgrade, upgradeToken } from './http/socket.ts'
import { type TicketOffice, Tickets } from './http/tickets.ts'
import { validate } from './http/validate.ts'
import { openapi } from './openapi.ts'
import { type ReadFile, readHere } from './readers.ts'
import { newerPaths } from './routes/newer-paths.ts'
import { endpoints } from './routes.ts'
import { isUuid } from './schema/fields.ts'

export interface AppOptions {
  /** A gateway makes one for each request, which asks computes on behalf of its caller. */
  readonly agent: HostAgent | ((asker: RequestingCaller) => GatewayAgent)
  /** Runs the handler of a request, so that the host knows whom it works for. */
  readonly within?: <T>(caller: Caller, answer: () => Promise<T>) => Promise<T>
  /** The computes it knows beside its own; without it, their endpoints answer 404. */
  readonly fleet?: Fleet
  /** The VM that is the compute `vm` of the fleet; without it, its endpoints answer 404. */
  readonly appliance?: ApplianceVmService
  /** The labs over all of these computes; without them, their endpoints answer 404. */
  readonly labs?: Labs | undefined
  /** See `Context.peers`; without it all projects are on one host. */
  readonly peers?: Context['peers']
  /** See `Context.uploads`. */
  readonly uploads?: Context['uploads']
  /** See `Context.read`; without it, files are read in this thread. */
  readonly read?: ReadFile
  readonly version: string
  /** Who is let in; asked for every request. */
  readonly access: () => Access
  /** From where a request came. Without it only the scheme of the URL is known. */
  readonly peer?: (request: Request) => Peer
  /** The tokens that its endpoints make and revoke; `access` has the verifier that knows them. Without it they answer 404. */
  readonly tokens?: Tokens | undefined
  /** The organization whose app it is; absent: `default`. */
  readonly organization?: string
  /** Whether there is an organization of this id. Absent: `organizations` knows. */
  readonly hasOrganization?: (id: string) => boolean | Promise<boolean>
  /** The organizations, which its endpoints make; without them there is `default` alone, and they answer 404. */
  readonly organizations?: Context['organizations']
  /** Without it feeds are those of the agent, and of the fleet. */
  readonly feeds?: FeedSource
  /** Without it tickets are given and taken here alone. */
  readonly tickets?: TicketOffice
  /** Without it wrong log-ins are counted, and not limited. */
  readonly logins?: LoginLimit
  /** Whether this service has sent the request itself, to a compute of its fleet: such a request is refused (409). */
  readonly isOwn?: (request: Request) => boolean
  /** Absent: there are no sessions. */
  readonly sessions?: Sessions | undefined
  /** Without it credentials are not counted. */
  readonly rateLimit?: RateLimit
  /** Counts a request for the organization of its identity; 429 above the limit of all its credentials together. */
  readonly organizationLimit?: (identity: Identity) => void | Promise<void>
  /** Most bytes of a JSON body. */
  readonly jsonBytes: number
  /** Path words of clients -> ours, such as `{vpcs: 'pc'}`. */
  readonly aliases: Readonly<Record<string, string>>
  /** How clients of another program speak; without it none of them is understood. */
  readonly dialect?: Dialect | undefined
  readonly json: Json
  /** The Response of an answer that is handed on; a runtime may have a faster one. */
  readonly relayed?: (answer: RelayedAnswer) => Response
  readonly upgrade: Upgrade
  /** The script of the reference page: rapidoc-min.js. */
  readonly assets: Assets
  /** What the runtime makes of an error that is none of the app: undefined makes it a 500. */
  readonly faultOf?: (error: unknown) => ApiError | undefined
  /** Told of everything that became a 500. */
  readonly report: (error: unknown, requestId: string) => void
  /** Where requests are counted; without it, in the app alone. */
  readonly requests?: RequestMetrics
  /** Its clock, ms since any moment; absent: `performance.now`. */
  readonly clock?: () => number
  /** Told of every request when its answer begins. The query is left out: it may hold a ticket. */
  readonly trace?: (entry: Trace) => void
  /** `elsewhere`: the process that answers in the end looks at which projects credentials are for. */
  readonly scopes?: 'elsewhere'
  /**
   * Asked for every request that was let in and that has an endpoint: another process may answer it, and counts it. Undefined: it
   * is answered here.
   */
  readonly routeRequest?: (asked: AdmittedRequest) => Response | undefined | Promise<Response | undefined>
  /**
   * The compute to which a GET about a project is handed on, where that is certain at once: such a GET leaves out what others need. Undefined: it
   * goes their way. It looks at which projects credentials are for.
   */
  readonly directRoute?: (projectId: string, identity: Identity) => DirectCompute | undefined
}

/** A compute to which requests are handed on at once. */
export type DirectCompute = Pick<Member, 'id' | 'name' | 'forward'>

/** A request that was let in. */
export interface AdmittedRequest {
  readonly request: Request
  readonly endpoint: Endpoint
  /** Of the path, decoded and not checked. */
  readonly params: Readonly<Record<string, string>>
  /** The project that it is about, if its id can be one. */
  readonly projectId: string | undefined
  /** The identity of the client; anonymous at an endpoint by which computes join, as its token was not checked. */
  readonly identity: Identity
  readonly notes: RequestNotes
}

export interface Trace {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Template of the endpoint; empty when there is none. */
  readonly route: string
  readonly status: number
  /** See `errorWords`; absent where there was no error. */
  readonly error?: string
  readonly ms: number
  /**
   * Of the token or the user, and at a compute the client of the gateway that asks; absent where no credentials were asked for, or
   * none were right.
   */
  readonly by?: string
  /** Of the token or the user alone: figures count by it. */
  readonly credential?: string
}

export interface App {
  /**
   * `admitted`: the identity of the client, when another process of this service has authenticated the request. `notes`: where `routeRequest` and the
   * agent note what they know of it. Never rejects.
   */
  fetch(request: Request, admitted?: Identity, notes?: RequestNotes): Promise<Response>
  /**
   * For a runtime that has the head of a request and has not made it one yet: what it is answered when too many log-ins of its
   * sender were wrong. Undefined: it is to be fetched.
   */
  early(head: { readonly method: string; readonly authorization: string; readonly peer: Peer }): Early | undefined
  /**
   * The same for a request that the service sends to itself: credentials and origin are not looked at again, and its caller is
   * that of the request which it is a part of. Never for what comes from outside. Never rejects.
   */
  inside(request: Request): Promise<Response>
  /**
   * The same for a request that came through the tunnel of the gateway that this service has joined: the gateway has let its
   * sender in. `upgrade` makes websockets of the tunnel. Never rejects.
   */
  throughTunnel(request: Request, upgrade: Upgrade): Promise<Response | RelayedAnswer>
}

/** An answer that takes nothing but the head of a request. */
export interface Early {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** The refusal of a request that the service has sent itself. */
export const ownCompute = (): ApiError =>
  conflict('This service is registered as one of its own computes; remove that entry')

/** How an endpoint that was found is answered. */
interface DispatchOptions {
  /** Called with the endpoint before it begins; returns the identity of the client, or throws. */
  readonly found: (endpoint: Endpoint, path: string) => Identity
  /** Absent: that of the request which this one is a part of. */
  readonly caller?: Caller | ((identity: Identity) => Caller)
  readonly peer: Peer
  readonly upgrade?: Upgrade
  readonly notes?: RequestNotes
  /** Absent: the request is in our words. */
  readonly dialect?: Dialect | undefined
}

/** A GET that is handed on at once, for whom, and to which compute. */
interface Direct extends DirectRead {
  readonly identity: Identity
  readonly member: DirectCompute
}

/** A request that is answered. */
interface RequestStart {
  readonly request: Request
  /** That of the request, which a runtime may make anew each time that it is read. */
  readonly method: string
  readonly id: string
  readonly path: string
  /** By `AppOptions.clock`, ms. */
  readonly began: number
}

/** An answer, as it is counted and traced. */
interface RequestOutcome {
  readonly response: Response
  readonly endpoint: Endpoint | undefined
  readonly asks: Identity | undefined
  readonly calls: Caller | undefined
  /** Absent: that of the response. */
  readonly status?: number | undefined
}

/** The reference, by its version: all apps of a process have the same. */
const documents = new Map<string, string>()

/** The caller of what the service asks of other computes by itself. */
const serviceCaller: Caller = { isDirect: false, mayExecute: false }

/** Who asks where the service asks itself. */
const serviceIdentity: Identity = { name: 'the service', role: 'operate', key: '' }

/** Who opens the websocket that only a join token opens; that is looked at there. */
const joining: Identity = { name: 'a compute that joins', role: 'read', key: '' }

/** The service as one function over one host agent. */
export function createApp(options: AppOptions): App {
  const { agent, version, aliases, json, report, trace, clock = () => performance.now() } = options
  const isGateway = typeof agent === 'function'
  const routes = new Routes([...endpoints, ...(options.dialect?.endpoints ?? [])], isGateway ? newerPaths : [])
  const tickets = options.tickets ?? new Tickets()
  const logins = options.logins ?? new LoginLimit({ perMinute: () => 0 })
  const { organizations } = options
  const admission = new Admission({
    ...{ access: options.access, tickets, logins, sessions: options.sessions },
    count: (key) => options.rateLimit?.take(key),
    hasOrganization: options.hasOrganization ?? (organizations && ((id) => organizations.has(id))),
  })
  const peerOf = options.peer ?? peerByUrl
  const requests = options.requests ?? new RequestMetrics()
  const words = new Map(Object.entries(aliases).map(([theirs, ours]) => [ours, theirs]))
  const rest: Omit<
    Context,
    | 'agent'
    | 'feeds'
    | 'identity'
    | 'projects'
    | 'caller'
    | 'answered'
    | 'dispatchInternally'
    | 'dispatchToSelf'
    | 'peer'
    | 'acceptsEvent'
    | 'conventions'
    | 'upgrade'
  > = {
    host: isGateway ? undefined : agent,
    fleet: options.fleet,
    appliance: options.appliance,
    peers: options.peers ?? (async (ends) => peersOnOneHost(ends)),
    uploads: options.uploads,
    read: options.read ?? readHere,
    labs: options.labs,
    linking: new Set(),
    version,
    tickets,
    tokens: options.tokens,
    organizations,
    requests,
    logins,
    admission,
    aliasOf: (word) => words.get(word) ?? word,
    json,
    assets: options.assets,
    openapi() {
      const document = documents.get(version) ?? JSON.stringify(openapi(endpoints, version))
      documents.set(version, document)
      return document
    },
  }
  const { fleet, labs } = options
  /** What the feed of the service has beside the events of projects on computes. */
  const serviceEvents: ServiceEvents | undefined = fleet && {
    listen(listener) {
      const ends = [
        fleet.listen(listener),
        labs?.listen(({ action, event }) => listener({ type: action, resource: event })),
      ]
      return () => {
        for (const end of ends) end?.()
      }
    },
  }
  const publicEndpoints = endpoints.filter((it) => it.public)
  const publicFolders = publicEndpoints.flatMap(({ path }) => /^(.*\/)\{\w+\}$/.exec(path)?.[1] ?? [])
  const publicPaths = new Set(publicEndpoints.map(({ path }) => path))
  const isPublic = (asked: string, path: string): boolean =>
    (publicPaths.has(path) || publicFolders.some((it) => path.startsWith(it))) &&
    publicEndpoints.includes(routes.match(asked, path)?.endpoint as Endpoint)
  const server = `patchbay/${version}`
  const nextId = requestIds()
  const dialectOf = (request: Request): Dialect | undefined =>
    options.dialect?.speaks(request) === true ? options.dialect : undefined
  const ourPath = (path: string, dialect: Dialect | undefined): string => {
    const ours = unalias(path, aliases)
    return dialect === undefined ? ours : dialect.path(ours)
  }
  const isStream = (request: Request, path: string): boolean => {
    const dialect = request.method === 'GET' ? dialectOf(request) : undefined
    return dialect?.isStream(ourPath(path, dialect)) === true
  }
  /** The endpoint that a request opens as a websocket. */
  const webSocketOf = (request: Request, path: string): Endpoint | undefined => {
    if (request.method !== 'GET' || !isUpgrade(request)) return undefined
    const endpoint = routes.match('GET', ourPath(path, dialectOf(request)))?.endpoint
    return endpoint?.websocket === true ? endpoint : undefined
  }

  const { directRoute } = options
  // Clients in another dialect go the way of all.
  const reads =
    directRoute && options.dialect === undefined && options.isOwn === undefined
      ? new DirectReads(routes, (path) => unalias(path, aliases), hasValidParams)
      : undefined
  /** What a GET is that is handed on at once, for whom, and to which compute; undefined for every other request. */
  const directOf = ({ request, method, path }: RequestStart, admitted: Identity | undefined): Direct | undefined => {
    if (reads === undefined || directRoute === undefined || method !== 'GET') return undefined
    const identity = admitted ?? admission.atHand(request)
    const read = identity === undefined || identity.ambient === true ? undefined : reads.of(path)
    const member = identity && read && directRoute(read.projectId, identity)
    return member && { ...read, identity, member }
  }

  /** Finds the endpoint and has it answer. */
  const respond = async (
    sent: Request,
    path: string,
    headers: Record<string, string>,
    { found, caller, peer, dialect, upgrade: upgraded = options.upgrade, notes = {} }: DispatchOptions,
  ): Promise<Unfinished | ForwardedResponse> => {
    const ours = ourPath(path, dialect)
    const match = routes.find(sent.method, ours)
    if ('methods' in match) {
      Object.assign(headers, optionsHeaders(sent, match.methods))
      return { status: 204 }
    }
    headers['X-ROUTE'] = match.endpoint.path
    const identity = found(match.endpoint, ours)
    if (options.routeRequest !== undefined) {
      const { endpoint, params } = match
      const id = params.project_id?.toLowerCase()
      const projectId = endpoint.owner === 'project' && id !== undefined && isUuid(id) ? id : undefined
      const asking = options.routeRequest({ request: sent, endpoint, params, projectId, identity, notes })
      const there = asking instanceof Promise ? await asking : asking
      if (there !== undefined) return new ForwardedResponse(there)
    }
    const isScopedHere = options.scopes !== 'elsewhere'
    // The other process knows the names of labs, and filters the events of feeds by them.
    const projects = new ProjectAccess(isScopedHere ? identity : { name: identity.name }, labs)
    if (isScopedHere) projects.requireEndpoint(match, ours, sent.method, routes)
    // An answer that is handed on is that of the endpoint there.
    const there = match.endpoint.handsOn?.(ours)
    const shown = (there === undefined ? undefined : routes.match(sent.method, there)?.endpoint) ?? match.endpoint
    const request = dialect === undefined ? sent : await dialect.asked(sent, shown, options.jsonBytes)
    const upgrade = dialect?.upgrade((_, on) => upgraded(sent, on), shown, sent) ?? upgraded
    const translateResponse = async (answer: Unfinished) => dialect?.answered(answer, shown, sent) ?? answer
    const absent = new Set<string>()
    // Said also with an error, which may be one because of them.
    const reportAbsent = (name: string) => {
      absent.add(name)
      headers['X-Patchbay-Unreachable'] = headerWords(absent)
    }
    const answered = (computeId: string) => {
      headers['X-Patchbay-Compute'] = computeId
    }
    const who = typeof caller === 'function' ? caller(identity) : caller
    /** Says of the inner answer what it says of itself. */
    const dispatchInternally = async (inner: Request, to: string, over = upgrade): Promise<Response> => {
      const how: DispatchOptions = { found: () => identity, peer, upgrade: (_, on) => over(request, on) }
      const response = await respond(inner, to, headers, { ...how, ...(who !== undefined && { caller: who }) })
      return response instanceof ForwardedResponse ? response.response : finish(response, headers, options)
    }
    const dispatchToSelf = isGateway && options.fleet?.hasLocal === false ? dispatchInternally : undefined
    const asker: RequestingCaller = { caller: who ?? serviceCaller, absent: reportAbsent, answered, notes }
    const ourAgent = typeof agent === 'function' ? agent(asker) : agent
    if ('forwardRequest' in ourAgent && match.endpoint.owner === 'project') {
      const handing = projectRequestOf(match, ours, request, upgrade)
      const { body, bodyKind } = match.endpoint
      const takesJson = body !== undefined || bodyKind === 'ignored'
      const whole = takesJson ? await readBytes(request, options.jsonBytes) : undefined
      const handed = ourAgent.forwardRequest({ ...handing, body: whole })
      if (handed !== undefined) return dialect === undefined ? await handed : await translateResponse(await handed)
    }
    const feeds = options.feeds ?? feedsOf(ourAgent.events, serviceEvents)
    // Of a gateway only what it has is asked: endpoints of one project were handed on, or get by with a feed.
    const own = { agent: ourAgent as HostAgent, feeds }
    const acceptsEvent = (action: string) => dialect?.hears(action) ?? true
    const conventions = dialect?.conventions
    const asked = { identity, projects, caller: asker.caller, answered, peer, acceptsEvent, conventions }
    const context = { ...rest, ...asked, dispatchInternally, dispatchToSelf, upgrade, ...own }
    const work = async () => translateResponse(await answer(match, ours, request, context, options.jsonBytes))
    return who === undefined || options.within === undefined ? work() : options.within(who, work)
  }
  const failed = (error: unknown, request: Request, id: string, headers: Record<string, string>): JsonAnswer => {
    const known = error instanceof ApiError ? error : options.faultOf?.(error)
    if (known === undefined && !request.signal.aborted) report(error, id)
    const fault = known ?? unexpected(request.signal.aborted)
    Object.assign(headers, fault.headers, { [errorHeader]: fault.word })
    const message = inWordsOf(pathOf(request.url), fault.message)
    return { status: fault.status, body: { message, status: fault.status, ...fault.extra } }
  }

  /** Answers a request whose sender was let in elsewhere. */
  const dispatchTrusted = async (
    request: Request,
    id: string,
    how: DispatchOptions,
  ): Promise<{ answer: Unfinished; headers: Record<string, string> }> => {
    const headers: Record<string, string> = {}
    try {
      const answered = await respond(request, pathOf(request.url), headers, how)
      return { answer: answered instanceof ForwardedResponse ? answered.response : answered, headers }
    } catch (error) {
      return { answer: failed(error, request, id, headers), headers }
    }
  }

  /** Counts a request of an identity. 429 above a limit. */
  const count = (identity: Identity): void | Promise<void> => {
    options.rateLimit?.take(identity.key)
    return options.organizationLimit?.(identity)
  }

  /** Counts and traces an answer. */
  const recordResponse = (
    { request, method, id, path, began }: RequestStart,
    { response, endpoint, asks, calls, status = response.status }: RequestOutcome,
  ): Response => {
    const route = endpoint?.path ?? ''
    const ms = clock() - began
    // The names of credentials of another organization are not for the figures of this one.
    const isOwn = asks?.organization === options.organization
    const name = asks === undefined || asks.key === '' || !isOwn ? undefined : asks.name
    requests.end(route, method, status, ms / 1000, name)
    // A request that was refused before it had a caller is logged with its sender, too.
    const by = asks === undefined || trace === undefined ? undefined : (calls ?? callerOf(asks, request, id)).name
    if (trace === undefined) return response
    const error = status < 400 ? null : response.headers.get(errorHeader)
    const entry: { -readonly [Name in keyof Trace]: Trace[Name] } = { id, method, path, route, status, ms }
    if (error !== null) entry.error = error
    if (name !== undefined) entry.credential = name
    if (by !== undefined) entry.by = by
    trace(entry)
    return response
  }

  /** The answer to a GET that is handed on at once. An error of the compute takes the way of all, which may ask another one. */
  const handleFastPath = async (
    asked: RequestStart,
    { endpoint, path: target, identity, member, isJson }: Direct,
    notes: RequestNotes,
  ): Promise<Response> => {
    const { request, id, path } = asked
    const headers: Record<string, string> = { Server: server, 'X-Request-Id': id }
    let isCounted = false
    let calls: Caller | undefined
    let response: Response
    try {
      allowOrigin(request, path, headers)
      const counting = count(identity)
      if (counting !== undefined) await counting
      isCounted = true
      headers['X-ROUTE'] = endpoint.path
      calls = callerOf(identity, request, id)
      headers['X-Patchbay-Compute'] = member.id
      const answer = await member.forward({ request, path: target, caller: calls, isJson })
      if (answer.status >= 400) {
        notes.answered = { compute: member.id, answer }
        return handle(asked, { identity, notes })
      }
      response = finish(answer, headers, options)
    } catch (error) {
      response = finish(failed(withComputeContext(error, member), request, id, headers), headers, options)
    }
    // Above a limit no request has an endpoint.
    return recordResponse(asked, { response, endpoint: isCounted ? endpoint : undefined, asks: identity, calls })
  }

  /** The answer to any request. `identity`: its client, who was counted. */
  const handle = async (
    asked: RequestStart,
    { identity: known, admitted, notes }: { identity?: Identity; admitted?: Identity | undefined; notes: RequestNotes },
  ): Promise<Response> => {
    const { request, id, path } = asked
    const headers: Record<string, string> = { Server: server, 'X-Request-Id': id }
    let response: Response
    let endpoint: Endpoint | undefined
    let status: number | undefined
    let asks: Identity | undefined
    let calls: Caller | undefined
    try {
      if (options.isOwn?.(request) === true) throw ownCompute()
      const webSocket = webSocketOf(request, path)
      const peer = peerOf(request)
      const admitting =
        known ??
        admitted ??
        (webSocket?.joins === true
          ? joining
          : isPublic(request.method, path)
            ? admission.admitAnybody(request, peer)
            : admission.admit(request, peer, webSocket !== undefined, isStream(request, path)))
      const identity = admitting instanceof Promise ? await admitting : admitting
      asks = identity
      allowOrigin(request, path, headers)
      if (identity !== undefined && known === undefined) {
        const counting = count(identity)
        if (counting !== undefined) await counting
      }
      const found = (it: Endpoint, ours: string) => {
        endpoint = it
        const role = it.handsOn === undefined ? roleOf(it) : roleNeeded(routes, it, request.method, ours)
        requireRole(identity, role)
        if (it.ofDeployment === true) requireDeployment(identity)
        requireDeliberate(request, identity, { endpoint: it, role, isSecure: peer.isSecure })
        return identity
      }
      const caller = (it: Identity) => {
        calls = callerOf(it, request, id)
        return calls
      }
      const respondToIt = () =>
        respond(request, path, headers, { found, caller, peer, notes, dialect: dialectOf(request) })
      const answered =
        webSocket?.joins === true ? await joined(admission, request, peer, respondToIt) : await respondToIt()
      if (answered instanceof ForwardedResponse) {
        requests.cancel()
        return answered.response
      }
      response = finish(answered, headers, options)
      // Told as what the client sees: the token itself has the status of an ordinary answer.
      if (endpoint?.websocket === true && isToken(response)) status = 101
    } catch (error) {
      const fault = failed(error, request, id, headers)
      const dialect = dialectOf(request)
      const theirs = await dialect?.answered(fault, undefined, request, headers[errorHeader])
      response = finish(theirs ?? fault, headers, options)
    }
    if (request.method === 'HEAD') response = withoutBody(response)
    return recordResponse(asked, { response, endpoint, asks, calls, status })
  }

  return {
    fetch(request, admitted, notes = {}) {
      requests.begin()
      const { method, url } = request
      const id = requestIdOf(request) ?? nextId()
      const asked = { request, method, id, path: pathOf(url), began: clock() }
      const direct = directOf(asked, admitted)
      return direct === undefined ? handle(asked, { admitted, notes }) : handleFastPath(asked, direct, notes)
    },

    early({ method, authorization, peer }) {
      const seconds = admission.refusal(authorization, peer)
      if (seconds === 0) return undefined
      requests.count('', method, 429, 0)
      return {
        status: 429,
        headers: {
          ...{ Server: server, 'X-Request-Id': nextId(), ...jsonHeaders },
          'Retry-After': String(seconds),
          [errorHeader]: wordOfStatus(429),
        },
        body: `${JSON.stringify({ message: tooManyLogins(peer, seconds), status: 429 })}\n`,
      }
    },

    async inside(request) {
      const { answer, headers } = await dispatchTrusted(request, nextId(), {
        found: () => serviceIdentity,
        peer: insidePeer,
      })
      return finish(answer, headers, options)
    },

    async throughTunnel(request, upgrade) {
      const began = clock()
      requests.begin()
      const id = requestIdOf(request) ?? nextId()
      let route = ''
      const found = (it: Endpoint) => {
        route = it.path
        return serviceIdentity
      }
      const caller = callerThroughTunnel(request, id)
      const { answer, headers } = await dispatchTrusted(request, id, { found, caller, peer: insidePeer, upgrade })
      const { method, url } = request
      const { status } = answer
      const error = status < 400 ? undefined : headers[errorHeader]
      const ms = clock() - began
      requests.end(route, method, status, ms / 1000)
      trace?.({ ...{ id, method, path: pathOf(url), route, status, ms }, ...(error !== undefined && { error }) })
      return answer instanceof Response ? finish(answer, headers, options) : relayable(answer, headers)
    },
  }
}

/** The answer to a compute that joins; a 401 among them is a wrong log-in. */
async function joined(
  admission: Admission,
  request: Request,
  peer: Peer,
  respond: () => Promise<Unfinished | ForwardedResponse>,
): Promise<Unfinished | ForwardedResponse> {
  let refusal: unknown
  const response = await admission.join(request, peer, async () => {
    try {
      return await respond()
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error
      refusal = error
      return undefined
    }
  })
  if (response === undefined) throw refusal
  return response
}

/** An answer that another process gave, as it goes to the client. */
class ForwardedResponse {
  readonly response: Response

  constructor(response: Response) {
    this.response = response
  }
}

/**
 * What a gateway hands on. It looks at the parameters of the path and at the size of a JSON body. All else the compute looks at,
 * which may be of a newer version.
 */
function projectRequestOf(
  { endpoint, params }: RouteMatch,
  path: string,
  request: Request,
  upgrade: Upgrade,
): Omit<ProjectRequest, 'body'> {
  const { project_id, ...ids } = validParams(endpoint, params)
  const part = ids.node_id ?? ids.vm_id ?? ids.link_id ?? partIn(params.action)
  return {
    projectId: String(project_id),
    part: part === undefined ? undefined : String(part).toLowerCase(),
    request,
    path,
    upgrade: endpoint.websocket === true ? upgrade : undefined,
    endsProject: endpoint.endsProject === true,
  }
}

async function answer(
  { endpoint, params }: RouteMatch,
  path: string,
  request: Request,
  context: Context<HostAgent>,
  jsonBytes: number,
): Promise<Unfinished> {
  const input = {
    params: validParams(endpoint, params),
    query: endpoint.query === undefined ? {} : validate(endpoint.query, queryOf(request.url), 'query'),
  }
  const body = await bodyOf(endpoint, request, jsonBytes, (current) => current(input, context))
  const sent = endpoint.bodyKind === 'raw' ? await withFormFile(request) : request
  return endpoint.handle({ ...input, body, path, request: sent }, context)
}

async function bodyOf(
  endpoint: Endpoint,
  request: Request,
  limit: number,
  ask: (current: NonNullable<Endpoint['current']>) => Promise<unknown>,
): Promise<unknown> {
  const { body, shownAs, current } = endpoint
  if (body !== undefined && shownAs !== undefined) {
    const given = await readJson(request, limit)
    return withReadOnly(body as TObject, shownAs).read(given, current && (() => ask(current)))
  }
  if (endpoint.body !== undefined) return validate(endpoint.body, await readJson(request, limit))
  if (endpoint.bodyKind === 'ignored') await readAnyJson(request, limit)
  return undefined
}

/** The node in a path that only a newer compute has, such as `kind/nodes/{node_id}/new`. */
const partIn = (action = ''): string | undefined => /^[^/]+\/(?:nodes|vms)\/([^/]+)/.exec(action)?.[1]

function hasValidParams({ endpoint, params }: RouteMatch): boolean {
  try {
    validParams(endpoint, params)
    return true
  } catch {
    return false
  }
}

/** Parameters that were validated, by those of the match, which the router has for a path that is asked for again. */
const validated = new WeakMap<object, Readonly<Record<string, unknown>>>()

/** The parameters of the path. Ids are compared without regard to case; from here on they are lower-case. */
function validParams({ params: schema }: Endpoint, params: RouteMatch['params']): Readonly<Record<string, unknown>> {
  if (schema === undefined) return {}
  const known = validated.get(params)
  if (known !== undefined) return known
  const given = Object.entries(validate(schema as TObject, params, 'path'))
  const lower = given.map(([name, value]) => [name, name.endsWith('_id') ? String(value).toLowerCase() : value])
  const valid = Object.freeze(Object.fromEntries(lower) as Record<string, unknown>)
  validated.set(params, valid)
  return valid
}

/** An answer for a tunnel, which needs no Response. */
function relayable(answer: JsonAnswer | RelayedAnswer, headers: Record<string, string>): RelayedAnswer {
  if ('content' in answer) return { ...answer, headers: { ...answer.headers, ...headers } }
  const { status, body } = answer
  if (body === undefined) return { status, headers, content: null }
  const content = new TextEncoder().encode(`${JSON.stringify(body)}\n`)
  const own = { ...jsonHeaders, 'Content-Length': String(content.byteLength) }
  return { status, headers: { ...own, ...headers }, content }
}

function finish(
  answer: Unfinished,
  headers: Record<string, string>,
  { json, relayed = responseOf }: Pick<AppOptions, 'json' | 'relayed'>,
): Response {
  if ('content' in answer)
    return relayed({ status: answer.status, headers: { ...answer.headers, ...headers }, content: answer.content })
  if (!(answer instanceof Response)) {
    if (answer.body === undefined) return new Response(null, { status: answer.status, headers })
    return json(textOf(answer.body), answer.status, headers)
  }
  // A websocket's token must stay the object that the runtime knows, and has no headers to set.
  if (answer.status === 101 || isToken(answer)) return answer
  for (const [name, value] of Object.entries(headers)) {
    // An answer may vary by more than its origin.
    if (name === 'Vary') answer.headers.append(name, value)
    else answer.headers.set(name, value)
  }
  return answer
}

const texts = new WeakMap<object, string>()

/** The text of a body. That of a frozen one, which is a record without objects in it, is kept. The line end is for people with curl. */
function textOf(body: unknown): string {
  const isKept = typeof body === 'object' && body !== null && Object.isFrozen(body)
  const known = isKept ? texts.get(body) : undefined
  if (known !== undefined) return known
  const text = `${JSON.stringify(body)}\n`
  if (isKept) texts.set(body, text)
  return text
}

/** Most characters of names in a header: clients refuse answers with more than 16 KiB of headers, and a fleet has a thousand computes. */
const maxNamesLength = 4096

/** The names that fit, then `+` and the number of the others. */
function headerWords(names: ReadonlySet<string>): string {
  const words = [...names].map(headerWord)
  let length = 0
  const end = words.findIndex((word) => {
    length += word.length + 2
    return length > maxNamesLength
  })
  return end < 0 ? words.join(', ') : [...words.slice(0, end), `+${words.length - end}`].join(', ')
}

/** A name as it can stand in a list in a header. */
const headerWord = (name: string): string => name.replace(/[^!#-+\--~]+/g, encodeURIComponent)

const isToken = (response: Response): boolean => response.headers.has(upgradeToken)

function withoutBody(response: Response): Response {
  response.body?.cancel().catch(ignore('the body is not sent'))
  return new Response(null, { status: response.status, headers: response.headers })
}

const unexpected = (isAborted: boolean): ApiError =>
  isAborted ? new ApiError(408, 'The client aborted the request') : new ApiError(500, 'Internal Server Error')

/** v1 says `*`, as its clients expect; v2 names an allowed origin. Only requests that were let in come here. */
function allowOrigin(request: Request, path: string, headers: Record<string, string>): void {
  const origin = corsOrigin(request)
  // A link of another site: no script gets its answer, and most are refused.
  if (origin === undefined && isFromOtherSite(request)) return
  if (path.startsWith('/v1/')) headers['Access-Control-Allow-Origin'] = '*'
  else if (origin !== undefined) {
    headers['Access-Control-Allow-Origin'] = origin
    headers['Access-Control-Expose-Headers'] = '*'
    headers.Vary = 'Origin'
  }
}

function optionsHeaders(request: Request, methods: string): Record<string, string> {
  if (!isPreflight(request)) return { Allow: methods }
  return {
    Allow: methods,
    'Access-Control-Allow-Methods': methods,
    'Access-Control-Allow-Headers': request.headers.get('access-control-request-headers') ?? '*',
    'Access-Control-Max-Age': '600',
  }
}

/** Unique over restarts, and cheap: a random word and a count. */
function requestIds(): () => string {
  let random: string | undefined
  let count = 0
  return () => {
    // Workers allow no random values before the first request.
    random ??= crypto.randomUUID().slice(0, 8)
    count += 1
    return `${random}-${count.toString(36)}`
  }
}

/** A message for the client of a version: v1 has the resources of computes below a path of its own. */
const inWordsOf = (path: string, message: string): string =>
  path.startsWith('/v1/') ? message.replaceAll('/v2/compute/', '/v1/') : message
