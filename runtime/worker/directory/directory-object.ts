import { DurableObject } from 'cloudflare:workers'
import type { ImageDigest } from '../../../src/fleet/images/image-digests.ts'
import { computeKey } from '../../../src/fleet/pool/computes.ts'
import type { ReplicationOutcome } from '../../../src/host-agent.ts'
import { decodeHead } from '../../../src/labs/lab/document-codec.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { sameText } from '../../../src/lib/crypto/secret.ts'
import { conflict } from '../../../src/lib/errors/api-error.ts'
import type { ProjectScope } from '../../../src/model/access/project-scope.ts'
import type { Compute, ComputeRecord } from '../../../src/model/compute.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import type { ImageKindName } from '../../../src/model/image.ts'
import { type MetricFamily, single } from '../../../src/model/metrics.ts'
import { defaultOrganization, type Organization } from '../../../src/model/organization.ts'
import type { ComputeHello } from '../../../src/model/tunnel.ts'
import type { EndedSession } from '../../../src/server/auth/ended-sessions.ts'
import type { ListReason, TokenList } from '../../../src/server/auth/listed-tokens.ts'
import { keyOfToken, tokenOfKey } from '../../../src/server/auth/tokens.ts'
import type { RequestCounts } from '../../../src/server/http/request-metrics.ts'
import { SignedTickets, type TicketUse } from '../../../src/server/http/signed-tickets.ts'
import {
  noSuchOrganization,
  type OrganizationContent,
  Organizations,
} from '../../../src/server/organizations/organizations.ts'
import { Admissions } from '../shared/admissions.ts'
import { tokenKey } from '../shared/auth.ts'
import type { Env } from '../shared/env.ts'
import { isolateHeader, isolateKey } from '../shared/feed-message.ts'
import { FeedSockets } from '../shared/feed-sockets.ts'
import { wholeBody } from '../shared/fixed-length-bodies.ts'
import { HibernatableSockets } from '../shared/hibernatable-sockets.ts'
import { type ObjectReply, replyOf } from '../shared/object-reply.ts'
import { ObjectTunnels } from '../shared/object-tunnels.ts'
import { Objects } from '../shared/objects.ts'
import { decode, type Encoded } from '../shared/rpc-json.ts'
import { BatchedWrites } from './batched-writes.ts'
import { FeedReaders } from './feed-readers.ts'
import { openGateway, type WorkerGateway } from './gateway.ts'
import { maxOrganizations, OrganizationObjects } from './organization-objects.ts'
import { OrganizationTable } from './organization-table.ts'
import { PushedFeeds } from './pushed-feeds.ts'
import type { DirectoryRpc, FleetArguments, FleetMethod, FleetResult, StoredEntries } from './rpc.ts'
import { TunnelTable } from './tunnel-table.ts'
import { UsedTickets } from './used-tickets.ts'

/** Labs and computes that are deleted with an organization: each is a call of an object (Cloudflare Workers, limits). */
const maxDiscarded = 500

/** Time between two messages to feeds about the load of the computes, ms. */
const loadsMs = 15_000

interface Opened extends WorkerGateway {
  readonly feeds: FeedSockets
}

/**
 * The directory of an organization: its computes, tokens, placements and the names of its labs. Its tables have all state that must last:
 * an idle object loses its memory. It holds no tunnel and checks no compute: the objects of the computes do.
 */
export class DirectoryObject extends DurableObject<Env> implements DirectoryRpc {
  readonly #sockets: HibernatableSockets
  /** Writes of the states and tunnels of computes: after a restart all are reported at once. */
  readonly #writes = new BatchedWrites()
  readonly #tunnels: TunnelTable
  readonly #pushedFeeds: PushedFeeds
  /** Where feeds of each token are read. */
  readonly #readers: FeedReaders
  readonly #objects: Objects
  readonly #usedTickets: UsedTickets
  readonly #admissions: Admissions
  readonly #organizations: OrganizationTable
  readonly #beganAt = Date.now()
  #loadsAt = 0
  #isolateKey = ''
  #gateway: Opened | undefined

