import { DurableObject } from 'cloudflare:workers'
import { callerThroughTunnel, requestIdOf } from '../../src/auth/caller.ts'
import type { EndedSession } from '../../src/auth/ended-sessions.ts'
import type { ListReason, TokenList } from '../../src/auth/listed-tokens.ts'
import { sameText } from '../../src/auth/secret.ts'
import { keyOfToken, tokenOfKey } from '../../src/auth/tokens.ts'
import { ApiError } from '../../src/errors/api-error.ts'
import { errorHeader } from '../../src/errors/words.ts'
import { forward } from '../../src/fleet/forward.ts'
import { presented } from '../../src/gateway/fan-out.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import type { Outcome } from '../../src/gateway/image-copies.ts'
import { responseOf } from '../../src/http/relayed-answer.ts'
import type { RequestCounts } from '../../src/http/request-metrics.ts'
import { SignedTickets, type TicketUse } from '../../src/http/signed-tickets.ts'
import type { Upgrade } from '../../src/http/socket.ts'
import { type Compute, type ComputeRecord, tunnelled } from '../../src/model/compute.ts'
import { type MetricFamily, single } from '../../src/model/metrics.ts'
import { joinPath } from '../../src/routes/v2/join.ts'
import { Admissions } from './admitted.ts'
import { tokenKey } from './auth.ts'
import type { Env } from './env.ts'
import { isolateHeader, isolateKey } from './feed-message.ts'
import { FeedSockets } from './feed-sockets.ts'
import { type Gateway, openGateway } from './gateway.ts'
import { HealthCheckLoop } from './health-check-loop.ts'
import { HibernatableSockets } from './hibernatable-sockets.ts'
import { json } from './host.ts'
import { askPath, type LabQuestion } from './object-computes.ts'
import { upgrade } from './sockets.ts'
import { type Told, told } from './told.ts'
import { TunnelSockets } from './tunnel-sockets.ts'
import { UsedTickets } from './used-tickets.ts'

/** The computes that have an address: with their secrets, and as they are shown. */
export interface FleetSnapshot {
  /** Another one when a compute came, went, was changed, or is connected or not. */
  readonly revision: string
  readonly records: ComputeRecord[]
  readonly shown: Compute[]
}

interface Opened extends Gateway {
  readonly healthChecks: HealthCheckLoop
  readonly feeds: FeedSockets
}

/**
 * The one object that has the state of the gateway, and the connections that computes keep open. What it must not forget is in
 * its tables: its memory goes whenever nothing happens.
 */
export class FleetObject extends DurableObject<Env> {
  readonly #sockets: HibernatableSockets
  readonly #tunnels: TunnelSockets
  readonly #usedTickets: UsedTickets
  readonly #admissions: Admissions
  readonly #beganAt = Date.now()
  #isolateKey = ''
  #gateway: Opened | undefined
  /** Of the snapshot; undefined: another one is to be made up. */
  #revision: string | undefined

