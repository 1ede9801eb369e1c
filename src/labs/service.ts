import type { EventLog } from '../fleet/events/event-log.ts'
import type { ProjectQuota } from '../fleet/placement/project-quota.ts'
import type { FeedRequest } from '../host-agent.ts'
import { onAbort } from '../lib/async/abort.ts'
import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import type { FeedItem } from '../model/event.ts'
import type { LabEvent } from '../model/lab/event.ts'
import type { LabProject, LabProjectUpdate } from '../model/lab/project.ts'
import type { LabTemplate } from '../model/lab/template.ts'
import { LabAccess } from './access.ts'
import { type ArchiveSource, LabArchiver } from './archiver.ts'
import { exportLab } from './archives/archive.ts'
import type { ArchiveStore } from './archives/archive-store.ts'
import type { HostProjects, LabArchives } from './archives/archives.ts'
import type { CopyLab } from './archives/duplicate.ts'
import { AutoStart } from './autostart.ts'
import { ComputeProjects, type LabRecovery } from './compute-projects.ts'
import type { ComputeAgents } from './computes/agents.ts'
import { type ComputePool, serviceAgents } from './computes/compute-pool.ts'
import { LabCreation } from './creation.ts'
import { LabDocuments } from './documents.ts'
import { type JobList, Jobs } from './jobs/jobs.ts'
import type { ProjectRecord } from './lab/document.ts'
import { recordStorage } from './lab/document-codec.ts'
import type { Lab } from './lab/lab.ts'
import { defaultLabLimits, type LabLimits } from './lab/lab-limits.ts'
import { SharedDocument } from './lab/shared-document.ts'
import type { LabDirectory, LabStorage } from './lab/store.ts'
import { LabUses } from './lab-uses.ts'
import { LabLifecycle } from './lifecycle.ts'
import { LabLists } from './lists.ts'
import { forgetOn, type MoveOptions, moveLab, recoverMove } from './moves/move.ts'
import type { FileTrust } from './plan/trust.ts'
import { LabRegistry, statusElsewhere } from './registry.ts'
import { LabSettings } from './settings.ts'
import { recoverSnapshots } from './snapshots/snapshots.ts'
import { Symbols } from './symbols.ts'
import { ComputeSync } from './sync.ts'
import { SyncOnDemand } from './sync-on-demand.ts'
import { Templates } from './templates.ts'
import { LabTimers } from './timers.ts'

/** What the archives have that are made of closed labs. */
const archiveOptions = { withImages: false, withSnapshots: true, resetsAddresses: false, level: 1 }

/** What the start has read. */
interface Loaded {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly templates: SharedDocument<LabTemplate>
  readonly symbols: SharedDocument<string>
}

/** The only lab of this process, where each lab has a process of its own and a directory lists them. */
interface SingleLab {
  readonly id: string
  /** Stores the heads and the names of all labs. */
  readonly directory: LabDirectory
  /** Copies the lab in the process of the new lab. */
  readonly copy: CopyLab
  /** Takes note of the next time at which `runDue` must be called, ms since 1970: the process sleeps until it is asked. */
  readonly wakeAt: (time: number) => void
}

/** Labs that have processes of their own, while this one lists them. */
export interface LabsElsewhere {
  /** The jobs of all labs. */
  readonly jobs: JobList
  /** Moves a lab in its process. */
  move(id: string, from: string, options: MoveOptions): Promise<string>
}

