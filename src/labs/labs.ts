import type { EventLog } from '../fleet/events/event-log.ts'
import { retryAfter, silentMs } from '../fleet/members/fan-out.ts'
import type { ProjectQuota } from '../fleet/placement/project-quota.ts'
import type { FeedRequest } from '../host-agent.ts'
import { onAbort } from '../lib/async/abort.ts'
import { ignore } from '../lib/async/ignore.ts'
import { KeyedMutex } from '../lib/async/keyed-mutex.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { withTimeout } from '../lib/async/timeout.ts'
import { ApiError, badRequest, conflict, ignoreNotFound, retryLater } from '../lib/errors/api-error.ts'
import { requireNoSeparator } from '../lib/errors/project-name.ts'
import { compareText } from '../lib/text/compare-text.ts'
import type { ProjectScope } from '../model/access/project-scope.ts'
import type { FeedItem } from '../model/event.ts'
import { type LabProject, type LabProjectCreate, type LabProjectUpdate, labSettings } from '../model/lab/project.ts'
import type { LabTemplate } from '../model/lab/template.ts'
import type { Project } from '../model/project.ts'
import { isUuid } from '../model/schema/fields.ts'
import { LabAccess } from './access.ts'
import { type ArchiveLimits, type ArchiveSource, LabArchiver } from './archiver.ts'
import { exportLab } from './archives/archive.ts'
import type { ArchiveStore } from './archives/archive-store.ts'
import type { HostProjects, LabArchives } from './archives/archives.ts'
import type { CopyLab } from './archives/duplicate.ts'
import { AutoStart } from './autostart.ts'
import type { ComputeClients } from './computes/compute-client.ts'
import type { LabComputes } from './computes/computes.ts'
import { LabDocuments } from './documents.ts'
import { type JobList, Jobs } from './jobs/jobs.ts'
import { Changes, noSizes, type ProjectRecord } from './lab/document.ts'
import { recordStorage } from './lab/document-codec.ts'
import { withDefaults, withoutNulls } from './lab/fields.ts'
import { requireSmallHead } from './lab/head-size.ts'
import type { EditStep } from './lab/history.ts'
import type { Lab } from './lab/lab.ts'
import { defaultLabLimits, type LabLimits } from './lab/lab-limits.ts'
import { saveOrRevert } from './lab/save-or-revert.ts'
import { SharedDocument } from './lab/shared-document.ts'
import { type LabDirectory, type LabStorage, UnreadableLab } from './lab/store.ts'
import { LabUses } from './lab-uses.ts'
import { forgetOn, type MoveOptions, moveLab, recoverMove } from './moves/move.ts'
import type { FileTrust } from './plan/trust.ts'
import { LabRegistry, noSuchProject, projectExists, statusElsewhere } from './registry.ts'
import { recoverSnapshots, runRestored } from './snapshots/snapshots.ts'
import { Symbols } from './symbols.ts'
import { ComputeSync } from './sync.ts'
import { SyncOnDemand } from './sync-on-demand.ts'
import { Templates } from './templates.ts'
import { deletesAfter, LabTimers } from './timers.ts'

/** How long requests wait for labs that the start of the service opens, ms. */
const maxRestoreMs = 30_000

export type { ComputeClients }

/** What the archives have that are made of closed labs. */
const archiveOptions = { withImages: false, withSnapshots: true, resetsAddresses: false, level: 1 }

interface BuildOptions {
  readonly clientFor: ComputeClients
  /** Computes on which it is made. */
  readonly like?: readonly string[]
  readonly asksAll?: boolean
  /** The projects of the client. */
  readonly scope?: ProjectScope | undefined
}

/** What the start has read. */
interface Loaded {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly templates: SharedDocument<LabTemplate>
  readonly symbols: SharedDocument<string>
}

interface LabsOptions {
  readonly store: LabStorage
  readonly computes: LabComputes
  readonly events: EventLog
  /** Absent: there are no archives here. */
  readonly archives?: LabArchives
  /** Absent: files are not judged, as no compute of the service is in local mode for it. */
  readonly trust?: FileTrust
  /** Absent: this service has no disk, or its computes have the projects. */
  readonly hostProjects?: HostProjects
  /** The id of the only lab of this process. It reads the feeds of its computes only while its own feed has readers. */
  readonly only?: string
  /** Whether each lab has a process of its own, and this one only lists them. */
  readonly isDirectory?: boolean
  /** Stores the heads and the names of all labs; absent: this process does. */
  readonly directory?: LabDirectory
  /** Copies a lab in the process of the new lab; absent: this process does. */
  readonly copy?: CopyLab
  /** Archives of closed labs apart from their computes; absent: none are kept. */
  readonly keptArchives?: ArchiveStore
  /** Time for the archive of a closed lab, and most bytes of its files. */
  readonly archiveLimits?: ArchiveLimits
  /** Moves a lab that has a process of its own, in that process. */
  readonly move?: (id: string, from: string, options: MoveOptions) => Promise<string>
  /** How long a drain of a compute may take, s; absent: `defaultDrainS`. */
  readonly drainS?: () => number
  /** The jobs of all labs, where labs have processes of their own. */
  readonly jobs?: JobList
  /** Takes note of the next time at which `runDue` must be called, ms since 1970, for a process that sleeps until it is asked. */
  readonly wakeAt?: (time: number) => void
  /** How much clients can store; absent: the defaults. Read for each change. */
  readonly limits?: () => LabLimits
  /** Limits how many labs are made; absent: there is no limit, or the directory knows it. */
  readonly quota?: ProjectQuota | undefined
  /** Logs a message for the administrator. */
  readonly warn: (message: string) => void
  /** Logs failures that are defects. */
  readonly report: (error: unknown, what: string) => void
}

