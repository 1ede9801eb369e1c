import { ComputeObject as RealCompute } from '../../../runtime/worker/compute/compute-object.ts'
import { DirectoryObject as RealObject } from '../../../runtime/worker/directory/directory-object.ts'
import { PlacementTable } from '../../../runtime/worker/directory/placement-table.ts'
import { RegistryTable } from '../../../runtime/worker/directory/registry-table.ts'
import { TokenTable } from '../../../runtime/worker/directory/token-table.ts'
import { tokenKey } from '../../../runtime/worker/shared/auth.ts'
import type { Env } from '../../../runtime/worker/shared/env.ts'
import { Objects } from '../../../runtime/worker/shared/objects.ts'
import { Sealer } from '../../../runtime/worker/shared/sealed.ts'
import real from '../../../runtime/worker/worker.ts'
import type { ComputeRecord } from '../../../src/model/compute.ts'
import { Tokens } from '../../../src/server/auth/tokens.ts'
import { barePaths } from './bare.ts'

export { ProjectObject } from '../../../runtime/worker/lab/project-object.ts'

/** What the bench asks by `POST /bench`; every member is done once for each of its items, one after the other. */
export interface BenchOrder {
  readonly computes?: readonly ComputeRecord[]
  /** Project -> compute. */
  readonly fill?: readonly (readonly [project: string, compute: string])[]
  /** How many tokens of users are made, without a call for each. */
  readonly tokens?: number
  /** By the object itself, without a call for each. */
  readonly read?: readonly string[]
  readonly find?: readonly string[]
  readonly place?: readonly string[]
  readonly forget?: readonly string[]
  /** As isolates ask for computes. */
  readonly known?: readonly string[]
  /** The object is to begin anew. */
  readonly evict?: boolean
  /** Where the bare Worker and the bare object send what they are asked. */
  readonly bare?: string
}

let compute = ''

/** As the gateway asks a compute. */
const headersToCompute = {
  ...{
    'accept-encoding': 'identity',
    'x-patchbay-via': 'user',
    'x-request-id': '12345678-1',
    'x-patchbay-by': 'bench',
  },
  'x-patchbay-late': '1',
}
/** As many as the gateway says itself; it leaves out the Date of the compute. */
const headersToClient = {
  ...{ Server: 'patchbay', 'X-Request-Id': '12345678-1', 'X-ROUTE': '/v2/compute', 'X-Patchbay-Compute': 'near' },
  'Content-Security-Policy': "default-src 'none'; sandbox",
}

/** Hands a request on, and looks at nothing. */
async function handOn(request: Request, mark: string): Promise<Response> {
  const { method, url, body } = request
  const length = request.headers.get('content-length')
  const headers = length === null ? headersToCompute : { ...headersToCompute, 'content-length': length }
  const path = url.slice(url.indexOf(mark) + mark.length)
  const answer = await fetch(compute + path, { method, headers, redirect: 'manual', ...(body !== null && { body }) })
  const given = new Response(answer.body, answer)
  given.headers.delete('Date')
  for (const [name, value] of Object.entries(headersToClient)) given.headers.set(name, value)
  return given
}

/** The object of a compute; that of none hands on by itself. */
export class ComputeObject extends RealCompute {
  override async fetch(request: Request): Promise<Response> {
    return request.url.includes(barePaths.object) ? handOn(request, barePaths.object) : super.fetch(request)
  }
}

/** The object of the Worker, and what fills its tables. */
export class DirectoryObject extends RealObject {
  async register(records: readonly ComputeRecord[]): Promise<void> {
    const table = new RegistryTable(this.ctx.storage.sql, new Sealer(this.env.FLEET_KEY ?? ''), () => {})
    for (const record of records) await table.save(record)
  }

  async fill(places: readonly (readonly [string, string])[]): Promise<void> {
    const table = new PlacementTable(this.ctx.storage.sql)
    for (const [project, compute] of places) await table.put(project, compute)
  }

  async makeTokens(count: number): Promise<void> {
    const store = new TokenTable(
      this.ctx.storage.sql,
      () => {},
      () => {},
    )
    const tokens = new Tokens({ store, key: tokenKey(this.env) })
    for (let made = 0; made < count; made++) await tokens.create({ name: `token ${made}`, role: 'read' })
  }

  async read(projects: readonly string[]): Promise<void> {
    const table = new PlacementTable(this.ctx.storage.sql)
    for (const project of projects) await table.get(project)
  }

  /** As the platform may do at any time. */
  evict(): void {
    this.ctx.abort('The bench wants it to begin anew')
  }
}

/** The Worker, and what an isolate of it asks its object, so often that it can be measured from outside. */
export default {
  async fetch(request, env) {
    const { url } = request
    if (url.includes(barePaths.worker)) return handOn(request, barePaths.worker)
    if (url.includes(barePaths.object)) return env.COMPUTES.getByName('bare').fetch(request)
    if (!url.endsWith('/bench')) return real.fetch(request, env)
    const order: BenchOrder = await request.json()
    if (order.bare !== undefined) compute = order.bare
    const object = (env.DIRECTORIES as unknown as DurableObjectNamespace<DirectoryObject>).getByName('fleet')
    if (order.computes !== undefined) await object.register(order.computes)
    if (order.fill !== undefined) await object.fill(order.fill)
    if (order.tokens !== undefined) await object.makeTokens(order.tokens)
    if (order.read !== undefined) await object.read(order.read)
    for (const project of order.find ?? []) await object.placementOf(project)
    for (const project of order.place ?? []) await object.place(project, 'c1')
    for (const project of order.forget ?? []) await object.forget(project)
    const objects = new Objects(env)
    let last: unknown
    for (const id of order.known ?? []) last = await objects.compute(id).known()
    if (order.evict) await object.evict().catch(() => {})
    return Response.json({ bytes: last === undefined ? 0 : new TextEncoder().encode(JSON.stringify(last)).length })
  },
} satisfies ExportedHandler<Env>
