import { DurableObject } from 'cloudflare:workers'
import { type App, createApp } from '../../src/app.ts'
import { Labs } from '../../src/controller/labs.ts'
import type { LabStore } from '../../src/controller/store.ts'
import { EventLog } from '../../src/events/event-log.ts'
import { createGateway } from '../../src/gateway/gateway-agent.ts'
import { RequestMetrics } from '../../src/http/request-metrics.ts'
import { Admissions, projectHeader } from './admitted.ts'
import { openAuth } from './auth.ts'
import { aliasesOf, type Env } from './env.ts'
import { commonOptions, gatewayHost } from './host.ts'
import { LabTable } from './lab-table.ts'
import { objectComputes } from './object-computes.ts'
import { upgrade } from './sockets.ts'
import { heard } from './told.ts'

/** Events kept for feeds that are opened again, and feeds of a lab. */
const history = 1000
const maxFeeds = 64
/** How often the object of the fleet is told what was answered here, ms. */
const countMs = 5000

/** The object of one lab: its document, its edits and its feed. Computes, names and templates it asks of the object of the fleet. */
export class ProjectObject extends DurableObject<Env> {
  readonly #admissions: Admissions
  readonly #requests = new RequestMetrics()
  #countedAt = Date.now()
  #app: Promise<App> | undefined

  constructor(state: DurableObjectState, env: Env) {
    super(state, env)
    this.#admissions = new Admissions(env)
  }

  override async fetch(request: Request): Promise<Response> {
    const admitted = await this.#admissions.read(request)
    const id = request.headers.get(projectHeader)
    if (admitted === undefined || id === null) throw new Error('Only isolates ask the object of a lab')
    this.#app ??= this.#open(id).catch((error: unknown) => {
      this.#app = undefined
      throw error
    })
    const answer = await (await this.#app).fetch(request, admitted)
    if (Date.now() - this.#countedAt > countMs) this.#count()
    return answer
  }

  #count(): void {
    this.#countedAt = Date.now()
    const answered = this.#requests.take()
    const counted = this.env.FLEET.getByName('fleet')
      .count(answered)
      .catch(() => this.#requests.add(answered))
    this.ctx.waitUntil(counted)
  }

  async #open(id: string): Promise<App> {
    const { env } = this
    const fleet = () => env.FLEET.getByName('fleet')
    const labs = await Labs.start({
      store: storeOf(id, new LabTable(this.ctx.storage), env),
      computes: objectComputes(env),
      events: new EventLog({ history, feeds: () => maxFeeds }, () => ({
        cpu_usage_percent: 0,
        memory_usage_percent: 0,
      })),
      only: id,
      directory: {
        put: (project, head) => heard(fleet().putLab(project, JSON.stringify(head))),
        remove: (project) => heard(fleet().removeLab(project)),
      },
      // biome-ignore lint/suspicious/noConsole: the log of a Worker
      warn: (message) => console.warn(message),
    })
    void labs.restore()
    const placements = { get: async () => undefined, put: async () => {}, remove: async () => {} }
    const members = { all: async () => [], find: async () => undefined, watch: () => () => {} }
    const gateway = createGateway({ members, placements, host: gatewayHost() })
    const { access } = openAuth(env, async () => undefined)
    return createApp({
      ...commonOptions,
      ...{ aliases: aliasesOf(env), agent: gateway.agent, labs, access, upgrade, requests: this.#requests },
    })
  }
}

/** What all labs have in common. */
const shared: ReadonlySet<string> = new Set(['templates', 'symbols'])

/** The document is here; templates and symbols are with the object of the fleet. */
function storeOf(id: string, table: LabTable, env: Env): LabStore {
  const fleet = () => env.FLEET.getByName('fleet')
  return {
    heads: () => table.heads(),
    async load(scope) {
      if (!shared.has(scope)) return table.load(scope)
      const entries = await heard<[string, unknown][] | undefined>(fleet().labScope(scope))
      return entries && new Map(entries)
    },
    async save(scope, changes) {
      if (!shared.has(scope)) return table.save(scope, changes)
      const entries = [...changes].map(([key, value]) => [key, value ?? null])
      await heard(fleet().saveLabScope(scope, JSON.stringify(entries)))
    },
    remove: (scope) => (scope === id ? table.drop() : table.remove(scope)),
  }
}