/** Every lab of a service, open or closed. */
export class Labs {
  readonly computes: LabComputes
  readonly events: EventLog
  readonly archives: LabArchives | undefined
  readonly hostProjects: HostProjects | undefined
  readonly trust: FileTrust | undefined
  readonly keptArchives: ArchiveStore | undefined
  readonly copy: CopyLab | undefined
  readonly templates: Templates
  readonly symbols: Symbols
  readonly jobs: Jobs
  /** The jobs of all labs. */
  readonly jobList: JobList
  readonly uses: LabUses
  readonly #drainS: LabsOptions['drainS']
  readonly registry: LabRegistry
  readonly #only: string | undefined
  readonly #isDirectory: boolean
  readonly #moveElsewhere: LabsOptions['move']
  readonly #limits: () => LabLimits
  readonly #warn: (message: string) => void
  /** Logs failures that are defects. */
  readonly report: (error: unknown, what: string) => void
  readonly documents: LabDocuments
  readonly #autoStart: AutoStart
  /** Closed labs that are being opened, and those that `withOpenLab` is closing on their computes again. */
  readonly #opening = new Set<string>()
  readonly #leaving = new Map<string, Promise<void>>()
  /** Number of running operations of `withOpenLab`, by lab. */
  readonly #users = new Map<string, number>()
  /** One enlistment of a compute for a lab at a time. */
  readonly #enlistments = new KeyedMutex()
  readonly #sync: ComputeSync
  readonly access: LabAccess
  readonly #archiver: LabArchiver
  readonly timers: LabTimers

  /** See `LabsOptions.drainS`. */
  get drainS(): number | undefined {
    return this.#drainS?.()
  }

