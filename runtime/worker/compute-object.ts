import { DurableObject } from 'cloudflare:workers'
import { SerialQueue } from '../../src/async/serial-queue.ts'
import { sameText } from '../../src/auth/secret.ts'
import { type RemoteHostAgent, remoteHostAgent } from '../../src/client/remote-host-agent.ts'
import type { ComputeAnswer, Send } from '../../src/client/transport.ts'
import { ConnectionLost, isRefusal } from '../../src/client/transport.ts'
import { ApiError } from '../../src/errors/api-error.ts'
import { joinSockets } from '../../src/fleet/bridge.ts'
import { askLoad } from '../../src/fleet/load.ts'
import { senderOf } from '../../src/fleet/remote-compute.ts'
import { notJoined, Tunnels } from '../../src/fleet/tunnels.ts'
import { isUpgrade } from '../../src/http/socket.ts'
import { tunnelled } from '../../src/model/compute.ts'
import type { Load } from '../../src/model/host.ts'
import { askPath, faultHeader, feedsPath, joinPath, restsHeader, type TunnelFault } from './compute-asking.ts'
import type { Env } from './env.ts'
import { EventPump } from './event-pump.ts'
import { isolateHeader, isolateKey } from './feed-message.ts'
import { FeedSockets } from './feed-sockets.ts'
import { HibernatableSockets } from './hibernatable-sockets.ts'
import { resultOf } from './object-reply.ts'
import { Objects } from './objects.ts'
import { upgrade } from './sockets.ts'
import { TunnelSockets, tunnelLimits } from './tunnel-sockets.ts'

/** Time between two looks at the load of a compute whose feeds are read, ms: the pings of feeds tell it. */
const lookMs = 5 * 60_000
/** How long the compute may take to tell its load, ms. */
const loadMs = 5000

/**
 * The object of one compute that has joined: its tunnel, and the feeds that are read of it. Requests to the compute come from isolates, from
 * the objects of labs and from the directory, and leave by the tunnel as they came. It hibernates with the tunnel and the feeds open.
 */
export class ComputeObject extends DurableObject<Env> {
  readonly #id: string
  readonly #objects: Objects
  readonly #sockets: HibernatableSockets
  readonly #tunnelSockets: TunnelSockets
  readonly #tunnels: Tunnels
  readonly #agent: RemoteHostAgent
  readonly #feeds: FeedSockets
  readonly #pump: EventPump
  /** What the directory is told, in its order. */
  readonly #telling = new SerialQueue()
  readonly #send: Send
  #isolateKey = ''

  constructor(state: DurableObjectState, env: Env) {
    super(state, env)
    this.#objects = Objects.around(env, state)
    this.#id = Objects.ownIdOf(state)
    this.#sockets = new HibernatableSockets(state)
    this.#tunnelSockets = new TunnelSockets(this.#sockets)
    const directory = () => this.#objects.fleet()
    this.#tunnels = new Tunnels({
      ...tunnelLimits,
      version: PATCHBAY_VERSION,
      enlist: (hello, grant) => resultOf(directory().enlist(this.#id, JSON.stringify(hello), grant.key)),
      isGood: (token) => directory().isJoinTokenGood(token),
      joined: () => this.#tell(() => directory().tunnelOpened(this.#id, this.#tunnels.addressOf(this.#id))),
      left: (_, reason) => this.#tell(() => directory().tunnelClosed(this.#id, reason)),
    })
    const record = { ...anyAddress, compute_id: this.#id, name: null, user: null, password: null }
    this.#send = senderOf(this.#tunnels.transport, record)
    this.#agent = remoteHostAgent({ name: this.#id, send: this.#send, isWatched: true })
    this.#pump = new EventPump({
      events: this.#agent.events,
      tell: (turn, item) => directory().heard(this.#id, turn, item && JSON.stringify(item)),
      keep: (listening) => this.#tunnelSockets.listen(listening),
    })
    this.#feeds = new FeedSockets({
      sockets: this.#sockets,
      // The directory has the feeds over all projects.
      events: { open: (feed) => this.#agent.events.open(feed) },
      load: () => this.#load(),
      isGood: (key) => directory().isGoodAt(this.#id, key),
    })
    void state.blockConcurrencyWhile(async () => {
      this.#isolateKey = await isolateKey(env)
      this.#tunnelSockets.resume(this.#tunnels)
      this.#feeds.resume()
      this.#pump.resume(this.#tunnelSockets.listening)
    })
  }

