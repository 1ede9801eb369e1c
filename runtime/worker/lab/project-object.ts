import { DurableObject } from 'cloudflare:workers'
import { type App, createApp } from '../../../src/app.ts'
import { EventLog } from '../../../src/fleet/events/event-log.ts'
import { copyLab } from '../../../src/labs/archives/duplicate.ts'
import type { StudentLabWork } from '../../../src/labs/classes/student-lab.ts'
import { decodeEntries, encodeEntries, recordStorage } from '../../../src/labs/lab/document-codec.ts'
import { Lab } from '../../../src/labs/lab/lab.ts'
import type { LabDirectory, LabStorage } from '../../../src/labs/lab/store.ts'
import type { Labs } from '../../../src/labs/service.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { conflict } from '../../../src/lib/errors/api-error.ts'
import type { Caller } from '../../../src/model/access/caller.ts'
import type { LabJob } from '../../../src/model/lab/job.ts'
import type { LabProject } from '../../../src/model/lab/project.ts'
import { composeLab } from '../../../src/server/compose.ts'
import { RequestMetrics } from '../../../src/server/http/request-metrics.ts'
import { Admissions, projectHeader } from '../shared/admissions.ts'
import { openAuth } from '../shared/auth.ts'
import type { Env } from '../shared/env.ts'
import { commonAdmission, commonOptions, gatewayHost, reportDefect, warn } from '../shared/host.ts'
import { LabTable } from '../shared/lab-table.ts'
import { objectLimits } from '../shared/object-limits.ts'
import { type ObjectReply, replyOf, resultOf } from '../shared/object-reply.ts'
import { Objects } from '../shared/objects.ts'
import { decode, type Encoded, encode } from '../shared/rpc-json.ts'
import { ArchiveBucket } from './archive-bucket.ts'
import { callerName, runAs } from './caller.ts'
import { objectComputes } from './object-computes.ts'
import type { LabCopy, LabRpc } from './rpc.ts'
import { TableZipArchives } from './zip-archives.ts'

/** Events that are stored for resumed feeds, and feeds of a lab. */
const history = 1000
const maxFeeds = 64
/** Time between two reports of request counts to the directory, ms. */
const countMs = 5000

/** Delay between an edit and the update of the head in the directory, ms. */
const headMs = 250
/** Delay of the alarm that removes an import or a copy which broke off, ms after its begin. */
const lookAgainMs = 60 * 60_000

/** Least time between two messages about what a move does, ms. */
const showMs = 250

/** Least time until an alarm, ms. */
const leastMs = 1000

interface Opened {
  readonly app: App
  readonly labs: Labs
  /** Settled when an import or a copy that broke off was removed, or could not be. */
  readonly reopened: Promise<void>
}

/** The object of one lab: document, edits, feed and jobs. Computes, names and templates come from the directory. */
export class ProjectObject extends DurableObject<Env> implements LabRpc {
  readonly #admissions: Admissions
  readonly #objects: Objects
  readonly #archiveStore: ArchiveBucket | undefined
  readonly #requests = new RequestMetrics()
  #countedAt = Date.now()
  #opened: Promise<Opened> | undefined
  /** The head that is sent soon. */
  #head: unknown
  /** Abort the moves of the lab, by the compute that it leaves. */
  readonly #moves = new Map<string, AbortController>()

  constructor(state: DurableObjectState, env: Env) {
    super(state, env)
    this.#admissions = new Admissions(env)
    this.#objects = Objects.around(env, state)
    this.#archiveStore = env.ARCHIVES && new ArchiveBucket(env.ARCHIVES, this.#objects.organization)
  }