  private constructor(options: LabsOptions, { registry, documents, templates, symbols }: Loaded) {
    this.#drainS = options.drainS
    this.registry = registry
    const {
      computes,
      events,
      archives,
      hostProjects,
      trust,
      keptArchives,
      archiveLimits,
      copy,
      jobs,
      move,
      warn,
      report,
      only,
      directory,
      isDirectory = false,
      limits = () => defaultLabLimits,
      wakeAt,
    } = options
    this.#only = only
    this.#isDirectory = isDirectory
    this.#moveElsewhere = move
    this.#limits = limits
    this.documents = documents
    this.templates = new Templates({
      own: templates,
      limits,
      emit: (action, event) => registry.emit({ action, event }),
    })
    this.symbols = new Symbols(symbols)
    this.computes = computes
    this.events = events
    this.archives = archives
    this.hostProjects = hostProjects
    this.trust = trust
    this.keptArchives = keptArchives
    this.copy = copy
    this.#warn = warn
    this.report = report
    this.jobs = new Jobs({
      ...{ computes, report, noted: directory?.job?.bind(directory) },
      emit: (news) => registry.emit(news),
    })
    this.#autoStart = new AutoStart(this.jobs, warn)
    this.jobList = jobs === undefined ? this.jobs : this.jobs.with(jobs)
    this.uses = new LabUses({
      openLab: (id) => this.documents.get(id),
      isBusy: (lab) => this.jobs.isBusy(lab.id),
      async hasTelnet({ id, document: { project } }) {
        const count = (computeId: string) => computes.client(computeId).telnetClients(id)
        const none = ignore('a compute that does not answer counts as without clients')
        return (await mapLimit(project.computes, (it) => count(it).catch(none))).some((found) => (found ?? 0) > 0)
      },
      close: (lab) => this.close(lab.id, ownAsk(computes)),
      warn,
    })
    const following = { registry, documents, computes, events, autoStart: this.#autoStart }
    this.#sync = only === undefined ? new ComputeSync(following) : new SyncOnDemand(following, only)
    const access = new LabAccess(registry, documents, this.#sync)
    const source: ArchiveSource = {
      archiveOf: (lab, maxBytes) => exportLab(this, lab, { ...archiveOptions, maxBytes }, ownAsk(computes)),
    }
    const store = keptArchives
    this.access = access
    this.#archiver = new LabArchiver({ registry, documents, access, source, store, limits: archiveLimits, warn })
    this.timers = new LabTimers({
      ...{ registry, documents, access, jobs: this.jobs, archiver: this.#archiver, remover: this },
      ...{ clientFor: ownAsk(computes), wakeAt, warn },
    })
  }

  /** Most nodes, links, drawings and snapshots of a lab together. */
  get maxObjects(): number {
    return this.#limits().lab_objects
  }

  /** Loads the heads of the labs, templates and symbols. `restore` opens labs. */
  static async start(options: LabsOptions): Promise<Labs> {
    const { store, events, warn, only, directory, quota, limits = () => defaultLabLimits } = options
    const shared = { store, limits, warn, isElsewhere: only !== undefined }
    const records = recordStorage(store)
    const [templates, symbols, heads] = await Promise.all([
      SharedDocument.open<LabTemplate>({ ...shared, scope: 'templates' }),
      SharedDocument.open<string>({ ...shared, scope: 'symbols' }),
      records.heads(),
    ])
    const registry = new LabRegistry({ store: records, heads, directory, quota, limits, warn })
    const documents = new LabDocuments({ store: records, events, registry, limits })
    return new Labs(options, { registry, documents, templates, symbols })
  }

  /**
   * Opens the labs that were open at the end of the last run, and those with `auto_open`, once `ready` resolves.
   */
  restore(ready: Promise<unknown> = Promise.resolve()): Promise<void> {
    const wanted = this.registry
      .all()
      .filter(([, { is_open, auto_open, unfinished }]) => is_open || auto_open || unfinished)
    const open = async ([id, { name, is_open, unfinished, computes }]: (typeof wanted)[number]) => {
      if (unfinished) {
        const clientFor = ownAsk(this.computes)
        // A compute that crashed may have the directory of the project and not know the project: once opened, both can be removed.
        // One that was removed from the fleet cannot be asked any more.
        const known = mapLimit(computes, async (computeId) => {
          await clientFor(computeId).openProject({ project_id: id, name }).catch(ignoreNotFound)
        })
        await known
          .then(() => this.#drop(id, computes, clientFor))
          .catch(ignore('the next start of the service tries again'))
        return
      }
      await this.#openNow(id, id, ownAsk(this.computes), !is_open).catch((error: Error) => {
        // An unreadable document is reported already. A lab that does not fit shows why until it is opened.
        if (error instanceof UnreadableLab) return
        if (error instanceof ApiError && error.code === 'limit-reached') this.registry.markUnopened(id, error.message)
        else this.#warn(`The project ${id} could not be opened: ${error.message}`)
      })
    }
    const opened = ready.then(() => mapLimit(wanted, open)).then(() => this.#recoverMoves())
    this.access.restored = withTimeout(opened, maxRestoreMs, () => undefined).then(() => {})
    for (const [id, head] of this.registry.all()) this.timers.headChanged(id, head)
    return this.access.restored
  }

  /** Recovers moves of closed labs that ended with the service; those of open ones are recovered when they are opened. */
  async #recoverMoves(): Promise<void> {
    const left = this.registry.all().filter(([id, { moving, formerComputes, pendingLinks, unfinished }]) => {
      return (
        this.documents.get(id) === undefined && !unfinished && (moving ?? formerComputes ?? pendingLinks) !== undefined
      )
    })
    await mapLimit(left, async ([id]) => {
      const settle = async () => recoverMove(this, await this.find(id), ownAsk(this.computes))
      await this.access.locked(id, settle).catch(ignore('the next opening or move of the project tries again'))
    })
  }

  /** All labs, and the projects that only computes have. */
  async list(clientFor: ComputeClients): Promise<LabProject[]> {
    await this.access.restored
    const listed = this.registry.all().filter(([, { unfinished }]) => !unfinished)
    const reasonOf = await this.#sync.reasons(listed.flatMap(([, { computes }]) => computes))
    const known = listed.map(([id, head]) => {
      const lab = this.documents.get(id)
      if (lab === undefined) return this.#closedView(id, head, reasonOf(head))
      lab.statusReason = reasonOf(lab.document.project)
      return lab.project()
    })
    const elsewhere = await mapLimit(
      await this.computes.all(),
      async (compute_id) => {
        const none = ignore('a compute that does not answer has no projects to list')
        const projects = (await clientFor(compute_id).projects().catch(none)) ?? []
        return projects.map((project) => ({ ...unmanaged(project), compute_ids: [compute_id] }))
      },
      undefined,
      silentMs,
    )
    const others = new Map(elsewhere.flat().map((project) => [project.project_id, project]))
    for (const id of this.registry.ids()) others.delete(id)
    return [...known, ...others.values()].sort((a, b) => compareText(a.name, b.name))
  }

  /** Ids of the computes of a lab; undefined for a project that is not a lab. */
  computesOf(id: string): readonly string[] | undefined {
    return this.documents.get(id)?.document.project.computes ?? this.registry.get(id)?.computes
  }

  /** The compute that has a node or a direct link of an open lab. */
  computeOf(id: string, part: string): string | undefined {
    const document = this.documents.get(id)?.document
    const wiring = document?.links.get(part)?.wiring
    return document?.nodes.get(part)?.compute_id ?? (wiring?.type === 'direct' ? wiring.compute_id : undefined)
  }

  /** See `LabAccess`. */
  lab(word: string): Promise<Lab> {
    return this.access.lab(word)
  }

  find(word: string): Promise<Lab> {
    return this.access.find(word)
  }

  exclusively<T>(id: string, run: (lab: Lab) => Promise<T>): Promise<T> {
    return this.access.exclusively(id, run)
  }

  requireStaying(id: string): void {
    this.access.requireStaying(id)
  }

  /** `more`: members of the record that no client gives. `scope`: the projects of the client. */
  async create(
    input: LabProjectCreate,
    clientFor: ComputeClients,
    { scope, ...more }: Pick<ProjectRecord, 'file'> & { readonly scope?: ProjectScope | undefined } = {},
  ): Promise<LabProject> {
    const { name, path = null, compute_id, project_id, ...settings } = input
    requireName(name)
    requireSmallHead(settings)
    const id = this.#only ?? project_id?.toLowerCase() ?? crypto.randomUUID()
    return this.access.locked(id, async () => {
      this.registry.requireNew(id)
      const record: ProjectRecord = {
        project_id: id,
        name,
        ...withDefaults(labSettings, settings),
        ...withoutNulls({ kept: settings.kept }),
        path: null,
        ...{ revision: 0, changed_at: new Date().toISOString(), sizes: noSizes },
        computes: [await this.computes.choose(compute_id ?? undefined, settings.placement ?? undefined)],
        is_open: true,
        ...more,
      }
      // Before the next `await`, so that no other request takes the name.
      this.registry.requireQuota(id)
      this.registry.add(id, record, scope)
      try {
        const lab = await this.access.creating(id, async () => {
          await this.registry.announce(id, record, scope)
          const compute = clientFor(record.computes[0] as string)
          // A project that only the compute knows has nodes that the new one would not show, and would delete.
          const known = project_id == null ? undefined : await compute.project(id).catch(ignoreNotFound)
          if (known !== undefined) throw projectExists(id)
          const made = await compute.openProject({ project_id: id, name, path })
          const head = { ...record, path: made.path }
          try {
            await this.documents.saveNew(id, head)
          } catch (error) {
            await compute.removeProject(id).catch(ignore('it is listed as a project of its compute'))
            throw error
          }
          await this.registry.put(id, head)
          return this.#opened(id, this.documents.make(id, new Map([['project', head]])))
        })
        this.documents.publish(lab, 'project.created')
        await this.#autoStart.startAfterReboot(lab, record.computes, clientFor)
        return lab.project()
      } catch (error) {
        await this.registry.remove(id).catch(ignore('the client gets the first error'))
        throw error
      }
    })
  }

  /**
   * Makes a closed project whose content `fill` writes. The project is invisible until it is complete. A failure or a crash leaves nothing:
   * the next start of the service removes an unfinished project. `asksAll`: no compute of the fleet may have a project of its id.
   */
  async build(
    { name, path = null, ...settings }: LabProjectCreate,
    { clientFor, like = [], asksAll = false, scope }: BuildOptions,
    fill: (lab: Lab) => Promise<void>,
  ): Promise<LabProject> {
    const id = this.#only ?? settings.project_id?.toLowerCase() ?? crypto.randomUUID()
    // The start of the service first removes unfinished projects.
    await this.access.restored
    return this.access.locked(id, async () => {
      requireName(name)
      requireSmallHead(settings)
      this.registry.requireNew(id)
      // Before the lab has its name, by which credentials see every project of its id.
      if (asksAll) await this.#requireNowhere(id, clientFor)
      const first =
        like[0] ?? (await this.computes.choose(settings.compute_id ?? undefined, settings.placement ?? undefined))
      const record: ProjectRecord = {
        ...{ project_id: id, name, ...withDefaults(labSettings, settings), path: null, revision: 0 },
        ...withoutNulls({ kept: settings.kept }),
        ...{ computes: [first, ...like.slice(1)], is_open: false, unfinished: true },
      }
      this.registry.requireQuota(id)
      this.registry.add(id, record, scope)
      let isNew = false
      try {
        const lab = this.documents.make(id, new Map([['project', record]]))
        await this.registry.announce(id, record, scope)
        const input = { project_id: id, name }
        // Before the record is saved: after a crash the next start removes an unfinished project from all its computes.
        for (const computeId of record.computes)
          if ((await clientFor(computeId).projects()).some(({ project_id }) => project_id === id))
            throw projectExists(id)
        await this.documents.saveNew(id, record)
        isNew = true
        const made = await clientFor(first).openProject({ ...input, path })
        for (const computeId of like.slice(1)) await clientFor(computeId).openProject(input)
        await fill(lab)
        await this.#closeComputes(lab, clientFor)
        await lab.edit(({ project: { unfinished: _, ...project } }) => ({
          changes: new Changes().project({ ...project, path: made.path }),
          news: () => [],
          result: undefined,
        }))
        await this.registry.put(id, lab.document.project)
        this.registry.emit({ action: 'project.created', event: lab.project() })
        return lab.project()
      } catch (error) {
        await this.#drop(id, isNew ? record.computes : [], clientFor).catch(ignore('the client gets the first error'))
        throw error
      }
    })
  }

  /** 409 when any compute of the fleet has a project of this id, 503 when one cannot be asked. */
  async #requireNowhere(id: string, clientFor: ComputeClients): Promise<void> {
    const all = await this.computes.registered()
    await mapLimit(all, async (computeId) => {
      const projects = await clientFor(computeId)
        .projects()
        .catch((error: unknown) => {
          if (error instanceof ApiError && error.code === 'no-such-compute') return []
          const message = `Could not check whether compute ${computeId} has a project ${id}; try again`
          throw retryLater(503, message, 5, error)
        })
      if (projects.some(({ project_id }) => project_id === id)) throw projectExists(id)
    })
  }

  /** Runs an operation while a project is open on its computes. Closes a closed lab there again after the last one. */
  async withOpenLab<T>(lab: Lab, clientFor: ComputeClients, run: () => Promise<T>): Promise<T> {
    if (!lab.isOpen) await recoverSnapshots(this, lab, clientFor)
    const { computes, name } = lab.document.project
    this.#users.set(lab.id, (this.#users.get(lab.id) ?? 0) + 1)
    try {
      if (!lab.isOpen) {
        await this.#leaving
          .get(lab.id)
          ?.catch(ignore('the operation before reports that it could not close the project'))
        for (const id of computes) await clientFor(id).openProject({ project_id: lab.id, name })
      }
      return await run()
    } finally {
      const left = (this.#users.get(lab.id) ?? 1) - 1
      if (left > 0) this.#users.set(lab.id, left)
      else {
        this.#users.delete(lab.id)
        if (!lab.isOpen && this.documents.get(lab.id) === undefined && !this.#opening.has(lab.id)) {
          const leaving = this.#closeComputes(lab, clientFor)
          this.#leaving.set(lab.id, leaving)
          await leaving.finally(() => this.#leaving.delete(lab.id))
        }
      }
    }
  }

  /**
   * Closes a lab, runs an operation on it, and opens it again if it was open. `check` throws to refuse before anything is changed. Requests
   * that would change the lab get 409 meanwhile.
   */
  async withClosedLab<T>(
    id: string,
    clientFor: ComputeClients,
    check: (lab: Lab) => void,
    run: (lab: Lab) => Promise<T>,
  ): Promise<T> {
    const moving = this.access.beginMove(id)
    let wasOpen = false
    try {
      return await this.access.locked(id, async () => {
        const open = await this.find(id)
        check(open)
        if (open.isOpen) {
          await this.#requirePresent(open, 'close')
          wasOpen = true
          await open.exclusive(async () => {
            await this.#closeComputes(open, clientFor)
            // The record says that it is open: after a crash the next start opens it.
            this.#closed(open, 'project.closed')
          }, force)
        }
        return run(await this.find(id))
      })
    } finally {
      moving[Symbol.dispose]()
      if (wasOpen)
        await this.#openNow(id, id, clientFor, false).then(
          () => {
            const opened = this.documents.get(id)
            if (opened !== undefined) this.documents.publish(opened, 'project.opened')
          },
          (error: Error) => this.#warn(`The project ${id} could not be opened after its move: ${error.message}`),
        )
    }
  }

  /** Whether a job of the lab runs, or a copy or an archive of it is made. */
  isUsed(id: string): boolean {
    return this.jobs.isBusy(id) || this.#users.has(id)
  }

  /** Moves the part of a lab on one compute to another compute, whose id is the result. See `moveLab`. */
  move(id: string, from: string, options: MoveOptions): Promise<string> {
    if (!this.#isDirectory) return moveLab(this, id, from, options)
    if (this.#moveElsewhere === undefined) throw new ApiError(501, 'This service cannot move projects')
    return this.#moveElsewhere(id, from, options)
  }

  /** Opens a lab on its computes again, and reads its nodes. */
  async reopen(lab: Lab, clientFor: ComputeClients): Promise<void> {
    const { computes, name } = lab.document.project
    for (const id of computes) await clientFor(id).openProject({ project_id: lab.id, name })
    lab.reported.clear()
    lab.unknownReasons.clear()
    await this.#sync.refresh(lab, computes, clientFor)
  }

  /** Takes note that the document of a lab was replaced. */
  replaced(lab: Lab): void {
    lab.history.clear()
    this.registry.put(lab.id, lab.document.project).catch(ignore('the next change of the project is saved again'))
  }

  closeOnComputes(lab: Lab, clientFor: ComputeClients): Promise<void> {
    return this.#closeComputes(lab, clientFor)
  }

  /** Removes an unfinished project. */
  async #drop(id: string, computes: readonly string[], clientFor: ComputeClients): Promise<void> {
    for (const computeId of computes) await clientFor(computeId).removeProject(id).catch(ignoreNotFound)
    const unreadable = ignore('snapshots of a document that cannot be read are not known')
    const keys = [...((await this.documents.load(id).catch(unreadable))?.keys() ?? [])]
    for (const key of keys)
      if (key.startsWith('snapshot/')) await this.documents.putSideDocument(key.slice('snapshot/'.length), undefined)
    await this.documents.remove(id)
    await this.registry.remove(id)
  }

  async update(word: string, input: LabProjectUpdate, clientFor: ComputeClients): Promise<LabProject> {
    this.requireStaying(this.registry.idOf(word))
    const { ttl_s, ttl_deletes, ...settings } = input
    const lab = await this.find(word).catch((error) => this.#notFound(error, word, clientFor))
    // Refused before anything is changed; the time is set last, as a name may be refused, too.
    deletesAfter(lab, { ttl_s, ttl_deletes })
    await this.set(lab, withoutNulls(settings), clientFor)
    await this.timers.stopAfter(lab, { ttl_s, ttl_deletes })
    return lab.project()
  }

  /** Changes the settings of a lab. In contrast to `update` null is a value. */
  async set(lab: Lab, input: Partial<ProjectRecord>, clientFor: ComputeClients, step?: EditStep): Promise<LabProject> {
    const { name, ...settings } = input
    requireSmallHead({ ...lab.document.project, ...settings }, lab.document.project)
    if (step?.by !== 'rollback') {
      const head = { ...lab.document.project, ...settings }
      this.registry.requireRoom(lab.id, head)
      // Before it is saved: the directory refuses what is too much together with other labs.
      if (['variables', 'supplier', 'kept'].some((key) => key in settings)) await this.registry.announce(lab.id, head)
    }
    const save = async (more: { readonly name?: string }) => {
      // Before the setting: a start of the service would start what ran when `lastRunning` was saved last.
      if (settings.auto_start ?? lab.document.project.auto_start) await lab.saveLastRunning()
      await lab.edit(
        ({ project }) => ({
          changes: new Changes().project({ ...project, ...settings, ...more }),
          news: () => [],
          result: undefined,
        }),
        step,
      )
    }
    if (name === undefined || name === lab.document.project.name) await save({})
    else await this.#rename(lab, name, clientFor, () => save({ name }))
    await this.registry.put(lab.id, lab.document.project)
    if (lab.document.project.auto_start && lab.isOpen)
      await this.#autoStart.startAfterReboot(lab, lab.document.project.computes, clientFor)
    this.documents.publish(lab, 'project.updated')
    return lab.project()
  }

  /** Gives a lab a name in the directory and on its computes; then `save` gives it in the document. A failure leaves the former name. */
  async #rename(lab: Lab, name: string, clientFor: ComputeClients, save: () => Promise<void>): Promise<void> {
    requireName(name)
    using _ = this.registry.reserveName(lab.id, name)
    const { project } = lab.document
    const give = async (to: string) => {
      await this.registry.announce(lab.id, { ...project, name: to })
      if (!lab.isOpen) return
      for (const id of project.computes) await clientFor(id).renameProject(lab.id, to).catch(ignoreUnreachable)
    }
    await saveOrRevert(
      lab,
      async () => {
        await give(name)
        await save()
      },
      () => give(project.name),
    )
  }

  /** Opens a lab, or a project that only a compute has. Does nothing for an open lab. */
  async open(word: string, clientFor: ComputeClients): Promise<LabProject> {
    const id = this.registry.idOf(word)
    await this.access.restored
    this.requireStaying(id)
    return this.#openNow(id, word, clientFor, true)
  }

  /** `startsAll`: `auto_start` starts all nodes, and else those that ran before a reboot of their computes. */
  #openNow(id: string, word: string, clientFor: ComputeClients, startsAll: boolean): Promise<LabProject> {
    return this.access.locked(id, async () => {
      const open = this.documents.get(id)
      if (open !== undefined) return open.project()
      this.registry.clearUnopened(id)
      const lab = await this.#load(id, word, clientFor)
      using _ = this.documents.enter(lab)
      if (lab.document.project.archived !== undefined) {
        await this.#sync.recordReason(lab)
        if (this.isComputeLost(lab)) throw computeLost(lab, lab.statusReason)
      }
      await recoverSnapshots(this, lab, clientFor)
      await recoverMove(this, lab, clientFor).catch(ignore('the next opening of the project tries again'))
      const { computes, name } = lab.document.project
      // An export that ends just now must not close it again.
      this.#opening.add(id)
      try {
        await this.#leaving.get(id)?.catch(ignore('the export reports that it could not close the project'))
        await mapLimit(computes, async (computeId) => {
          await clientFor(computeId)
            .openProject({ project_id: id, name })
            .catch((error: Error) => {
              // The compute has just gone: `#noteReason` did not know it yet.
              if (this.#archiver.isArchived(lab) && isAway(error)) throw computeLost(lab, error.message)
              // A restart of the service opens what it can.
              if (startsAll && isMalformed(error)) throw error
              this.#sync.markUnknown(lab, computeId, error)
            })
        })
        this.#opened(id, lab)
      } catch (error) {
        // Those that have opened it.
        await this.#closeComputes(lab, clientFor).catch(ignore('the client gets the first error'))
        throw error
      } finally {
        this.#opening.delete(id)
      }
      await this.#sync.refresh(lab, computes, clientFor)
      this.#sync.nodesRead()
      // A lab that the start of the service opens was open before, so there is no event.
      if (!lab.document.project.is_open) {
        try {
          await this.#saveOpen(lab, true)
        } catch (error) {
          await this.#closeComputes(lab, clientFor).catch(ignore('the client gets the first error'))
          this.#closed(lab, 'project.closed')
          throw error
        }
        this.documents.publish(lab, 'project.opened')
      }
      await runRestored(lab, clientFor)
      this.#autoStart.resumeApply(lab, clientFor)
      for (const [node, { status }] of lab.reported) if (status !== 'stopped') lab.lastRunning.add(node)
      if (startsAll) this.#autoStart.start(lab, undefined, clientFor)
      await this.#autoStart.startAfterReboot(lab, computes, clientFor)
      return lab.project()
    })
  }

  /** Closes a lab, which stops its nodes. Does nothing for a closed lab. */
  async close(word: string, clientFor: ComputeClients): Promise<void> {
    const id = this.registry.idOf(word)
    this.requireStaying(id)
    // A running apply has locked the lab until it has reverted its changes: it is cancelled before the lock is waited for.
    this.jobs.endOf(id, 'The project was closed', { only: 'apply' })
    return this.access.locked(id, async () => {
      const lab = this.documents.get(id)
      if (lab === undefined) return
      await this.#requirePresent(lab, 'close')
      await lab.requireSavable()
      this.jobs.endOf(id, 'The project was closed')
      await lab.exclusive(async () => {
        await this.#closeComputes(lab, clientFor)
        await saveOrRevert(
          lab,
          () => this.#saveOpen(lab, false),
          () => this.reopen(lab, clientFor),
        )
        this.#closed(lab, 'project.closed')
      }, force)
      this.#archiver.closed(id)
    })
  }

  isComputeLost(lab: Lab): boolean {
    return this.#archiver.isComputeLost(lab)
  }

  /** Deletes a lab, also on its computes, or a project that only computes have. */
  async remove(word: string, clientFor: ComputeClients): Promise<void> {
    const id = this.registry.idOf(word)
    this.requireStaying(id)
    this.jobs.endOf(id, 'The project was deleted', { only: 'apply' })
    return this.access.locked(id, async () => {
      const lab = await this.find(id)
        .catch((error) => this.#withoutDocument(id, error))
        .catch(ignoreNotFound)
      if (lab === undefined) return this.#removeUnmanaged(id, word, clientFor)
      await this.#requirePresent(lab, 'delete')
      this.jobs.endOf(id, 'The project was deleted', { forget: true })
      await this.discard(lab, clientFor)
    })
  }

  /** For `catch` of `find`: a lab whose document cannot be read, with its settings alone. */
  #withoutDocument(id: string, error: unknown): Lab {
    const head = this.registry.get(id)
    if (!(error instanceof UnreadableLab) || head === undefined) throw error
    return this.documents.make(id, new Map([['project', head]]))
  }

  /** Deletes a project that only computes have, as lists show it. 404. */
  async #removeUnmanaged(id: string, word: string, clientFor: ComputeClients): Promise<void> {
    const shown = await this.#unmanaged(id, word, clientFor)
    for (const computeId of shown.compute_ids) await clientFor(computeId).removeProject(id).catch(ignoreNotFound)
    this.registry.emit({ action: 'project.deleted', event: shown })
  }

  /** A lab, or a project that only computes have, as lists show it. `before`: called with a lab. 404. */
  async read(
    word: string,
    clientFor: ComputeClients,
    before: (lab: Lab) => Promise<void> = async () => {},
  ): Promise<LabProject> {
    const id = this.registry.idOf(word)
    const lab = await this.find(id).catch(ignoreNotFound).catch(unlessUnreadable)
    const head = this.registry.get(id)
    if (lab !== undefined) {
      await before(lab)
      return lab.project()
    }
    if (head === undefined || !this.registry.isUnreadable(id)) return this.#unmanaged(id, word, clientFor)
    return this.#closedView(id, head)
  }

  /** A project that only computes have. 404. */
  async #unmanaged(
    id: string,
    word: string,
    clientFor: ComputeClients,
  ): Promise<LabProject & { compute_ids: string[] }> {
    if (this.registry.get(id)?.unfinished) throw noSuchProject(word)
    const none = ignore('a compute that does not answer has no projects to show')
    const look = async (computeId: string) => {
      const project = await clientFor(computeId).project(id).catch(ignoreNotFound).catch(none)
      return project === undefined ? [] : [{ computeId, project }]
    }
    const found = (await mapLimit(await this.computes.all(), look, undefined, silentMs)).flat()
    const [first] = found
    if (first === undefined) throw noSuchProject(word)
    return { ...unmanaged(first.project), compute_ids: found.map(({ computeId }) => computeId) }
  }

  /** For `catch`: 409 for a project that only computes have. */
  async #notFound(error: unknown, word: string, clientFor: ComputeClients): Promise<never> {
    ignoreNotFound(error)
    const { name, project_id } = await this.#unmanaged(this.registry.idOf(word), word, clientFor)
    throw conflict(
      `Project ${name} exists only on a compute. Import it first with POST /v2/projects/${project_id}/open`,
    )
  }

