import { DurableObject } from 'cloudflare:workers'
import { type ComputeAnswer, ConnectionLost, isRefusal } from '../../../src/compute/remote/transport.ts'
import { withDigest } from '../../../src/endpoints/v2/fleet/computes.ts'
import { joinSockets } from '../../../src/fleet/forward/bridge.ts'
import { UploadWatch } from '../../../src/fleet/images/image-digests.ts'
import { fleetAgent } from '../../../src/fleet/members/fleet-agent.ts'
import { Fleet } from '../../../src/fleet/pool/fleet.ts'
import { notJoined, Tunnels } from '../../../src/fleet/pool/tunnels.ts'
import type { EventAgent } from '../../../src/host-agent.ts'
import { onAbort } from '../../../src/lib/async/abort.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { SerialQueue } from '../../../src/lib/async/serial-queue.ts'
import { withTimeout } from '../../../src/lib/async/timeout.ts'
import { isSecret, sha256, toHex } from '../../../src/lib/crypto/secret.ts'
import { ApiError, retryLater } from '../../../src/lib/errors/api-error.ts'
import { isUpgrade } from '../../../src/lib/http/socket.ts'
import { callerThroughTunnel } from '../../../src/model/access/caller.ts'
import { type Compute, type ComputeRecord, tunnelled } from '../../../src/model/compute.ts'
import {
  askOrigin,
  encodeAnswer,
  encodeFault,
  encodePackedAnswer,
  feedsPath,
  headersForCompute,
  joinPath,
  longLivedHeader,
  packedOrigin,
  watchHeader,
} from '../shared/compute-requests.ts'
import type { Env } from '../shared/env.ts'
import { isolateHeader, isolateKey } from '../shared/feed-message.ts'
import { FeedSockets } from '../shared/feed-sockets.ts'
import { lengthIn } from '../shared/fixed-length-bodies.ts'
import { HibernatableSockets } from '../shared/hibernatable-sockets.ts'
import { warn } from '../shared/host.ts'
import { workerHasher } from '../shared/image-digest-table.ts'
import { inLargePieces } from '../shared/large-pieces.ts'
import { resultOf } from '../shared/object-reply.ts'
import { Objects } from '../shared/objects.ts'
import { packedHeader, unpackHeaders } from '../shared/packed-headers.ts'
import { noRegistry, reaching } from '../shared/reaching.ts'
import { encodeError } from '../shared/rpc-error.ts'
import { encode } from '../shared/rpc-json.ts'
import { Sealer } from '../shared/sealed.ts'
import { upgrade } from '../shared/sockets.ts'
import { ComputeCache } from './compute-cache.ts'
import { EventPump } from './event-pump.ts'
import { checkTimeouts, HealthCheckLoop } from './health-check-loop.ts'
import type { ComputeRpc, KnownCompute } from './rpc.ts'
import { TunnelSockets, tunnelOptions } from './tunnel-sockets.ts'

/** How long a compute may take to list its projects, ms. */
const listMs = 20_000

interface Opened {
  /** Has this compute, or none before its record is known. */
  readonly fleet: Fleet
  readonly checks: HealthCheckLoop
}

/**
 * The object of one compute: its record, its health, the feeds of its events, and its tunnel if it has joined. Requests to a joined compute
 * come from isolates, from the objects of labs and from the directory, and are sent by the tunnel unchanged. Uploads of images to a compute
 * with an address are sent by this object, too, which computes their digests. The object reports changes to the directory. It hibernates
 * with the tunnel and the feeds open.
 */
export class ComputeObject extends DurableObject<Env> implements ComputeRpc {
  readonly #id: string
  readonly #objects: Objects
  readonly #kept: ComputeCache
  readonly #sockets: HibernatableSockets
  readonly #tunnelSockets: TunnelSockets
  readonly #tunnels: Tunnels
  readonly #feeds: FeedSockets
  readonly #pump: EventPump
  /** Digests of the images that isolates forward. */
  readonly #uploads: UploadWatch
  /** Reports to the directory, one after the other. */
  readonly #reports = new SerialQueue()
  #opened: Opened | undefined
  /** Whether the tunnels of an earlier program are being taken over. */
  #isResuming = false
  #isolateKey = ''

