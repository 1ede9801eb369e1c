import { once } from 'node:events'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse,
} from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished } from 'vitest'
import { httpTransport } from '../../runtime/node/service/fleet/http-transport.ts'
import { socketTransport } from '../../runtime/node/service/fleet/socket-transport.ts'
import type { FleetTimeouts } from '../../src/compute/remote/timeouts.ts'
import { forward } from '../../src/fleet/forward/forward.ts'
import { Fleet, type FleetEvent, type FleetOptions } from '../../src/fleet/pool/fleet.ts'
import { responseOf } from '../../src/lib/http/relayed-answer.ts'
import type { Compute, ComputeCreate } from '../../src/model/compute.ts'
import { MemoryJoinTokens } from './join-tokens.ts'
import { MemoryRegistry } from './memory-registry.ts'

export const version = '1.4.2'

/** As usual, only sooner; nothing is given up in a test that does not say so. */
const soon: Partial<FleetTimeouts> = { connectMs: 5000, silenceMs: 60_000, retryMs: [20, 100], steadyMs: 0 }

export interface OpenFleet {
  readonly fleet: Fleet
  readonly registry: MemoryRegistry
  /** Everything that was told. */
  readonly events: FleetEvent[]
  /** Resolves when the compute is shown so. */
  until(id: string, shown: Partial<Compute>): Promise<Compute>
}

/** A fleet over real sockets, without a compute of its own. */
export async function openFleet(options: Partial<FleetOptions> = {}): Promise<OpenFleet> {
  const registry = (options.registry ?? new MemoryRegistry()) as MemoryRegistry
  const { transport, close } = httpTransport()
  const { timeouts, ...rest } = options
  const fleet = await Fleet.open({
    transport,
    sockets: socketTransport,
    version,
    joinTokens: new MemoryJoinTokens(),
    ...rest,
    registry,
    timeouts: { ...soon, ...timeouts },
  })
  onTestFinished(async () => {
    await fleet.close()
    close()
  })
  const events: FleetEvent[] = []
  fleet.listen((event) => void events.push(event))
  return {
    fleet,
    registry,
    events,
    async until(id, shown) {
      for (;;) {
        const next = new Promise<void>((resolve) => {
          const stop = fleet.listen(() => {
            stop()
            resolve()
          })
        })
        const compute = await fleet.get(id)
        if (Object.entries(shown).every(([name, value]) => compute[name as keyof Compute] === value)) return compute
        await next
      }
    },
  }
}

type Answer = (req: IncomingMessage, res: ServerResponse) => void

/** Something that computes can be taken for: a real server, whose answers the test gives. */
export class StandIn {
  readonly #server: Server
  readonly #feeds = new Set<ServerResponse>()
  /** What it was asked, in order. */
  readonly asked: string[] = []
  /** The headers of what it was asked, in the same order. */
  readonly headers: IncomingHttpHeaders[] = []
  capabilities: Answer = (_, res) => json(res, 200, { version, platform: 'linux', node_types: ['pc'] })
  /** Everything but capabilities and feed. */
  answer: Answer = (_, res) => json(res, 404, { message: 'There is nothing', status: 404 })
  feed: Answer = (_, res) => {
    res.writeHead(200, { 'Content-Type': 'application/json' })
    this.#feeds.add(res)
    res.once('close', () => this.#feeds.delete(res))
    this.ping(3, 40)
  }
  port = 0

  private constructor() {
    this.#server = createServer((req, res) => {
      this.asked.push(`${req.method} ${req.url}`)
      this.headers.push(req.headers)
      if (req.url === '/v2/compute/capabilities') return this.capabilities(req, res)
      if (req.url === '/v2/compute/notifications') return this.feed(req, res)
      this.answer(req, res)
    })
  }

  static async start(): Promise<StandIn> {
    const it = new StandIn()
    onTestFinished(() => it.stop())
    await it.listen()
    return it
  }

  /** On the port it had before, if it had one. */
  async listen(): Promise<void> {
    this.#server.listen(this.port, '127.0.0.1')
    await once(this.#server, 'listening')
    this.port = (this.#server.address() as AddressInfo).port
  }

  /** As when its process is killed. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return
    const closed = once(this.#server, 'close')
    this.#server.close()
    this.#server.closeAllConnections()
    await closed
  }

  get openFeeds(): number {
    return this.#feeds.size
  }

  ping(cpu: number, memory: number): void {
    this.say({ action: 'ping', event: { cpu_usage_percent: cpu, memory_usage_percent: memory } })
  }

  /** A line of its feeds. */
  say(line: unknown): void {
    for (const feed of this.#feeds) feed.write(`${typeof line === 'string' ? line : JSON.stringify(line)}\n`)
  }

  /** Ends its feeds, and nothing else. */
  endFeeds(): void {
    for (const feed of this.#feeds) feed.end()
  }

  /** What it is registered with. */
  input(more: Partial<ComputeCreate> = {}): ComputeCreate {
    return { compute_id: 'one', protocol: 'http', host: '127.0.0.1', port: this.port, ...more }
  }
}

export function json(res: ServerResponse, status: number, body: unknown): void {
  res.writeHead(status, { 'Content-Type': 'application/json' })
  res.end(JSON.stringify(body))
}

/** The port of a server that begins to listen on this machine. */
export async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}

/** A port of this machine at which nothing listens. */
export async function unusedPort(): Promise<number> {
  const server = createServer()
  const port = await listening(server)
  server.close()
  await once(server, 'close')
  return port
}

/** The ApiError that something fails with. */
export async function faultOf(work: Promise<unknown>): Promise<{ status: number; message: string; headers: object }> {
  const error = await work.then(
    () => undefined,
    (it: unknown) => it,
  )
  expect(error).toMatchObject({ name: 'ApiError' })
  return error as { status: number; message: string; headers: object }
}

export interface Bed extends OpenFleet {
  readonly compute: StandIn
  /** Hands on a request for `path` with the query of `init.query`. */
  send(path: string, init?: RequestInit & { query?: string }): Promise<Response>
}

/** A compute with credentials in a fleet. */
export async function bed(): Promise<Bed> {
  const compute = await StandIn.start()
  const open = await openFleet()
  await open.fleet.create(compute.input({ user: 'anna', password: 'geheim' }))
  return {
    ...open,
    compute,
    async send(path, { query = '', ...init } = {}) {
      const request = new Request(`http://us/v2/computes/one/${path}${query}`, {
        duplex: 'half',
        ...init,
      } as RequestInit)
      const caller = { isDirect: true, mayExecute: false }
      const answer = await forward(open.fleet, 'one', { request, path: `/v2/compute/${path}`, caller })
      return 'content' in answer ? responseOf(answer) : answer
    },
  }
}