  /** Deletes a lab that the caller has locked (`exclusively`). Its jobs stay in the list. */
  async discard(lab: Lab, clientFor: ComputeClients): Promise<void> {
    return lab.exclusive(() => this.#discardNow(lab, clientFor), force)
  }

  async #discardNow(lab: Lab, clientFor: ComputeClients): Promise<void> {
    const { id, document } = lab
    const { formerComputes = [], name } = document.project
    for (const computeId of computesWithFiles(document.project)) {
      const isLeft = formerComputes.includes(computeId)
      await clientFor(computeId)
        .removeProject(id)
        .catch((error: unknown) => {
          if (!isLeft || !isAway(error)) return ignoreNotFound(error)
          this.#warn(
            `The project ${name} was deleted, but compute ${computeId}, which is not connected, may still have an old copy of its ` +
              'files. When the compute is back, the copy is listed as a project and can be deleted',
          )
        })
    }
    for (const snapshot of document.snapshots.keys()) await this.documents.putSideDocument(snapshot, undefined)
    lab.isOver = true
    await this.documents.remove(id)
    await this.#archiver.removed(id)
    await this.registry.remove(id)
    if (lab.isOpen) this.#closed(lab, 'project.deleted')
    else {
      this.documents.publish(lab, 'project.deleted')
      this.events.closeProject(lab.id)
    }
  }

  /** Opens an open lab on a further compute. */
  async attachCompute(lab: Lab, computeId: string, clientFor: ComputeClients): Promise<void> {
    const isOn = () => lab.document.project.computes.includes(computeId)
    if (isOn()) return
    await this.#enlistments.run(`${lab.id}/${computeId}`, async () => {
      if (isOn()) return
      await forgetOn(this, lab, computeId, clientFor)
      const known = await clientFor(computeId).project(lab.id).catch(ignoreNotFound)
      await clientFor(computeId).openProject({ project_id: lab.id, name: lab.document.project.name })
      const save = () =>
        lab.edit(({ project }) => ({
          changes: new Changes().project({ ...project, computes: [...project.computes, computeId] }),
          news: () => [],
          result: undefined,
        }))
      await saveOrRevert(lab, save, async () => {
        // What another client has made there is not ours to remove.
        if (known === undefined) await clientFor(computeId).removeProject(lab.id)
      })
      await this.registry.put(lab.id, lab.document.project)
      this.#sync.computeAdded(computeId)
      await this.#autoStart.startAfterReboot(lab, [computeId], clientFor)
    })
  }

  /** A closed lab from its head. `reason`: what else is wrong with it. */
  #closedView(id: string, head: ProjectRecord, reason?: string): LabProject {
    return this.registry.view(id, head, this.#isDirectory ? statusElsewhere(head) : 'closed', reason)
  }

  /** Ends jobs and feeds. */
  async shutdown(): Promise<void> {
    this.#sync.end()
    this.timers.end()
    for (const lab of this.documents.open()) {
      this.jobs.endOf(lab.id, 'The service has stopped')
      lab.closing.abort()
    }
    this.jobs.endOf(undefined, 'The service has stopped')
    this.uses.end()
    this.events.close()
    await this.#autoStart.end()
  }

  /** The document of a closed lab, or a new one for a project that a compute has. */
  async #load(id: string, word: string, clientFor: ComputeClients): Promise<Lab> {
    const entries = await this.documents.load(id)
    if (entries !== undefined) return this.documents.make(id, entries)
    for (const computeId of await this.computes.all()) {
      const found = (await clientFor(computeId).projects()).find(({ project_id }) => project_id === id)
      if (found === undefined) continue
      const record: ProjectRecord = {
        project_id: id,
        name: found.name ?? id.slice(0, 8),
        ...withDefaults(labSettings, {}),
        path: found.path,
        revision: 0,
        computes: [computeId],
        is_open: false,
      }
      this.registry.add(id, record)
      await this.registry.announce(id, record)
      await this.documents.saveNew(id, record)
      return this.documents.make(id, new Map([['project', record]]))
    }
    throw noSuchProject(word)
  }

  #opened(id: string, lab: Lab): Lab {
    lab.isOpen = true
    this.events.openProject(id)
    this.documents.addOpen(lab)
    this.#sync.opened(lab)
    return lab
  }

  /**
   * Opens a feed of a lab, which ends when the lab is deleted: a closed lab may be opened again. `showsLinks`: whether it has the states of
   * links, which are read only then.
   */
  feed(lab: Lab, request: FeedRequest, showsLinks: boolean): ReadableStream<FeedItem> {
    if (!lab.isOpen) this.events.openProject(lab.id)
    try {
      const items = this.events.open(request)
      if (showsLinks) {
        this.#sync.countLinkReaders(lab.id, 1)
        onAbort(request.signal, () => this.#sync.countLinkReaders(lab.id, -1))
      }
      if (lab.isOpen) this.#sync.feedOpened(lab)
      return items
    } finally {
      if (!lab.isOpen) this.events.idleProject(lab.id)
    }
  }

  #closed(lab: Lab, action: string): void {
    lab.isOpen = false
    lab.isOver = true
    lab.closing.abort()
    this.documents.publish(lab, action)
    this.documents.removeOpen(lab)
    if (action === 'project.deleted') this.events.closeProject(lab.id)
    else this.events.idleProject(lab.id)
    this.#sync.closed(lab)
  }

  async #closeComputes(lab: Lab, clientFor: ComputeClients): Promise<void> {
    await mapLimit(lab.document.project.computes, (computeId) =>
      clientFor(computeId).closeProject(lab.id).catch(ignoreNotFound),
    )
  }

  async #saveOpen(lab: Lab, is_open: boolean): Promise<void> {
    const more = is_open ? {} : this.#archiver.firstTry()
    await lab.edit(({ project: { stop_at, ttl_deletes, archiving: _, ...project } }) => ({
      changes: new Changes().project({
        ...project,
        is_open,
        ...more,
        ...(is_open && withoutNulls({ stop_at, ttl_deletes })),
      }),
      news: () => [],
      result: undefined,
      isUpkeep: true,
    }))
    await this.registry.put(lab.id, lab.document.project)
  }

  /**
   * 503 while a compute of the lab is not connected: the operation would be done in part only. A compute from which the lab was moved does
   * not count: it may never come back.
   */
  async #requirePresent(lab: Lab, what: 'close' | 'delete'): Promise<void> {
    const { project } = lab.document
    const { formerComputes: _, ...present } = project
    const all = await this.computes.absent(what === 'close' ? project.computes : computesWithFiles(present))
    // Nothing is left of the project at a compute that was removed.
    const absent = all.find(({ since }) => since !== undefined)
    if (absent === undefined) return
    throw new ApiError(
      503,
      `Compute ${absent.name} has files of the project ${lab.document.project.name} but is not connected: ${what} the project when ` +
        `it is connected again, or remove it first with DELETE /v2/computes/${absent.compute_id}`,
      { code: 'compute-unreachable', headers: retryAfter },
    )
  }
}