  constructor(state: DurableObjectState, env: Env) {
    super(state, env)
    this.#objects = Objects.around(env, state)
    this.#id = Objects.ownIdOf(state)
    this.#kept = new ComputeCache(state.storage, new Sealer(env.FLEET_KEY ?? ''), warn)
    this.#sockets = new HibernatableSockets(state)
    this.#tunnelSockets = new TunnelSockets(this.#sockets)
    const directory = () => this.#objects.directory()
    this.#tunnels = new Tunnels({
      ...tunnelOptions,
      version: PATCHBAY_VERSION,
      registerJoined: async (hello, grant) => {
        const record = await resultOf(directory().enlist(this.#id, encode(hello), grant.key))
        if (record === undefined) throw new Error('The compute was removed while it joined')
        await this.#adopt(record)
      },
      isGood: (token) => directory().isJoinTokenGood(token),
      joined: () => this.#joined(),
      left: (_, reason) => {
        this.#kept.reported = undefined
        this.#left(reason)
      },
    })
    const events: EventAgent = { open: (feed) => fleetAgent(this.#open.fleet, this.#id).events.open(feed) }
    this.#pump = new EventPump({
      events,
      deliver: (subscriptionId, item) => directory().heard(this.#id, subscriptionId, item && encode(item)),
      keep: (listening) => {
        this.#tunnelSockets.listen(listening)
        if (!this.#isTunnelled) this.#kept.listening = listening?.subscriptionId
      },
    })
    this.#feeds = new FeedSockets({
      sockets: this.#sockets,
      // The directory has the feeds over all projects.
      events,
      load: async () => this.#opened?.fleet.find(this.#id)?.session.load,
      isGood: (key) => directory().isGoodAt(this.#id, key),
    })
    this.#uploads = new UploadWatch(async (kind, name, digest) => {
      await resultOf(directory().imageUploaded(kind, name, digest)).catch((error: unknown) => {
        throw error instanceof ApiError
          ? error
          : retryLater(503, 'the gateway could not record its digest; wait a moment', 1)
      })
    }, workerHasher)
    void state.blockConcurrencyWhile(() => this.#start())
  }