  override async fetch(request: Request): Promise<Response> {
    const key = request.headers.get(isolateHeader)
    if (key === null || !(await sameText(key, this.#isolateKey)))
      throw new Error('Only programs of the gateway ask the object of a compute')
    const { pathname, search, searchParams } = new URL(request.url)
    if (pathname === joinPath) return this.#join(request, searchParams)
    if (pathname === feedsPath) {
      if ((await this.ctx.storage.getAlarm()) === null) await this.ctx.storage.setAlarm(Date.now() + lookMs)
      return this.#feeds.open(request)
    }
    return this.#ask(request, pathname.slice(askPath.length) + search)
  }

  /** The directory listens to the events of the compute from `since` on; see `ToldFeeds`. Resolves when they are read. */
  async listen(turn: string, since: number | undefined): Promise<void> {
    await this.#pump.listen(turn, since)
  }

  unlisten(turn: string): void {
    this.#pump.stop(turn)
  }

  /** Ends the feeds of a revoked credential. */
  revoke(key: string): void {
    this.#feeds.revoke(key)
  }

  /** Ends the tunnel: the compute was removed. */
  dismiss(): void {
    this.#tunnels.dismiss(this.#id)
  }

  override async alarm(): Promise<void> {
    if (this.#feeds.size === 0) return
    await this.ctx.storage.setAlarm(Date.now() + lookMs)
    await this.#feeds.tellLoads()
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

  /** Sends a request to the compute, and its answer back, as they are. What has no answer is told by `faultHeader`. */
  async #ask(request: Request, path: string): Promise<Response> {
    const { method, signal, body } = request
    const headers = headersIn(request)
    try {
      if (!this.#tunnels.has(this.#id)) return faultOf({ kind: 'absent', message: notJoined })
      if (isUpgrade(request)) {
        const over = new AbortController()
        const opened = await this.#tunnels.sockets({ ...anyAddress, compute_id: this.#id })({
          ...{ path, headers, signal: over.signal },
        })
        if (isRefusal(opened)) return answerOf(opened)
        return upgrade(request, {
          open: (socket) => joinSockets(socket, opened),
          abandon: () => opened.close(1001, 'The client went away'),
        }) as Response
      }
      const rests = request.headers.has(restsHeader)
      const send = this.#tunnels.transport({ ...anyAddress, compute_id: this.#id })
      return answerOf(await send({ method, path, headers, signal, rests, body: method === 'GET' ? null : body }))
    } catch (error) {
      if (error instanceof ApiError) {
        const { status, message, word } = error
        return faultOf({ kind: 'refused', message, status, word, headers: { ...error.headers } })
      }
      return faultOf({ kind: error instanceof ConnectionLost ? 'lost' : 'absent', message: (error as Error).message })
    }
  }

  /** Tells the directory of the tunnel. A tunnel that it was not told of would be of no use: the compute joins again. */
  #tell(telling: () => Promise<unknown>): void {
    const told = this.#telling.run(telling).catch(() => this.#tunnels.close())
    this.ctx.waitUntil(told)
  }

  async #load(): Promise<Load | undefined> {
    return askLoad(this.#send, AbortSignal.timeout(loadMs)).catch(() => undefined)
  }
}

/** What a tunnel needs no address for. */
const anyAddress = { protocol: tunnelled, host: '', port: 0 } as const

const ours: ReadonlySet<string> = new Set([isolateHeader, restsHeader, 'upgrade', 'connection', 'host'])

function headersIn({ headers }: Request): Record<string, string> {
  const found: Record<string, string> = {}
  for (const [name, value] of headers) if (!ours.has(name) && !name.startsWith('sec-websocket-')) found[name] = value
  return found
}

function answerOf(answer: ComputeAnswer): Response {
  const headers = new Headers([...(answer.headers.entries?.() ?? [])])
  // No compute tells a fault of its tunnel itself.
  headers.delete(faultHeader)
  return new Response(answer.whole ?? answer.body, { status: answer.status, headers, encodeBody: 'manual' })
}

function faultOf(fault: TunnelFault): Response {
  return new Response(JSON.stringify(fault), { status: 502, headers: { [faultHeader]: fault.kind } })
}