  constructor(state: DurableObjectState, env: Env) {
    super(state, env)
    this.#sockets = new HibernatableSockets(state)
    this.#objects = Objects.around(env, state)
    this.#tunnels = new TunnelTable(state.storage.sql, this.#writes, new ObjectTunnels(env, this.#objects), env.PROCESS)
    this.#pushedFeeds = new PushedFeeds(this.#objects)
    this.#readers = new FeedReaders(state.storage.sql)
    // An earlier version held the tunnels here; the computes join again.
    for (const { socket } of this.#sockets.existingSockets('tunnel')) socket.close(1012, 'The gateway restarts')
    this.#usedTickets = new UsedTickets(state.storage.sql)
    this.#admissions = new Admissions(env)
    this.#organizations = new OrganizationTable(state.storage.sql)
    const { named } = this.#objects
    void state.blockConcurrencyWhile(async () => {
      this.#isolateKey = await isolateKey(env)
      const gateway = await openGateway(env, {
        storage: state.storage,
        writes: this.#writes,
        objects: this.#objects,
        limits: () => this.#organizations.find(this.#objects.organization),
        organizations: named === undefined ? this.#deployment(env) : undefined,
        tunnels: this.#tunnels,
        pushedFeeds: this.#pushedFeeds,
        tickets: new SignedTickets({ key: tokenKey(env), use: (ticket) => this.useTicket(ticket) }),
        metrics: async () => this.#figures(),
        revoked: (tokenId) => this.#revoke(keyOfToken(tokenId)),
      })
      const { fleet, events, load, labs } = gateway
      const feeds = new FeedSockets({
        sockets: this.#sockets,
        events,
        fleet,
        labs,
        load,
        isGood: (key) => this.#isGood(key),
      })
      feeds.resume()
      this.#gateway = { ...gateway, feeds }
    })
  }

  override async fetch(request: Request): Promise<Response> {
    const { app, feeds } = this.#open
    const key = request.headers.get(isolateHeader)
    if (key !== null && (await sameText(key, this.#isolateKey))) return feeds.open(request)
    const admitted = await this.#admissions.read(request)
    // An isolate may not know of a revocation yet, so the credentials are checked again.
    const isGood = admitted !== undefined && (await this.#isGood(admitted.key))
    const answer = await app.fetch(request, isGood ? admitted : undefined)
    return answer.headers.has('content-length') ? new Response(wholeBody(answer.body, answer.headers), answer) : answer
  }

  async count(answered: RequestCounts): Promise<void> {
    this.#open.requests.add(answered)
  }

  async hasCompute(computeId: string): Promise<boolean> {
    return this.#open.fleet.find(computeId) !== undefined
  }

  async recordOf(computeId: string): Promise<ComputeRecord | undefined> {
    return this.#open.fleet.find(computeId)?.record
  }

  async told(shown: Encoded<Compute>): Promise<ComputeRecord | undefined> {
    const record = await this.#open.states.accept(decode(shown))
    this.#publishLoads()
    return record
  }

  hasProjects(computeId: string, projectIds: readonly string[]): Promise<void> {
    return this.#open.reportedProjects.replace(computeId, projectIds)
  }

  enlist(
    computeId: string,
    hello: Encoded<ComputeHello>,
    tokenKey: string,
  ): Promise<ObjectReply<ComputeRecord | undefined>> {
    return replyOf(async () => {
      const said = decode(hello)
      if (computeKey(said.compute_id) !== computeKey(computeId))
        throw conflict(`compute_id: the address says ${computeId}, the compute ${said.compute_id}`)
      await this.#open.fleet.registerJoined(said, { key: tokenKey })
      return this.#open.fleet.find(computeId)?.record
    })
  }

  isJoinTokenGood(tokenKey: string): Promise<boolean> {
    return this.#open.fleet.isJoinTokenGood(tokenKey)
  }

  async computeOf(tokenKey: string): Promise<string | undefined> {
    return (await this.#open.fleet.joinTokens?.grantOf(tokenKey))?.compute_id
  }

  async tunnelOpened(computeId: string, address?: string): Promise<void> {
    const written = [this.#tunnels.opened(computeId, address), this.#open.states.changed(computeId)]
    this.#open.fleet.joined(computeId)
    await Promise.all(written)
  }

  async tunnelClosed(computeId: string, reason: string): Promise<void> {
    const written = [this.#tunnels.closed(computeId), this.#open.states.changed(computeId)]
    this.#open.fleet.left(computeId, reason)
    await Promise.all(written)
  }

  heard(computeId: string, subscriptionId: string, item: Encoded<FeedItem> | undefined): Promise<boolean> {
    return this.#pushedFeeds.heard(computeKey(computeId), subscriptionId, item && decode(item))
  }

  async isGoodAt(computeId: string, key: string): Promise<boolean> {
    if (!(await this.#isGood(key))) return false
    this.#readers.add(key, computeId)
    return true
  }

  bringImage(computeId: string, image: string): Promise<ReplicationOutcome> {
    return this.#open.replicateImage(computeId, image)
  }

  imageUploaded(kind: ImageKindName, name: string, digest: ImageDigest | undefined): Promise<ObjectReply> {
    return replyOf(async () => this.#open.uploads?.record(kind, name, digest))
  }

  async placementOf(projectId: string): Promise<string | undefined> {
    return this.#open.placements.get(projectId)
  }

  place(projectId: string, computeId: string): Promise<void> {
    return this.#open.placements.put(projectId, computeId)
  }

  forget(projectId: string): Promise<void> {
    return this.#open.placements.remove(projectId)
  }

  async tokenList(known: string | undefined, reason: ListReason): Promise<TokenList> {
    const { organization } = this.#objects
    const requestsPerS = this.#organizations.find(organization)?.requests_per_s ?? 0
    return { ...(await this.#open.tokens.listed(known, reason)), requestsPerS }
  }

  async hasOrganization(id: string): Promise<boolean> {
    return id === defaultOrganization || this.#organizations.find(id) !== undefined
  }

  async keepOrganization(organization: Encoded<Organization>): Promise<void> {
    await this.#organizations.put(decode(organization))
  }

  async content(): Promise<OrganizationContent> {
    const { projects, fleet } = this.#open
    return { projects: projects().size, computes: fleet.remote.length }
  }

  discard(): Promise<ObjectReply<boolean>> {
    return replyOf(async () => {
      const { named } = this.#objects
      if (named === undefined) throw new Error('The organization default stays')
      await this.#open.images?.clear()
      if (this.#organizations.find(named) === undefined) return false
      const { labs, fleet } = this.#open
      const ids = [...labs.ids()]
      const computes = fleet.remote.map(({ record }) => record.compute_id)
      if (ids.length + computes.length > maxDiscarded)
        throw conflict(
          `The organization has more than ${maxDiscarded} labs and computes: delete some first, at most this number can be deleted at once`,
        )
      await mapLimit(ids, async (id) => {
        const lab = this.#objects.project(id)
        await lab.discard()
        await lab.end().catch(ignore('a call of an object that ends has no answer'))
      })
      await mapLimit(computes, (id) => fleet.remove(id))
      for (const socket of this.ctx.getWebSockets()) socket.close(1001, 'The organization was deleted')
      await this.ctx.storage.deleteAlarm()
      await this.ctx.storage.deleteAll()
      return true
    })
  }

  async end(): Promise<void> {
    this.ctx.abort('The organization was deleted')
  }

  async endSession(session: EndedSession): Promise<void> {
    this.#open.tokens.endSession(session)
  }

  async useTicket({ id, key, expires, session }: TicketUse): Promise<boolean> {
    if (session !== undefined && this.#open.tokens.hasEnded(session)) return false
    return (await this.#isGood(key)) && this.#usedTickets.use(id, expires)
  }

  async labNamed(name: string): Promise<string | undefined> {
    try {
      return this.#open.labs.idOf(name)
    } catch {
      return undefined
    }
  }

  putLab(id: string, head: Encoded<unknown>, scope?: ProjectScope): Promise<ObjectReply> {
    return replyOf(async () => {
      const { named } = this.#objects
      // The object of a lab of a deleted organization may still send its head.
      if (named !== undefined && this.#organizations.find(named) === undefined) throw noSuchOrganization(named)
      await this.#open.labs.register(id, decodeHead(decode(head)), scope)
    })
  }

  freeLabName(name: string): Promise<ObjectReply<string>> {
    return replyOf(() => this.#open.labs.freeName(name))
  }

  removeLab(id: string): Promise<ObjectReply> {
    return replyOf(() => this.#open.labs.remove(id))
  }

  async present(id: string, names: readonly string[]): Promise<void> {
    await this.#open.labs.keepPresent(id, names)
  }

  async noteJob(id: string, lab: string | undefined): Promise<void> {
    this.#open.jobs.note(id, lab)
  }

  labScope(scope: string): Promise<ObjectReply<StoredEntries | undefined>> {
    return replyOf(async () => {
      const entries = await this.#open.labStore.load(scope)
      return entries && [...entries]
    })
  }

  saveLabScope(scope: string, entries: Encoded<StoredEntries>): Promise<ObjectReply> {
    return replyOf(() => this.#open.labStore.save(scope, new Map(decode(entries))))
  }

  async labComputes<Method extends FleetMethod>(
    method: Method,
    args: Encoded<FleetArguments<Method>>,
  ): Promise<ObjectReply<FleetResult<Method>>> {
    const { computes, states } = this.#open
    await states.known()
    const [first, ...rest]: readonly unknown[] = decode(args)
    const ask = computes[method] as (...args: unknown[]) => Promise<FleetResult<Method>>
    return replyOf(async () => ask(first ?? undefined, ...rest))
  }

  /** Keeps the images in R2 whose next attempt is due. An earlier version set the alarm for other purposes. */
  override async alarm(): Promise<void> {
    await this.#open.keepDue()
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

  #deployment(env: Env): Organizations {
    const states = new OrganizationObjects(env)
    return new Organizations({ store: this.#organizations, states, max: maxOrganizations })
  }

  get #open(): Opened {
    if (this.#gateway === undefined) throw new Error('The object is not open yet')
    return this.#gateway
  }

  #publishLoads(): void {
    if (Date.now() - this.#loadsAt < loadsMs) return
    this.#loadsAt = Date.now()
    this.ctx.waitUntil(this.#open.feeds.publishLoads())
  }

  /** Ends the feeds of a revoked credential. */
  #revoke(key: string): void {
    this.#gateway?.feeds.revoke(key)
    for (const computeId of this.#readers.drain(key))
      this.ctx.waitUntil(
        this.#objects.compute(computeId).revoke(key).catch(ignore('its feeds have ended with their object')),
      )
  }

  /** Whether the credential with this key is still valid: its token may have been revoked since an isolate checked it. */
  async #isGood(key: string): Promise<boolean> {
    const id = tokenOfKey(key)
    return id === undefined || (await this.#gateway?.tokens.get(id)) !== undefined
  }

  #figures(): MetricFamily[] {
    const began = 'Start time of the program of the Durable Object, which restarts at every wake-up.'
    const feeds = this.#gateway?.feeds.size ?? 0
    return [
      single('patchbay_object_start_time_seconds', 'gauge', began, this.#beganAt / 1000),
      single('patchbay_object_feeds_open', 'gauge', 'Feeds of the Durable Object that isolates read.', feeds),
      this.#open.tokens.figures(),
    ]
  }
}