  async #start(): Promise<void> {
    this.#isolateKey = await isolateKey(this.env)
    const fleet = await Fleet.open({
      ...reaching,
      registry: noRegistry,
      healthChecks: 'on-demand',
      timeouts: checkTimeouts,
      holder: this.#tunnels,
    })
    const checks = new HealthCheckLoop({
      storage: this.ctx.storage,
      kept: this.#kept,
      fleet,
      computeId: this.#id,
      report: async (shown, isNew) => {
        await this.#reports.run(() => this.#reportState(shown))
        if (isNew) this.ctx.waitUntil(this.#reportProjects().catch(ignore('they are reported when it connects again')))
      },
      waitUntil: (work) => this.ctx.waitUntil(work),
    })
    this.#opened = { fleet, checks }
    const { reported } = this.#kept
    this.#isResuming = reported !== undefined
    this.#tunnelSockets.resume(this.#tunnels)
    this.#isResuming = false
    const record = await this.#kept.record()
    if (record !== undefined) fleet.registerEphemeral(record, this.#waitingOf(record))
    if (reported !== undefined) fleet.restoreStates([reported.shown], Date.now() - reported.at)
    fleet.listen((event) => {
      if ('message' in event) warn(event.message)
      else this.ctx.waitUntil(checks.report().catch(ignore('the next check reports it')))
    })
    if (reported?.shown.connected === true && record?.protocol === tunnelled && !this.#tunnels.has(this.#id)) {
      this.#kept.forgetReported()
      this.#left('the connection ended with the program of its object')
    }
    this.#feeds.resume()
    const subscriptionId = this.#kept.listening
    this.#pump.resume(this.#tunnelSockets.listening)
    // The feed of the compute ended with the earlier program: the directory asks again, from its last event on.
    if (subscriptionId === undefined) return
    this.#kept.listening = undefined
    this.ctx.waitUntil(this.#pump.reportEnd(subscriptionId))
  }

  override async fetch(request: Request): Promise<Response> {
    const key = request.headers.get(isolateHeader)
    if (key === null || !isSecret(key, this.#isolateKey))
      throw new Error('Only programs of the gateway ask the object of a compute')
    const { url } = request
    if (url.startsWith(askOrigin)) {
      this.#open.checks.used()
      return this.#ask(request, url.slice(askOrigin.length), headersForCompute(request))
    }
    if (url.startsWith(packedOrigin)) {
      this.#open.checks.used()
      const headers = Object.fromEntries(unpackHeaders(request.headers.get(packedHeader) ?? '[]'))
      return this.#ask(request, url.slice(packedOrigin.length), headers, true)
    }
    const { pathname, searchParams } = new URL(url)
    if (pathname === joinPath) return this.#join(request, searchParams)
    this.#open.checks.used()
    if (pathname === feedsPath) return this.#feeds.open(request)
    throw new Error(`The object of a compute has nothing at ${pathname}`)
  }

  async known(): Promise<KnownCompute | undefined> {
    const { fleet, checks } = this.#open
    if (fleet.find(this.#id) === undefined) {
      const record = await this.#objects.directory().recordOf(this.#id)
      if (record !== undefined) await this.#adopt(record)
    }
    checks.used()
    await checks.known()
    const found = fleet.find(this.#id)
    return found && { record: found.record, shown: found.show() }
  }

  async look(): Promise<Compute | undefined> {
    const { fleet, checks } = this.#open
    await checks.run()
    return fleet.find(this.#id)?.show()
  }

  keep(record: ComputeRecord): Promise<void> {
    return this.#adopt(record)
  }

  async listen(subscriptionId: string, since: number | undefined): Promise<void> {
    await this.#pump.listen(subscriptionId, since)
  }

  async unlisten(subscriptionId: string): Promise<void> {
    this.#pump.stop(subscriptionId)
  }

  async revoke(key: string): Promise<void> {
    this.#feeds.revoke(key)
  }

  async dismiss(): Promise<void> {
    this.#open.fleet.unregister(this.#id)
    this.#tunnels.unregister(this.#id)
    await this.#kept.clear()
  }

  override async alarm(): Promise<void> {
    await this.#open.checks.run()
    this.#kept.settle()
    await this.#feeds.publishLoads()
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

  #join(request: Request, searchParams: URLSearchParams): Response {
    const key = searchParams.get('key') ?? ''
    const address = searchParams.get('address') || undefined
    const accepted = this.#tunnelSockets.upgrade(request, {
      open: (socket) => {
        const wire = { ...socket, close: (code: number, reason: string) => socket.close(code, reason) }
        const end = this.#tunnels.accept(wire, { key }, address)
        socket.onMessage((data) => end.message(data))
        socket.onClose(() => end.closed())
      },
      abandon() {},
    })
    return accepted as Response
  }

  /**
   * Sends a request to the compute, and its answer back, unchanged; to a compute with an address only uploads of images. `faultHeader` says
   * why there is no answer.
   */
  async #ask(
    request: Request,
    path: string,
    headers: Readonly<Record<string, string>>,
    isPacked = false,
  ): Promise<Response> {
    const { method, signal, body } = request
    const given = request.headers
    try {
      const record = this.#open.fleet.find(this.#id)?.record
      const isFetched = record !== undefined && record.protocol !== tunnelled
      if (!isFetched && !this.#tunnels.has(this.#id)) return encodeFault({ kind: 'absent', message: notJoined })
      if (!isPacked && isUpgrade(request)) {
        const over = new AbortController()
        // After the upgrade only the end of the websocket counts.
        const stay = onAbort(signal, () => over.abort(signal.reason))
        const open = this.#tunnels.sockets({ ...anyAddress, compute_id: this.#id })
        const opened = await open({ path, headers, signal: over.signal }).finally(stay)
        if (isRefusal(opened)) return encodeAnswer(opened)
        return upgrade(request, {
          open: (socket) => joinSockets(socket, opened),
          abandon: () => opened.close(1001, 'The client disconnected'),
        }) as Response
      }
      const longLived = given.has(longLivedHeader)
      const ask = isFetched
        ? reaching.transport(record)
        : this.#tunnels.transport({ ...anyAddress, compute_id: this.#id })
      const send = (sent = body) =>
        ask({ method, path, headers, signal, longLived, body: method === 'GET' ? null : sent })
      const isWatched = !isPacked && given.has(watchHeader)
      const answer = await (isWatched ? this.#watched(request, path, send) : send())
      return isPacked || given.has(packedHeader) ? encodePackedAnswer(answer) : encodeAnswer(answer)
    } catch (error) {
      if (error instanceof ApiError) return encodeFault({ kind: 'refused', ...encodeError(error) })
      return encodeFault({
        kind: error instanceof ConnectionLost ? 'lost' : 'absent',
        message: (error as Error).message,
      })
    }
  }

  /** Sends a request that may upload an image. All parts of an upload to this compute pass this object, so it computes the digest. */
  #watched(
    request: Request,
    path: string,
    send: (body?: ReadableStream<Uint8Array>) => Promise<ComputeAnswer>,
  ): Promise<ComputeAnswer> {
    const [at = ''] = path.slice(computePath.length).split('?')
    const byAdmin = callerThroughTunnel(request, '').mayExecute
    const isLarge = lengthIn(request.headers) !== undefined
    const uploads: Pick<UploadWatch, 'watch'> = {
      watch: (image, content, how) =>
        this.#uploads.watch(image, isLarge ? inLargePieces(content, uploadPieceBytes) : content, how),
    }
    return withDigest(request, at, { uploads, byAdmin }, send)
  }

  /** Reports the tunnel to the directory. When that fails the tunnel is closed, as it could not be used: the compute joins again. */
  #report(report: () => Promise<unknown>): void {
    const reported = this.#reports.run(report).catch(() => this.#tunnels.close())
    this.ctx.waitUntil(reported)
  }

  #joined(): void {
    // The directory already knows a tunnel of an earlier program.
    if (this.#isResuming) return
    this.#report(() => this.#objects.directory().tunnelOpened(this.#id, this.#tunnels.addressOf(this.#id)))
    this.#kept.forgetReported()
    this.#open.fleet.joined(this.#id)
    this.#open.checks.begin()
  }

  #left(reason: string): void {
    this.#report(() => this.#objects.directory().tunnelClosed(this.#id, reason))
    this.#opened?.fleet.left(this.#id, reason)
  }

  /** Takes the record that the directory has, and begins to check the compute unless nothing of its connection has changed. */
  async #adopt(record: ComputeRecord): Promise<void> {
    const { fleet, checks } = this.#open
    const known = fleet.find(this.#id)
    if (JSON.stringify(known?.record) === JSON.stringify(record)) return
    await this.#kept.keepRecord(record)
    this.#kept.reported = undefined
    if (known !== undefined && connectionOf(known.record) === connectionOf(record)) {
      known.keep(record)
      // The directory has dropped the state that it had of the former record.
      return this.ctx.waitUntil(checks.report().catch(ignore('the next check reports it')))
    }
    fleet.registerEphemeral(record, this.#waitingOf(record))
    checks.begin()
  }

  async #reportState(shown: Compute): Promise<void> {
    const record = await this.#objects.directory().told(encode(shown))
    if (record === undefined) await this.dismiss()
    else await this.#adopt(record)
  }

  /** Reports the projects of the compute to the directory, unless the list is the same as in the last report. */
  async #reportProjects(): Promise<void> {
    const listed = fleetAgent(this.#open.fleet, this.#id).projects.list('all')
    const projects = await withTimeout(listed, listMs, () => undefined)
    const ids = projects?.map(({ project_id }) => project_id.toLowerCase()).sort()
    if (ids === undefined) return
    const digest = toHex(await sha256(ids.join()))
    if (digest === this.#kept.projects || (ids.length === 0 && this.#kept.projects === undefined)) return
    await this.#objects.directory().hasProjects(this.#id, ids)
    this.#kept.projects = digest
  }

  #waitingOf({ protocol }: ComputeRecord): string | undefined {
    return protocol === tunnelled && !this.#tunnels.has(this.#id) ? notJoined : undefined
  }

  get #isTunnelled(): boolean {
    return this.#opened?.fleet.isTunnelled(this.#id) === true
  }

  get #open(): Opened {
    if (this.#opened === undefined) throw new Error('The object is not open yet')
    return this.#opened
  }
}

/** The part of a record on which its session depends. */
const connectionOf = ({ protocol, host, port, user, password, name }: ComputeRecord): string =>
  JSON.stringify([protocol, host, port, user, password, name])

/** A compute that has joined has no address. */
const anyAddress = { protocol: tunnelled, host: '', port: 0 } as const

const computePath = '/v2/compute/'
/** Bytes of the pieces of an upload. */
const uploadPieceBytes = 64 * 1024
