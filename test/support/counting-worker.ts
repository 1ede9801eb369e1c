import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { Miniflare } from 'miniflare'
import { onTestFinished } from 'vitest'
import { durableObjects, modulesOf, workerRules } from '../../scripts/run-worker.ts'
import type { TokenRecord } from '../../src/model/access/access-token.ts'
import { succeeded } from './calls.ts'
import { oneRequestEach } from './one-request-each.ts'
import { workerBundle } from './worker-bundle.ts'

const adminToken = 'the-admin-token-of-tests'
export const asAdmin = { authorization: `Bearer ${adminToken}` }
export const fleetKey = 'a secret of tests that is long enough'

/**
 * The Worker, which counts what isolates and the objects of labs and computes ask objects, and how often that of the fleet began. A token can
 * be put as an older version kept it, and the object of the fleet can end while it is asked.
 */
const front = `import gateway, {
  ComputeObject as RealCompute, DirectoryObject as Real, ProjectObject as RealProject,
} from './worker.js'
const counts = {
  calls: {}, computes: {}, projects: {}, ofLabs: {}, ofComputes: {}, ofDirectory: {}, byCompute: {}, began: 0,
}
const count = (calls, key) => { calls[key] = (calls[key] ?? 0) + 1 }
const counting = (stub, called) => new Proxy({}, {
  get: (_, name) => (...given) => {
    called(name)
    return stub[name](...given)
  },
})
const counted = (namespace, calls, prefix = '', byObject = {}) => {
  const get = (id, ...given) => counting(namespace.get(id, ...given), (name) => {
    count(calls, prefix + name)
    if (name === 'fetch') count(byObject, id.name)
  })
  const idFromName = (name) => namespace.idFromName(name)
  return { get, idFromName, getByName: (name, ...given) => get(idFromName(name), ...given) }
}
let known
let isEnding = false
export class ComputeObject extends RealCompute {
  constructor(state, env) {
    super(state, { ...env, DIRECTORIES: counted(env.DIRECTORIES, counts.ofComputes, 'directory ') })
  }
  async alarms(times) {
    for (let alarm = 0; alarm < times; alarm++) await this.alarm()
  }
}
export class ProjectObject extends RealProject {
  constructor(state, env) {
    super(state, {
      ...env,
      DIRECTORIES: counted(env.DIRECTORIES, counts.ofLabs, 'directory '),
      COMPUTES: counted(env.COMPUTES, counts.ofLabs, 'computes '),
    })
  }
}
export class DirectoryObject extends Real {
  constructor(state, env) {
    super(state, { ...env, COMPUTES: counted(env.COMPUTES, counts.ofDirectory, 'computes ') })
    counts.began += 1
  }
  async fetch(request) {
    if (isEnding) this.ctx.abort('The object ends')
    return super.fetch(request)
  }
  keepToken(record) {
    this.ctx.storage.sql.exec('INSERT INTO tokens VALUES (?, ?)', record.token_id, JSON.stringify(record))
  }
}
export default {
  async fetch(request, env, context) {
    const { pathname } = new URL(request.url)
    if (pathname === '/test/counts') return Response.json(counts)
    if (pathname === '/test/alarms') {
      const { computes, times } = await request.json()
      await Promise.all(computes.map((id) => env.COMPUTES.getByName(id).alarms(times)))
      return new Response(null, { status: 204 })
    }
    if (pathname === '/test/ending') {
      isEnding = await request.json()
      return new Response(null, { status: 204 })
    }
    if (pathname === '/test/token') {
      await env.DIRECTORIES.getByName('fleet').keepToken(await request.json())
      return new Response(null, { status: 204 })
    }
    known ??= {
      ...env,
      DIRECTORIES: counted(env.DIRECTORIES, counts.calls),
      COMPUTES: counted(env.COMPUTES, counts.computes, '', counts.byCompute),
      PROJECTS: counted(env.PROJECTS, counts.projects),
    }
    return gateway.fetch(request, known, context)
  },
}`

type Calls = Readonly<Record<string, number>>

export interface Counts {
  /** Calls of isolates, by the name of the method: of the directory, of those of computes, and of those of labs. */
  readonly calls: Calls
  readonly computes: Calls
  readonly projects: Calls
  /** Calls of the objects of labs, by the kind of object and the name of the method. */
  readonly ofLabs: Calls
  /** Calls of the objects of computes, likewise. */
  readonly ofComputes: Calls
  /** Calls of isolates of each object of a compute, by its name. */
  readonly byCompute: Calls
  /** Calls of the directory. */
  readonly ofDirectory: Calls
  /** How often the program of the directory began. */
  readonly began: number
}

/** The gateway's Worker in workerd, which tells what its object was asked. */
export class CountingWorker {
  readonly url: string
  /** Ends it. */
  readonly close: () => Promise<void>

  private constructor(url: string, close: () => Promise<void>) {
    this.url = url
    this.close = close
  }

  static async start(more: Record<string, string> = {}): Promise<CountingWorker> {
    const worker = await CountingWorker.startForAll(more)
    onTestFinished(() => worker.close())
    return worker
  }

  /** The same for the tests of a file together, which call `close` themselves. */
  static async startForAll(more: Record<string, string> = {}): Promise<CountingWorker> {
    const worker = new Miniflare({
      ...modulesOf(await workerBundle(), front),
      ...(await workerRules()),
      bindings: { FLEET_KEY: fleetKey, ADMIN_TOKEN: adminToken, ...more },
      durableObjects,
    })
    return new CountingWorker((await worker.ready).href.replace(/\/$/, ''), () => worker.dispose())
  }

  async counts(): Promise<Counts> {
    return (await (await fetch(`${this.url}/test/counts`)).json()) as Counts
  }

  /** Has the alarm of each of these computes ring so many times. */
  async alarms(computes: readonly string[], times: number): Promise<void> {
    await fetch(`${this.url}/test/alarms`, { method: 'POST', body: JSON.stringify({ computes, times }) })
  }

  async keepToken(record: TokenRecord): Promise<void> {
    await fetch(`${this.url}/test/token`, { method: 'POST', body: JSON.stringify(record) })
  }

  /** Whether the program of the directory ends at each request from here on, as it does now and then at a deployment. */
  async ending(isEnding: boolean): Promise<void> {
    await fetch(`${this.url}/test/ending`, { method: 'POST', body: JSON.stringify(isEnding) })
  }

  /** The status of an answer; 101 when a websocket opens, which is closed then. */
  async status(method: string, path: string, headers: Record<string, string> = {}, body = ''): Promise<number> {
    const asked = httpRequest(this.url + path, { method, headers, agent: false })
    asked.end(body)
    const answered = once(asked, 'response').then(([response]) => response as IncomingMessage)
    const upgraded = once(asked, 'upgrade').then(([response, socket]) => {
      socket.destroy()
      return response as IncomingMessage
    })
    upgraded.catch(() => {})
    answered.catch(() => {})
    const response = await Promise.race([answered, upgraded])
    response.resume()
    asked.destroy()
    return response.statusCode ?? 0
  }

  /** A request of the admin that must succeed; its JSON answer. */
  async call<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const init = {
      method,
      headers: asAdmin,
      dispatcher: oneRequestEach,
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }
    const answer = await fetch(this.url + path, init)
    return succeeded(method, path, answer)
  }
}