  override async fetch(request: Request): Promise<Response> {
    const admitted = await this.#admissions.read(request)
    const id = request.headers.get(projectHeader)
    if (admitted === undefined || id === null) throw new Error('Only isolates ask the object of a lab')
    const { app } = await this.#open(id)
    const answer = await app.fetch(request, admitted)
    if (Date.now() - this.#countedAt > countMs) this.#count()
    return answer
  }

  #count(): void {
    this.#countedAt = Date.now()
    const answered = this.#requests.drain()
    const counted = this.#objects
      .directory()
      .count(answered)
      .catch(() => this.#requests.add(answered))
    this.ctx.waitUntil(counted)
  }

  async computeOf(id: string, part: string): Promise<string | undefined> {
    return (await this.#open(id)).labs.documents.computeOf(id, part)
  }

  async jobs(): Promise<Encoded<LabJob[]>> {
    return encode((await this.#opened)?.labs.jobs.list() ?? [])
  }

  async removeJob(id: string): Promise<void> {
    ;(await this.#opened)?.labs.jobs.remove(id)
  }

  copyOf(id: string, { source, entries, input, caller }: LabCopy): Promise<ObjectReply<LabProject>> {
    return replyOf(async () => {
      const { labs } = await this.#open(id)
      await this.#lookAgain()
      const document = decodeEntries(new Map(decode(entries)))
      const store = recordStorage(storeOf(source, new LabTable(this.ctx.storage), this.#objects))
      const lab = new Lab(source, document, store, labs.events)
      return copyLab(labs, lab, input, (computeId) => labs.computes.agent(computeId, caller))
    })
  }

  async discard(): Promise<void> {
    await this.#archiveStore?.remove(Objects.ownIdOf(this.ctx))
    await this.ctx.storage.deleteAlarm()
    await this.ctx.storage.deleteAll()
  }

  async end(): Promise<void> {
    this.ctx.abort('The organization was deleted')
  }

  move(id: string, from: string, show: (doing: string) => Promise<void>): Promise<ObjectReply<string>> {
    return replyOf(async () => {
      const cancel = new AbortController()
      // There is one move: a compute is drained by one job at a time.
      this.#moves.set(from, cancel)
      let shownAt = 0
      const shown = (doing: string) => {
        if (Date.now() - shownAt < showMs) return
        shownAt = Date.now()
        show(doing).catch(ignore('the job ended with its program'))
      }
      try {
        const { labs } = await this.#open(id)
        // When this program ends during the move, the alarm starts the next one, which removes the rest.
        await this.#lookAgain()
        const agentFor = (computeId: string) => labs.computes.agent(computeId)
        return await labs.move(id, from, { agentFor, signal: cancel.signal, show: shown })
      } finally {
        this.#moves.delete(from)
      }
    })
  }

  workOnStudentLab(id: string, work: Encoded<StudentLabWork>, caller: Caller): Promise<ObjectReply> {
    return replyOf(async () => {
      const { labs } = await this.#open(id)
      const agentFor = (computeId: string) => labs.computes.agent(computeId, caller)
      await runAs(caller, () => labs.workOnStudentLab(id, decode(work), { agentFor, caller }))
    })
  }

  async cancelMove(from: string): Promise<void> {
    this.#moves.get(from)?.abort(conflict('The move was cancelled'))
  }

  /** The alarm: removes the remains of an import or a copy that broke off, stops the lab at its time, and tries again to back it up. */
  override async alarm(): Promise<void> {
    await this.#removeRemains()
    await (await this.#opened)?.labs.timers.runDue()
  }

  async #removeRemains(): Promise<void> {
    if (this.#opened !== undefined) return this.#lookAgain()
    const id = new LabTable(this.ctx.storage).only()
    if (id === undefined) return this.ctx.storage.deleteAll()
    await (await this.#open(id)).reopened
    // A compute with a part of the lab is not connected: try again later.
    if (new LabTable(this.ctx.storage).only(true) !== undefined) await this.#lookAgain()
  }

  async #lookAgain(): Promise<void> {
    await this.#wakeAt(Date.now() + lookAgainMs)
  }

  /** Sets the alarm to a time, ms since 1970, unless it is earlier already. */
  async #wakeAt(time: number): Promise<void> {
    const known = await this.ctx.storage.getAlarm()
    if (known === null || known > time) await this.ctx.storage.setAlarm(time)
  }

  /** Sends the head of the lab to the directory; edits within `headMs` are sent together. */
  #reportHead(id: string, head: unknown): void {
    const isDue = this.#head !== undefined
    this.#head = head
    if (isDue || head === undefined) return
    setTimeout(() => {
      const now = this.#head
      this.#head = undefined
      if (now === undefined) return
      const kept = this.#objects.directory().putLab(id, encode(now))
      this.ctx.waitUntil(kept.catch(ignore('the next edit sends the head again')))
    }, headMs)
  }

  #open(id: string): Promise<Opened> {
    this.#opened ??= this.#start(id).catch((error: unknown) => {
      this.#opened = undefined
      throw error
    })
    return this.#opened
  }

  async #start(id: string): Promise<Opened> {
    const { env } = this
    const objects = this.#objects
    const { labs, agent, services } = await composeLab({
      id,
      directory: directoryOf(objects),
      host: gatewayHost(),
      store: storeOf(id, new LabTable(this.ctx.storage), objects, (head) => this.#reportHead(id, head)),
      computes: objectComputes(env, objects),
      events: new EventLog({ history, feeds: () => maxFeeds }, undefined, callerName),
      limits: () => objectLimits,
      zip: new TableZipArchives(this.ctx.storage.sql, () => this.#lookAgain()),
      archiveStore: this.#archiveStore,
      copy: (lab, input, caller) => {
        const copy = input.project_id ?? crypto.randomUUID()
        const entries = encode([...encodeEntries(lab.document.entries())])
        return resultOf(objects.project(copy).copyOf(copy, { source: lab.id, entries, input, caller }))
      },
      wakeAt: (time) => this.ctx.waitUntil(this.#wakeAt(Math.max(time, Date.now() + leastMs))),
      warn,
      report: reportDefect,
    })
    const reopened = labs.lifecycle.reopenAfterStart()
    const { access } = openAuth(env, async () => undefined)
    const common = commonOptions(env, objects.named)
    const app = createApp({
      ...common,
      runtime: { ...common.runtime, runAs },
      agent,
      services,
      admission: { ...commonAdmission, access },
      requests: this.#requests,
    })
    return { app, labs, reopened }
  }
}

/** The directory of all labs, by calls of its object. */
const directoryOf = (objects: Objects): LabDirectory => ({
  put: (project, head, scope) => resultOf(objects.directory().putLab(project, encode(head), scope && [...scope])),
  remove: (project) => resultOf(objects.directory().removeLab(project)),
  present: async (project, names) => objects.directory().present(project, [...names]),
  job: async (job, project) => objects.directory().noteJob(job, project),
  freeName: (name) => resultOf(objects.directory().freeLabName(name)),
})

/** Scopes of the store that all labs share. */
const shared: ReadonlySet<string> = new Set(['templates', 'symbols'])

/** The store of one lab: its document is in this object, templates and symbols are in the directory. */
function storeOf(
  id: string,
  table: LabTable,
  objects: Objects,
  reportHead: (head: unknown) => void = () => {},
): LabStorage {
  return {
    heads: () => table.heads(),
    async load(scope) {
      if (!shared.has(scope)) return table.load(scope)
      const entries = await resultOf(objects.directory().labScope(scope))
      return entries && new Map(entries)
    },
    async save(scope, changes) {
      if (!shared.has(scope)) {
        await table.save(scope, changes)
        const head = changes.get('project')
        if (scope === id && head !== undefined) reportHead(head)
        return
      }
      const entries = [...changes].map(([key, value]) => [key, value ?? null] as const)
      await resultOf(objects.directory().saveLabScope(scope, encode(entries)))
    },
    remove(scope) {
      if (scope !== id) return table.remove(scope)
      reportHead(undefined)
      return table.drop()
    },
  }
}
