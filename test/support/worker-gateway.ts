import { once } from 'node:events'
import { onTestFinished } from 'vitest'
import { WebSocket } from 'ws'
import { type RunningWorker, runWorker } from '../../scripts/run-worker.ts'
import type { Compute } from '../../src/model/compute.ts'
import { succeeded } from './calls.ts'
import { freshDirectory } from './directory.ts'
import { oneRequestEach } from './one-request-each.ts'
import { workerBundle } from './worker-bundle.ts'

export const adminToken = 'the-admin-token-of-tests'
const bindings = { FLEET_KEY: 'a secret of tests that is long enough', ADMIN_TOKEN: adminToken }
const asAdmin = { authorization: `Bearer ${adminToken}` }

/** The gateway's Worker, in workerd. */
export class WorkerGateway {
  readonly data: string
  readonly #bindings: Record<string, string>
  readonly #buckets: readonly string[]
  #worker: RunningWorker | undefined

  private constructor(data: string, more: Record<string, string>, buckets: readonly string[] = []) {
    this.data = data
    this.#buckets = buckets
    this.#bindings = { ...bindings, ...more }
  }

  /** `buckets`: bindings of buckets of R2. */
  static async start(more: Record<string, string> = {}, buckets?: readonly string[]): Promise<WorkerGateway> {
    const gateway = new WorkerGateway(await freshDirectory(), more, buckets)
    onTestFinished(() => gateway.stop())
    await gateway.restart()
    return gateway
  }

  /** The same for the tests of a file together, with what it keeps in a directory of theirs. */
  static async startForAll(data: string, more: Record<string, string> = {}): Promise<WorkerGateway> {
    const gateway = new WorkerGateway(data, more)
    await gateway.restart()
    return gateway
  }

  get url(): string {
    return this.#worker?.url ?? ''
  }

  /** As the platform may do at any time; the same address and what is stored are found again. */
  async restart(): Promise<void> {
    const port = this.url === '' ? 0 : Number(new URL(this.url).port)
    await this.stop()
    const options = { host: '127.0.0.1', port, data: this.data, bindings: this.#bindings, buckets: this.#buckets }
    this.#worker = await runWorker({ ...options, script: await workerBundle() })
  }

  /** The keys in a bucket of R2. */
  async keysIn(bucket: string): Promise<string[]> {
    return (await this.#worker?.keysIn(bucket)) ?? []
  }

  async stop(): Promise<void> {
    await this.#worker?.close()
  }

  /** As the admin, unless the headers say who. By a connection of its own: workerd may just be closing one that was idle. */
  fetch(method: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Response> {
    return fetch(this.url + path, {
      ...{ method, dispatcher: oneRequestEach },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...init,
      headers: { ...asAdmin, ...init.headers },
    })
  }

  /** A request that must succeed; its JSON answer. */
  async call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await this.fetch(method, path, body)
    return succeeded(method, path, answer)
  }

  /** Resolves when the compute is shown as connected. */
  async untilConnected(id: string): Promise<Compute> {
    for (;;) {
      const all = await this.call<Compute[]>('GET', '/v2/computes')
      const found = all.find(({ compute_id }) => compute_id === id)
      if (found?.connected === true) return found
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  /** An open websocket. */
  async open(path: string, headers: Record<string, string> = asAdmin): Promise<OpenSocket> {
    const socket = new WebSocket(this.url.replace('http', 'ws') + path, { headers })
    onTestFinished(() => socket.terminate())
    const opened = new OpenSocket(socket)
    await once(socket, 'open')
    return opened
  }
}

/** A websocket and what came by it. */
export class OpenSocket {
  readonly #socket: WebSocket
  #text = ''
  #wake = () => {}

  constructor(socket: WebSocket) {
    this.#socket = socket
    socket.on('message', (data: Buffer) => {
      this.#text += data.toString('latin1')
      this.#wake()
    })
  }

  send(text: string): void {
    this.#socket.send(text)
  }

  /** Resolves when the text came. */
  async shows(text: string): Promise<void> {
    while (!this.#text.includes(text))
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    this.#text = this.#text.slice(this.#text.indexOf(text) + text.length)
  }

  /** What came since it was last asked for this, or waited for something. */
  takeText(): string {
    const text = this.#text
    this.#text = ''
    return text
  }

  /** Resolves with the code, when the other end has closed it. */
  async closed(): Promise<number> {
    const [code] = (await once(this.#socket, 'close')) as [number]
    return code
  }

  async close(): Promise<void> {
    const closed = once(this.#socket, 'close')
    this.#socket.close(1000)
    await closed
  }
}