/** A lab is closed also when changes of its nodes and links under way do not end: these fail then. */
const force = (): void => {}

/** The computes that have files of a lab: also those that it has left. */
const computesWithFiles = ({
  computes,
  formerComputes = [],
  moving,
}: Pick<ProjectRecord, 'computes' | 'formerComputes' | 'moving'>): string[] => [
  ...new Set([...computes, ...formerComputes, ...(moving === undefined ? [] : [moving.to])]),
]

/** Clients of computes on behalf of the service itself. */
const ownAsk =
  (computes: LabComputes): ComputeClients =>
  (computeId) =>
    computes.client(computeId)

/** For `catch`: undefined for a document that cannot be read. */
function unlessUnreadable(error: unknown): undefined {
  if (!(error instanceof UnreadableLab)) throw error
}

/** Ignores a compute that is not connected: `#refreshAll` renames the project there later. */
function ignoreUnreachable(error: unknown): void {
  if (!isAway(error)) throw error
}

/** Whether a compute answered with something else than it should: it is not away, and the lab must not be shown as open there. */
const isMalformed = (error: unknown): boolean => error instanceof ApiError && error.status === 502

const isAway = (error: unknown): boolean => error instanceof ApiError && error.code === 'compute-unreachable'

/** 503 for a lab that has an archive and whose compute is gone. Opened without the compute, the lab would differ from its archive. */
function computeLost({ document }: Lab, reason: string | undefined): ApiError {
  const [compute = ''] = document.project.computes
  return new ApiError(
    503,
    `${reason}. To restore the project from its archive on another compute, use POST /v2/computes/${compute}/drain`,
    { code: 'compute-unreachable', headers: retryAfter },
  )
}

function requireName(name: string): void {
  requireNoSeparator(name)
  if (isUuid(name)) throw badRequest('name: a name must not look like an id (UUID); choose another name')
}

/** A project that only a compute has, in the form of a closed lab. */
const unmanaged = ({ project_id, name, path }: Project): LabProject => ({
  project_id,
  name: name ?? project_id.slice(0, 8),
  status: 'closed',
  ...withDefaults(labSettings, {}),
  path,
  filename: `${name ?? project_id}.gns3`,
  revision: 0,
})