interface LabsOptions {
  readonly store: LabStorage
  readonly computes: ComputePool
  readonly events: EventLog<LabEvent>
  /** Absent: there are no archives here. */
  readonly archives?: LabArchives
  /** Absent: files are not judged, as no compute of the service is in local mode for it. */
  readonly trust?: FileTrust
  /** Absent: this service has no disk, or its computes have the projects. */
  readonly hostProjects?: HostProjects
  /** Absent: this process has all labs. */
  readonly single?: SingleLab
  /** Absent: the labs are in this process. */
  readonly elsewhere?: LabsElsewhere
  /** Archives of closed labs apart from their computes; absent: none are kept. */
  readonly keptArchives?: ArchiveStore
  /** How long a drain of a compute may take, s; absent: `defaultDrainS`. */
  readonly drainS?: () => number
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
  readonly computes: ComputePool
  readonly events: EventLog<LabEvent>
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
  readonly #elsewhere: LabsElsewhere | undefined
  readonly #limits: () => LabLimits
  /** Logs failures that are defects. */
  readonly report: (error: unknown, what: string) => void
  readonly documents: LabDocuments
  readonly #autoStart: AutoStart
  readonly #sync: ComputeSync
  readonly access: LabAccess
  readonly #archiver: LabArchiver
  readonly timers: LabTimers
  readonly projects: ComputeProjects
  readonly creation: LabCreation
  readonly lifecycle: LabLifecycle
  readonly #lists: LabLists
  readonly #settings: LabSettings

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
      warn,
      report,
      single,
      elsewhere,
      limits = () => defaultLabLimits,
    } = options
    this.#elsewhere = elsewhere
    this.#limits = limits
    this.documents = documents
    this.templates = new Templates({
      own: templates,
      limits,
      emit: (event) => registry.emit(event),
    })
    this.symbols = new Symbols(symbols)
    this.computes = computes
    this.events = events
    this.archives = archives
    this.hostProjects = hostProjects
    this.trust = trust
    this.keptArchives = keptArchives
    this.copy = single?.copy
    this.report = report
    const agentFor = serviceAgents(computes)
    this.jobs = new Jobs({
      ...{ computes, report, noted: single?.directory.job?.bind(single.directory) },
      emit: (event) => registry.emit(event),
    })
    this.jobList = elsewhere === undefined ? this.jobs : this.jobs.with(elsewhere.jobs)
    this.uses = new LabUses({
      openLab: (id) => this.documents.get(id),
      isBusy: (lab) => this.jobs.isBusy(lab.id),
      hasTelnet: (lab) => hasTelnetClients(lab, agentFor),
      close: (lab) => this.close(lab.id, agentFor),
      warn,
    })
    const autoStart = new AutoStart(this.jobs, warn)
    const following = { registry, documents, computes, events, autoStart }
    const sync = single === undefined ? new ComputeSync(following) : new SyncOnDemand(following, single.id)
    const access = new LabAccess(registry, documents, sync)
    const source: ArchiveSource = {
      archiveOf: (lab, maxBytes) => exportLab(this, lab, { ...archiveOptions, maxBytes }, agentFor),
    }
    const store = keptArchives
    const archiver = new LabArchiver({ registry, documents, access, source, store, warn })
    const recovery = recoveryOf(this)
    const projects = new ComputeProjects({ documents, computes, events, sync, recovery })
    const statusOf = (head: ProjectRecord) => (elsewhere === undefined ? 'closed' : statusElsewhere(head))
    const lists = new LabLists({ registry, documents, access, computes, sync, statusOf })
    const creation = new LabCreation({ registry, documents, access, computes, projects, autoStart, onlyId: single?.id })
    this.lifecycle = new LabLifecycle({
      registry,
      documents,
      access,
      computes,
      jobs: this.jobs,
      sync,
      autoStart,
      archiver,
      projects,
      recovery,
      creation,
      lists,
      warn,
    })
    this.timers = new LabTimers({
      registry,
      documents,
      access,
      jobs: this.jobs,
      archiver,
      remover: this.lifecycle,
      ...{ agentFor, wakeAt: single?.wakeAt, warn },
    })
    this.#settings = new LabSettings({ registry, documents, access, autoStart, timers: this.timers, lists })
    this.#autoStart = autoStart
    this.#sync = sync
    this.access = access
    this.#archiver = archiver
    this.projects = projects
    this.#lists = lists
    this.creation = creation
  }

  /** Most nodes, links, drawings and snapshots of a lab together. */
  get maxObjects(): number {
    return this.#limits().lab_objects
  }

  /** Loads the heads of the labs, templates and symbols. `restore` opens labs. */
  static async start(options: LabsOptions): Promise<Labs> {
    const { store, events, warn, single, quota, limits = () => defaultLabLimits } = options
    const shared = { store, limits, warn, isElsewhere: single !== undefined }
    const records = recordStorage(store)
    const [templates, symbols, heads] = await Promise.all([
      SharedDocument.open<LabTemplate>({ ...shared, scope: 'templates' }),
      SharedDocument.open<string>({ ...shared, scope: 'symbols' }),
      records.heads(),
    ])
    const registry = new LabRegistry({ store: records, heads, directory: single?.directory, quota, limits, warn })
    const documents = new LabDocuments({ store: records, events, registry, limits })
    return new Labs(options, { registry, documents, templates, symbols })
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

  /** See `LabLifecycle`. */
  restore(ready?: Promise<unknown>): Promise<void> {
    return this.lifecycle.restore(ready)
  }

  open(word: string, agentFor: ComputeAgents): Promise<LabProject> {
    return this.lifecycle.open(word, agentFor)
  }

  close(word: string, agentFor: ComputeAgents): Promise<void> {
    return this.lifecycle.close(word, agentFor)
  }

  remove(word: string, agentFor: ComputeAgents): Promise<void> {
    return this.lifecycle.remove(word, agentFor)
  }

  discard(lab: Lab, agentFor: ComputeAgents): Promise<void> {
    return this.lifecycle.discard(lab, agentFor)
  }

  attachCompute(lab: Lab, computeId: string, agentFor: ComputeAgents): Promise<void> {
    return this.lifecycle.attachCompute(lab, computeId, agentFor)
  }

  withOpenLab<T>(lab: Lab, agentFor: ComputeAgents, run: () => Promise<T>): Promise<T> {
    return this.projects.withOpen(lab, agentFor, run)
  }

  /** See `LabCreation`. */
  create(...input: Parameters<LabCreation['create']>): Promise<LabProject> {
    return this.creation.create(...input)
  }

  /** See `LabLists`. */
  list(agentFor: ComputeAgents): Promise<LabProject[]> {
    return this.#lists.list(agentFor)
  }

  read(...input: Parameters<LabLists['read']>): Promise<LabProject> {
    return this.#lists.read(...input)
  }

  /** See `LabSettings`. */
  update(word: string, input: LabProjectUpdate, agentFor: ComputeAgents): Promise<LabProject> {
    return this.#settings.update(word, input, agentFor)
  }

  set(...input: Parameters<LabSettings['set']>): Promise<LabProject> {
    return this.#settings.set(...input)
  }

  /** Whether a job of the lab runs, or a copy or an archive of it is made. */
  isUsed(id: string): boolean {
    return this.jobs.isBusy(id) || this.projects.isUsed(id)
  }

  /** Moves the part of a lab on one compute to another compute, whose id is the result. See `moveLab`. */
  move(id: string, from: string, options: MoveOptions): Promise<string> {
    return this.#elsewhere?.move(id, from, options) ?? moveLab(this, id, from, options)
  }

  /** Takes note that the document of a lab was replaced. */
  replaced(lab: Lab): void {
    lab.history.clear()
    this.registry.put(lab.id, lab.document.project).catch(ignore('the next change of the project is saved again'))
  }

  isComputeLost(lab: Lab): boolean {
    return this.#archiver.isComputeLost(lab)
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

  /**
   * Opens a feed of a lab, which ends when the lab is deleted: a closed lab may be opened again. `showsLinks`: whether it has the states of
   * links, which are read only then.
   */
  feed(lab: Lab, request: FeedRequest, showsLinks: boolean): ReadableStream<FeedItem<LabEvent>> {
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
}

const recoveryOf = (labs: Labs): LabRecovery => ({
  recoverSnapshots: (lab, agentFor) => recoverSnapshots(labs, lab, agentFor),
  recoverMove: (lab, agentFor) => recoverMove(labs, lab, agentFor),
  forgetOn: (lab, computeId, agentFor) => forgetOn(labs, lab, computeId, agentFor),
})

/** Whether a node of the lab has telnet clients. */
async function hasTelnetClients({ id, document: { project } }: Lab, agentFor: ComputeAgents): Promise<boolean> {
  const none = ignore('a compute that does not answer counts as without clients')
  const found = await mapLimit(project.computes, (computeId) => agentFor(computeId).nodes.telnetClients(id).catch(none))
  return found.some((count) => (count ?? 0) > 0)
}