  constructor(state: DurableObjectState, env: Env) {
    super(state, env)
    this.#sockets = new HibernatableSockets(state)
    this.#tunnels = new TunnelSockets(this.#sockets)
    this.#usedTickets = new UsedTickets(state.storage.sql)
    this.#admissions = new Admissions(env)
    void state.blockConcurrencyWhile(async () => {
      this.#isolateKey = await isolateKey(env)
      const gateway = await openGateway(env, {
        storage: state.storage,
        upgrade: this.#upgrade,
        bookmarks: this.#tunnels,
        tickets: new SignedTickets({ key: tokenKey(env), use: (ticket) => this.useTicket(ticket) }),
        metrics: async () => this.#figures(),
        known: () => this.#open.healthChecks.known(),
        revoked: (tokenId) => this.#gateway?.feeds.revoke(keyOfToken(tokenId)),
      })
      const { fleet, events, load, labs } = gateway
      fleetMembers(fleet).watch(() => {
        this.#revision = undefined
      })
      this.#tunnels.resume(fleet.tunnels)
      const feeds = new FeedSockets({
        ...{ sockets: this.#sockets, events, fleet, labs, load },
        isGood: (key) => this.#isGood(key),
      })
      // What it remembers of the computes is said to nobody: feeds come after it.
      const healthChecks = new HealthCheckLoop(state.storage, fleet, () => feeds.size)
      feeds.resume()
      this.#gateway = { ...gateway, feeds, healthChecks }
    })
  }

  override async fetch(request: Request): Promise<Response> {
    const { app, feeds, healthChecks } = this.#open
    await healthChecks.used()
    const key = request.headers.get(isolateHeader)
    if (key !== null && (await sameText(key, this.#isolateKey)))
      return new URL(request.url).pathname.startsWith(askPath) ? this.#ask(request) : feeds.open(request)
    const admitted = await this.#admissions.read(request)
    // A token that was revoked a moment ago may still hold for an isolate: its credentials are looked at again.
    return app.fetch(request, admitted !== undefined && (await this.#isGood(admitted.key)) ? admitted : undefined)
  }

  /**
   * What isolates need to ask computes themselves; undefined: it is still what they have by the revision `known`. `answered`:
   * requests that they have answered since they told that last.
   */
  async snapshot(
    known?: string,
    answered: RequestCounts = { routes: [], credentials: [] },
  ): Promise<FleetSnapshot | undefined> {
    const { fleet, healthChecks, requests } = this.#open
    requests.add(answered)
    await healthChecks.used()
    if (known !== undefined && known === this.#revision) return undefined
    this.#revision ??= crypto.randomUUID()
    const revision = this.#revision
    const shown = (await fleet.list()).filter(({ protocol }) => protocol !== tunnelled)
    return { revision, records: [...fleet.registered().values()], shown }
  }

  /** Takes what an isolate has answered since it told that last. */
  count(answered: RequestCounts): void {
    this.#open.requests.add(answered)
  }

  /** Somebody could not reach them. */
  async look(computeIds: readonly string[]): Promise<void> {
    const { fleet } = this.#open
    await Promise.all(computeIds.slice(0, 6).map((id) => fleet.check(id)))
  }

  /** Brings an image to a compute, for an isolate or a lab: they know no other compute. */
  bringImage(computeId: string, image: string): Promise<Outcome> {
    return this.#open.bring(computeId, image)
  }

  async placeOf(projectId: string): Promise<string | undefined> {
    return this.#open.placements.get(projectId)
  }

  place(projectId: string, computeId: string): Promise<void> {
    return this.#open.placements.put(projectId, computeId)
  }

  forget(projectId: string): Promise<void> {
    return this.#open.placements.remove(projectId)
  }

  /** The tokens that hold, for an isolate; see `ListedTokens`. */
  tokenList(known: string | undefined, reason: ListReason): Promise<TokenList> {
    return this.#open.tokens.listed(known, reason)
  }

  /** Takes note that a session was ended before its time. */
  endSession(session: EndedSession): void {
    this.#open.tokens.endSession(session)
  }

  /** Takes note of the use of a ticket; false: it does not hold any more. */
  async useTicket({ id, key, expires, session }: TicketUse): Promise<boolean> {
    if (session !== undefined && this.#open.tokens.hasEnded(session)) return false
    return (await this.#isGood(key)) && this.#usedTickets.use(id, expires)
  }

  /** The id of the lab of that name. */
  labNamed(name: string): string | undefined {
    try {
      return this.#open.labs.idOf(name)
    } catch {
      return undefined
    }
  }

  /** Takes the name of a lab, and keeps what lists show of it: JSON of its head. */
  putLab(id: string, head: string): Promise<Told> {
    return told(() => this.#open.labs.register(id, JSON.parse(head)))
  }

  freeLabName(name: string): Promise<Told> {
    return told(() => this.#open.labs.freeName(name))
  }

  removeLab(id: string): Promise<Told> {
    return told(() => this.#open.labs.forget(id))
  }

  noteJob(id: string, lab: string | undefined): void {
    this.#open.jobs.note(id, lab)
  }

  /** The entries that all labs share, such as templates. */
  labScope(scope: string): Promise<Told> {
    return told(async () => {
      const entries = await this.#open.labStore.load(scope)
      return entries && [...entries]
    })
  }

  saveLabScope(scope: string, entries: string): Promise<Told> {
    return told(() => this.#open.labStore.save(scope, new Map(JSON.parse(entries) as [string, unknown][])))
  }

  /** What labs ask about computes; see `LabComputes`. */
  async labComputes(question: LabQuestion, args: string): Promise<Told> {
    const { labs, healthChecks } = this.#open
    await healthChecks.used()
    await healthChecks.known()
    const [first, second] = JSON.parse(args) as [never, never]
    return told(async () => labs.computes[question](first ?? (undefined as never), second))
  }

  override async alarm(): Promise<void> {
    const { healthChecks, feeds } = this.#open
    await healthChecks.run()
    await feeds.tellLoads()
  }

  override webSocketMessage(socket: WebSocket, data: string | ArrayBuffer): void {
    this.#sockets.message(socket, data)
  }

  override webSocketClose(socket: WebSocket, code: number): void {
    this.#sockets.closed(socket, code)
  }

  override webSocketError(socket: WebSocket): void {
    this.#sockets.closed(socket, 1006)
  }

  /** Hands a request of a lab on to a compute. */
  async #ask(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    const end = pathname.indexOf('/', askPath.length)
    const id = decodeURIComponent(pathname.slice(askPath.length, end))
    const caller = callerThroughTunnel(request, requestIdOf(request) ?? crypto.randomUUID().slice(0, 8))
    try {
      const answer = await forward(this.#open.fleet, id, { request, path: pathname.slice(end), caller, upgrade })
      if (!('content' in answer)) return answer
      return responseOf({ ...answer, headers: { ...answer.headers, 'X-ROUTE': askPath } })
    } catch (error) {
      const fault = presented(error, { name: id })
      if (!(fault instanceof ApiError)) throw error
      const { status, message, word, headers, extra } = fault
      return json(JSON.stringify({ message, status, ...extra }), status, {
        ...headers,
        ...{ [errorHeader]: word, 'X-ROUTE': askPath },
      })
    }
  }

  get #open(): Opened {
    if (this.#gateway === undefined) throw new Error('The object is not open yet')
    return this.#gateway
  }

  /** What computes open outlives this program; all else ends with its requests. */
  readonly #upgrade: Upgrade = (request, on) => {
    const isJoin = new URL(request.url).pathname === joinPath
    return (isJoin ? this.#tunnels.upgrade : upgrade)(request, on)
  }

  /** Whether a credential is still good, by its key: a token may have been revoked since an isolate looked at it. */
  async #isGood(key: string): Promise<boolean> {
    const id = tokenOfKey(key)
    return id === undefined || (await this.#gateway?.tokens.get(id)) !== undefined
  }

  #figures(): MetricFamily[] {
    const began = 'When the program of the Durable Object began: it begins anew whenever it was woken.'
    const feeds = this.#gateway?.feeds.size ?? 0
    return [
      single('patchbay_object_start_time_seconds', 'gauge', began, this.#beganAt / 1000),
      single('patchbay_object_feeds_open', 'gauge', 'Feeds that isolates read of the Durable Object.', feeds),
      this.#open.tokens.figures(),
    ]
  }
}
