import { ignore } from '../async/ignore.ts'
import { KeyedMutex } from '../async/keyed-mutex.ts'
import { mapLimit } from '../async/map-limit.ts'
import { pause, startTimer } from '../async/pause.ts'
import { withTimeout } from '../async/timeout.ts'
import { ApiError, badRequest, conflict, notFound, unlessGone } from '../errors/api-error.ts'
import type { EventLog } from '../events/event-log.ts'
import { retryAfter } from '../gateway/fan-out.ts'
import type { FeedRequest } from '../host-agent.ts'
import type { EventPayload, FeedItem } from '../model/event.ts'
import { type LabProject, type LabProjectCreate, type LabProjectUpdate, labSettings } from '../model/lab/project.ts'
import type { Project } from '../model/project.ts'
import { isUuid } from '../schema/fields.ts'
import type { LabArchives } from './archives.ts'
import type { ComputeClient } from './compute-client.ts'
import type { LabComputes } from './computes.ts'
import { Changes, type ProjectRecord } from './document.ts'
import type { CopyLab } from './duplicate.ts'
import { given, withDefaults } from './fields.ts'
import type { EditStep } from './history.ts'
import { type JobList, Jobs } from './jobs.ts'
import { Lab, type LabNews } from './lab.ts'
import { LabUses } from './lab-uses.ts'
import { watchLinks } from './link-states.ts'
import { freeName, nameKey } from './names.ts'
import { runRestored, settleSnapshots } from './snapshots.ts'
import { apart, type LabDirectory, type LabStore } from './store.ts'
import { Symbols } from './symbols.ts'
import { Templates } from './templates.ts'
import { ComputeWatch } from './watch.ts'

/** How long requests wait for labs that are opened after a start of the service, ms. */
const maxRestoreMs = 30_000

/** Changes of what runs are saved together, after this time, ms. */
const saveRanMs = 1000
/** How old what is known of the nodes of a lab may be that is not listened to, ms. */
const freshMs = 1000
/** How often it is looked whether the feed of a lab has readers, ms. */
const readersMs = 5000

/** On whose behalf a lab asks computes. */
export type AskCompute = (computeId: string) => ComputeClient

interface LabsOptions {
  readonly store: LabStore
  readonly computes: LabComputes
  readonly events: EventLog
  /** Absent: there are no archives here. */
  readonly archives?: LabArchives
  /** The only lab of this process, by its id. Its computes are listened to while its feed has readers, and else asked. */
  readonly only?: string
  /** Whether each lab has a process of its own, and this one only lists them. */
  readonly isDirectory?: boolean
  /** Told of every change of what lists show. */
  readonly directory?: LabDirectory
  /** Has the process of a new lab make a copy of this one; absent: it is made here. */
  readonly copy?: CopyLab
  /** The jobs of labs that have processes of their own. */
  readonly jobs?: JobList
  /** Told what a person has to look at. */
  readonly warn: (message: string) => void
  /** Told of failures that are defects. */
  readonly report: (error: unknown, what: string) => void
}

/** Every lab of a service, open or closed. */
export class Labs {
  readonly computes: LabComputes
  readonly events: EventLog
  readonly archives: LabArchives | undefined
  readonly copy: CopyLab | undefined
  readonly templates: Templates
  readonly symbols: Symbols
  readonly jobs: Jobs
  /** Of all labs. */
  readonly jobList: JobList
  readonly uses: LabUses
  readonly #listeners = new Set<(news: LabNews) => void>()
  readonly #store: LabStore
  readonly #only: string | undefined
  readonly #directory: LabDirectory | undefined
  readonly #isDirectory: boolean
  /** When a lab without readers was read of its computes, ms since 1970. */
  #readAt = 0
  /** Whether the feed of the only lab has readers. */
  #isAttended = false
  readonly #warn: (message: string) => void
  /** Of every lab, whether it is in memory or not. */
  readonly #heads = new Map<string, ProjectRecord>()
  readonly #open = new Map<string, Lab>()
  /** How many exports and copies under way need a lab open on its computes. */
  readonly #users = new Map<string, number>()
  /** Opening, closing and deleting one lab come one after the other; under '' so does what takes a name. */
  readonly #mutex = new KeyedMutex()
  readonly #watch: ComputeWatch
  /** Labs whose `ran` is saved soon, and what cancels that. */
  readonly #unsaved = new Map<Lab, () => void>()
  /** Settled when what was open before is open again. */
  #restored: Promise<void> = Promise.resolve()

  private constructor(options: LabsOptions, templates: Templates, symbols: Symbols) {
    const {
      store,
      computes,
      events,
      archives,
      copy,
      jobs,
      warn,
      report,
      only,
      directory,
      isDirectory = false,
    } = options
    this.#only = only
    this.#directory = directory
    this.#isDirectory = isDirectory
    this.templates = templates
    this.symbols = symbols
    this.#store = store
    this.computes = computes
    this.events = events
    this.archives = archives
    this.copy = copy
    this.#warn = warn
    this.jobs = new Jobs({ computes, report, noted: directory?.job?.bind(directory) })
    this.jobList = jobs ?? this.jobs
    this.uses = new LabUses({
      isBusy: (lab) => this.jobs.isBusy(lab.id),
      async hasTelnet({ id, document: { project } }) {
        const count = (computeId: string) => computes.client(computeId).telnetClients(id)
        const none = ignore('a compute that does not answer has nobody at its consoles')
        return (await mapLimit(project.computes, (it) => count(it).catch(none))).some((found) => (found ?? 0) > 0)
      },
      close: (lab) => this.close(lab.id, ownAsk(computes)),
      warn,
    })
    const listener: ConstructorParameters<typeof ComputeWatch>[1] = {
      item: (computeId, item) => {
        const { project_id, payload } = item
        const lab = this.#open.get(project_id)
        if (lab !== undefined) this.#heard(lab, computeId, payload)
      },
      refresh: (computeId) => this.#refreshAll(computeId),
      lost: (computeId, error) => {
        for (const lab of this.#openOn(computeId)) {
          this.#absent(lab, computeId, error)
          this.#tellNodes(lab, computeId)
        }
      },
    }
    this.#watch = new ComputeWatch(computes, listener, only)
  }

  /** Opens what was open when the service ended. */
  static async start(options: LabsOptions): Promise<Labs> {
    const { store } = options
    const tell = (action: string, event: unknown) => labs.#tell({ action, event })
    const kept = [Templates.open(store, tell), Symbols.open(store), store.heads()] as const
    const [templates, symbols, heads] = await Promise.all(kept)
    const labs: Labs = new Labs(options, templates, symbols)
    for (const [id, head] of heads) labs.#heads.set(id, head as ProjectRecord)
    return labs
  }

  /**
   * Opens the labs that were open before, and those that are to be opened at each start, once the computes are ready.
   */
  restore(ready: Promise<unknown> = Promise.resolve()): Promise<void> {
    const wanted = [...this.#heads].filter(
      ([, { is_open, auto_open, unfinished }]) => is_open || auto_open || unfinished,
    )
    const open = async ([id, { is_open, unfinished, computes }]: (typeof wanted)[number]) => {
      if (unfinished)
        return this.#drop(id, computes, ownAsk(this.computes)).catch(
          ignore('the next start of the service tries again'),
        )
      await this.#openNow(id, id, ownAsk(this.computes), !is_open).catch(({ message }: Error) =>
        this.#warn(`The project ${id} could not be opened: ${message}`),
      )
    }
    const opened = ready.then(() => mapLimit(wanted, open))
    this.#restored = withTimeout(opened, maxRestoreMs, () => undefined).then(() => {})
    return this.#restored
  }

  /** Told of what happens to projects and templates as such; the result ends that. */
  listen(listener: (news: LabNews) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  #tell(news: LabNews): void {
    for (const listener of this.#listeners) listener(news)
  }

  /** Tells the feed of a lab and that of the service. */
  #tellAll(lab: Lab, action: string): void {
    const news = { action, event: lab.project() }
    lab.tell(news)
    this.#tell(news)
  }

  /** All labs, and with them the projects that only a compute knows. */
  async list(ask: AskCompute): Promise<LabProject[]> {
    await this.#restored
    const shown = [...this.#heads].filter(([, { unfinished }]) => !unfinished)
    const known = shown.map(([id, head]) => this.#open.get(id)?.project() ?? this.#headView(head))
    const elsewhere = await mapLimit(
      await this.computes.all(),
      async (computeId) =>
        (await ask(computeId).projects().catch(ignore('a compute that does not answer has no projects to list'))) ?? [],
    )
    const others = new Map(elsewhere.flat().map((project) => [project.project_id, project]))
    for (const id of this.#heads.keys()) others.delete(id)
    return [...known, ...[...others.values()].map(unmanaged)].sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  /** The id of a project that a path names by its id or its name. 404. */
  idOf(word: string): string {
    if (isUuid(word)) return word.toLowerCase()
    const key = nameKey(word)
    for (const [id, { name, unfinished }] of this.#heads) if (nameKey(name) === key && !unfinished) return id
    throw noSuchProject(word)
  }

  /** The name of a lab; undefined for a project that is none. */
  nameOf(id: string): string | undefined {
    return this.#heads.get(id.toLowerCase())?.name
  }

  /** The computes of a project, the first one first; undefined for a project that is no lab. */
  computesOf(id: string): readonly string[] | undefined {
    return this.#open.get(id)?.document.project.computes ?? this.#heads.get(id)?.computes
  }

  /** The compute that has a node or a direct link of an open lab. */
  computeOf(id: string, part: string): string | undefined {
    const document = this.#open.get(id)?.document
    const wiring = document?.links.get(part)?.wiring
    return document?.nodes.get(part)?.compute_id ?? (wiring?.type === 'direct' ? wiring.compute_id : undefined)
  }

  /** An open lab. 404 for an unknown one, and with its own word for one that is closed. */
  async lab(word: string): Promise<Lab> {
    const lab = await this.find(word)
    if (lab.isOpen) return lab
    throw notFound(`project_id: the project ${word} is closed; open it first`, { word: 'project-closed' })
  }

  /** A lab, open or closed, to read of. One that is being opened after a start of the service is waited for. 404. */
  async find(word: string): Promise<Lab> {
    const id = this.idOf(word)
    if (this.#heads.get(id)?.is_open === true && !this.#open.has(id)) await this.#restored
    const open = this.#open.get(id)
    if (open !== undefined) {
      if (!this.#listens && Date.now() - this.#readAt > freshMs) await this.#readAgain(open)
      return open
    }
    const entries = await this.#store.load(id)
    if (entries === undefined || this.#heads.get(id)?.unfinished) {
      // A creation or a deletion that broke off may have left its name.
      if (!this.#heads.has(id)) await this.#directory?.remove(id)
      throw noSuchProject(word)
    }
    return new Lab(id, entries, this.#store, this.events)
  }

  async create(input: LabProjectCreate, ask: AskCompute): Promise<LabProject> {
    const { name, path = null, compute_id, project_id, ...settings } = input
    requireName(name)
    const id = this.#only ?? project_id?.toLowerCase() ?? crypto.randomUUID()
    return this.#mutex.run(id, async () => {
      if (this.#heads.has(id)) throw projectExists(id)
      const record: ProjectRecord = {
        project_id: id,
        name,
        ...withDefaults(labSettings, settings),
        ...given({ kept: settings.kept }),
        path: null,
        revision: 0,
        computes: [await this.computes.choose(compute_id ?? undefined)],
        is_open: true,
      }
      // The name is taken before anything is awaited.
      this.#takeName(id, record)
      try {
        await this.#directory?.put(id, record)
        const made = await ask(record.computes[0] as string).openProject({ project_id: id, name, path })
        const saved = { ...record, path: made.path }
        await this.#store.save(id, new Changes().project(saved).entries)
        await this.#keepHead(id, saved)
        const lab = this.#opened(id, new Lab(id, new Map([['project', saved]]), this.#store, this.events))
        this.#tellAll(lab, 'project.created')
        await this.#startAfterReboot(lab, record.computes, ask)
        return lab.project()
      } catch (error) {
        this.#heads.delete(id)
        await this.#directory?.remove(id).catch(ignore('why it was not created matters more'))
        throw error
      }
    })
  }

  /**
   * Makes a closed project in one step: `fill` gives it what it has. It is not seen before it is complete. A failure leaves nothing, and
   * neither does an end of the service.
   */
  async build(
    { name, path = null, ...settings }: LabProjectCreate,
    { ask, like = [] }: { ask: AskCompute; like?: readonly string[] },
    fill: (lab: Lab) => Promise<void>,
  ): Promise<LabProject> {
    const id = this.#only ?? settings.project_id?.toLowerCase() ?? crypto.randomUUID()
    // What a creation that broke off has left goes first.
    await this.#restored
    return this.#mutex.run(id, async () => {
      requireName(name)
      if (this.#heads.has(id)) throw projectExists(id)
      const first = like[0] ?? (await this.computes.choose(settings.compute_id ?? undefined))
      const record: ProjectRecord = {
        ...{ project_id: id, name, ...withDefaults(labSettings, settings), path: null, revision: 0 },
        ...{ computes: [first, ...like.slice(1)], is_open: false, unfinished: true },
      }
      this.#takeName(id, record)
      let isNew = false
      try {
        const lab = new Lab(id, new Map([['project', record]]), this.#store, this.events)
        await this.#directory?.put(id, record)
        await this.#store.save(id, new Changes().project(record).entries)
        const input = { project_id: id, name }
        for (const computeId of record.computes)
          if ((await ask(computeId).projects()).some(({ project_id }) => project_id === id)) throw projectExists(id)
        isNew = true
        const made = await ask(first).openProject({ ...input, path })
        for (const computeId of like.slice(1)) await ask(computeId).openProject(input)
        await fill(lab)
        await this.#closeComputes(lab, ask)
        await lab.edit(({ project: { unfinished: _, ...project } }) => ({
          changes: new Changes().project({ ...project, path: made.path }),
          news: () => [],
          result: undefined,
        }))
        await this.#keepHead(id, lab.document.project)
        this.#tell({ action: 'project.created', event: lab.project() })
        return lab.project()
      } catch (error) {
        await this.#drop(id, isNew ? record.computes : [], ask).catch(ignore('why it could not be made matters more'))
        throw error
      }
    })
  }

  /** Runs something that needs a project open on its computes, and closes it there again if the lab is closed. */
  async whileOpen<T>(lab: Lab, ask: AskCompute, run: () => Promise<T>): Promise<T> {
    if (!lab.isOpen) await settleSnapshots(lab, ask)
    const { computes, name } = lab.document.project
    this.#users.set(lab.id, (this.#users.get(lab.id) ?? 0) + 1)
    try {
      if (!lab.isOpen) for (const id of computes) await ask(id).openProject({ project_id: lab.id, name })
      return await run()
    } finally {
      const left = (this.#users.get(lab.id) ?? 1) - 1
      if (left > 0) this.#users.set(lab.id, left)
      else {
        this.#users.delete(lab.id)
        if (!lab.isOpen && !this.#open.has(lab.id)) await this.#closeComputes(lab, ask)
      }
    }
  }

  /** Has opening, closing and deleting a lab wait. */
  exclusively<T>(id: string, run: () => Promise<T>): Promise<T> {
    return this.#mutex.run(id, run)
  }

  /** Opens a lab on its computes again, on which it was closed. */
  async reopen(lab: Lab, ask: AskCompute): Promise<void> {
    const { computes, name } = lab.document.project
    for (const id of computes) await ask(id).openProject({ project_id: lab.id, name })
    lab.shown.clear()
    lab.troubles.clear()
    await this.#refresh(lab, computes, ask)
  }

  /** Shows another document of a lab. */
  replaced(lab: Lab): void {
    lab.history.clear()
    this.#keepHead(lab.id, lab.document.project).catch(ignore('the next change of the project is told'))
  }

  closeOnComputes(lab: Lab, ask: AskCompute): Promise<void> {
    return this.#closeComputes(lab, ask)
  }

  /** Keeps a document apart from that of its lab; undefined removes it. */
  async keepApart(word: string, document: unknown): Promise<void> {
    if (document === undefined) await this.#store.remove(apart(word))
    else await this.#store.save(apart(word), new Map([['document', document]]))
  }

  async readApart(word: string): Promise<unknown> {
    return (await this.#store.load(apart(word)))?.get('document')
  }

  /** The name, or the next free one with a number. */
  async freeName(name: string): Promise<string> {
    if (this.#directory !== undefined) return this.#directory.freeName(name)
    const taken = new Set([...this.#heads.values()].map((head) => nameKey(head.name)))
    return freeName(name, (key) => taken.has(key))
  }

  /** Removes what is there of a project that was not completed. */
  async #drop(id: string, computes: readonly string[], ask: AskCompute): Promise<void> {
    for (const computeId of computes) await ask(computeId).removeProject(id).catch(unlessGone)
    await this.#store.remove(id)
    this.#heads.delete(id)
    await this.#directory?.remove(id)
  }

  async update(word: string, input: LabProjectUpdate, ask: AskCompute): Promise<LabProject> {
    return this.set(await this.find(word), given(input), ask)
  }

  /** Gives a lab other settings; null is a value here. */
  async set(lab: Lab, input: Partial<ProjectRecord>, ask: AskCompute, step?: EditStep): Promise<LabProject> {
    const { name, ...settings } = input
    const record = { ...lab.document.project, ...settings }
    if (name !== undefined && name !== record.name) {
      requireName(name)
      this.#requireFreeName(lab.id, name)
      record.name = name
      await this.#directory?.put(lab.id, record)
      if (lab.isOpen) for (const id of record.computes) await ask(id).updateProject(lab.id, { name }).catch(unlessAway)
    }
    await lab.edit(
      ({ project }) => ({
        changes: new Changes().project({ ...project, ...settings, name: record.name }),
        news: () => [],
        result: undefined,
      }),
      step,
    )
    await this.#keepHead(lab.id, lab.document.project)
    if (lab.document.project.auto_start) {
      await lab.saveRan()
      if (lab.isOpen) await this.#startAfterReboot(lab, lab.document.project.computes, ask)
    }
    this.#tellAll(lab, 'project.updated')
    return lab.project()
  }

  /** Opens a lab on its computes, or one that only a compute knows. An open one is left as it is. */
  async open(word: string, ask: AskCompute): Promise<LabProject> {
    const id = this.idOf(word)
    await this.#restored
    return this.#openNow(id, word, ask, true)
  }

  /** `startsAll`: `auto_start` starts all nodes, and else those that ran before a reboot of their computes. */
  #openNow(id: string, word: string, ask: AskCompute, startsAll: boolean): Promise<LabProject> {
    return this.#mutex.run(id, async () => {
      const open = this.#open.get(id)
      if (open !== undefined) return open.project()
      const lab = await this.#load(id, word, ask)
      await settleSnapshots(lab, ask)
      const { computes, name } = lab.document.project
      await mapLimit(computes, async (computeId) => {
        await ask(computeId)
          .openProject({ project_id: id, name })
          .catch((error: Error) => this.#absent(lab, computeId, error))
      })
      this.#opened(id, lab)
      await this.#refresh(lab, computes, ask)
      this.#readAt = Date.now()
      // After a start of the service it was open before, for everybody.
      if (!lab.document.project.is_open) {
        await this.#saveOpen(lab, true)
        this.#tellAll(lab, 'project.opened')
      }
      await runRestored(lab, ask)
      for (const [node, { status }] of lab.shown) if (status !== 'stopped') lab.ran.add(node)
      if (startsAll) this.#autoStart(lab, undefined, ask)
      await this.#startAfterReboot(lab, computes, ask)
      return lab.project()
    })
  }

  /** `nodes`: their ids; undefined: all. */
  #autoStart(lab: Lab, nodes: string[] | undefined, ask: AskCompute): void {
    if (!lab.document.project.auto_start || (nodes ?? [...lab.document.nodes.keys()]).length === 0) return
    try {
      this.jobs.start(lab, { action: 'start', ...(nodes && { nodes }) }, ask)
    } catch (error) {
      lab.tell({ action: 'log.warning', event: { message: `Its nodes were not started: ${(error as Error).message}` } })
    }
  }

  /** Starts the nodes that ran on computes whose computers were started again since the lab last heard of them. */
  async #startAfterReboot(lab: Lab, computes: readonly string[], ask: AskCompute): Promise<void> {
    if (!lab.document.project.auto_start) return
    const rebooted = new Set<string>()
    await mapLimit(computes, async (id) => {
      const note = async (boot: string | undefined) => boot !== undefined && lab.noteBoot(id, boot)
      const isOther = await ask(id).bootId().then(note).catch(ignore('a compute that is away is asked when it is back'))
      if (isOther === true) rebooted.add(id)
    })
    const ran = [...lab.document.nodes.values()].filter(
      ({ node_id, compute_id }) =>
        rebooted.has(compute_id) && lab.ran.has(node_id) && lab.shown.get(node_id)?.status === 'stopped',
    )
    if (ran.length > 0)
      this.#autoStart(
        lab,
        ran.map(({ node_id }) => node_id),
        ask,
      )
  }

  /** Stops its nodes, and keeps all. A closed one is left as it is. */
  close(word: string, ask: AskCompute): Promise<void> {
    const id = this.idOf(word)
    return this.#mutex.run(id, async () => {
      const lab = this.#open.get(id)
      if (lab === undefined) return
      await this.#requirePresent(lab, 'close')
      this.jobs.endOf(id, 'The project was closed')
      await this.#closeComputes(lab, ask)
      await this.#saveOpen(lab, false)
      this.#closed(lab, 'project.closed')
    })
  }

  /** Deletes a project everywhere. */
  remove(word: string, ask: AskCompute): Promise<void> {
    const id = this.idOf(word)
    return this.#mutex.run(id, async () => {
      const lab = await this.find(id)
      await this.#requirePresent(lab, 'delete')
      this.jobs.endOf(id, 'The project was deleted', { forget: true })
      for (const computeId of lab.document.project.computes) await ask(computeId).removeProject(id).catch(unlessGone)
      for (const snapshot of lab.document.snapshots.keys()) await this.#store.remove(apart(snapshot))
      await this.#store.remove(id)
      this.#heads.delete(id)
      await this.#directory?.remove(id)
      if (lab.isOpen) this.#closed(lab, 'project.deleted')
      else this.#tell({ action: 'project.deleted', event: lab.project() })
    })
  }

  /** Has a compute take part in an open lab, and remembers it. */
  async enlist(lab: Lab, computeId: string, ask: AskCompute): Promise<void> {
    if (lab.document.project.computes.includes(computeId)) return
    await ask(computeId).openProject({ project_id: lab.id, name: lab.document.project.name })
    await lab.edit(({ project }) => ({
      changes: new Changes().project({
        ...project,
        computes: [...project.computes.filter((it) => it !== computeId), computeId],
      }),
      news: () => [],
      result: undefined,
    }))
    await this.#keepHead(lab.id, lab.document.project)
    if (this.#listens) this.#watch.add(computeId)
    await this.#startAfterReboot(lab, [computeId], ask)
  }

  /**
   * As the directory of labs that have processes of their own: keeps what a list shows of one. 409 when another has its name.
   */
  register(id: string, head: ProjectRecord): Promise<void> {
    const before = this.#heads.get(id)
    this.#requireFreeName(id, head.name)
    this.#heads.set(id, head)
    const action =
      before === undefined
        ? 'created'
        : before.is_open === head.is_open
          ? 'updated'
          : head.is_open
            ? 'opened'
            : 'closed'
    const shown = ({ revision: _, ...rest }: ProjectRecord) => JSON.stringify(rest)
    if (before === undefined || shown(before) !== shown(head))
      this.#tell({ action: `project.${action}`, event: this.#headView(head) })
    return this.#store.save(id, new Changes().project(head).entries)
  }

  /** The same for one that is gone. */
  async forget(id: string): Promise<void> {
    const head = this.#heads.get(id)
    this.#heads.delete(id)
    if (head === undefined) return
    this.#tell({ action: 'project.deleted', event: this.#headView(head) })
    await this.#store.remove(id)
  }

  #headView(head: ProjectRecord): LabProject {
    return shownHead(head, this.#isDirectory && head.is_open ? 'opened' : 'closed')
  }

  /** Ends jobs and feeds. */
  async shutdown(): Promise<void> {
    this.#watch.close()
    for (const lab of this.#open.values()) {
      this.jobs.endOf(lab.id, 'The service has ended')
      lab.closing.abort()
    }
    this.uses.end()
    this.events.close()
    for (const [lab, cancel] of this.#unsaved) {
      cancel()
      await lab.saveRan().catch(ignore('what is kept is a moment older'))
    }
  }

  /** The document of a closed lab, or a new one for a project that a compute has. */
  async #load(id: string, word: string, ask: AskCompute): Promise<Lab> {
    const entries = await this.#store.load(id)
    if (entries !== undefined) return new Lab(id, entries, this.#store, this.events)
    for (const computeId of await this.computes.all()) {
      const found = (await ask(computeId).projects()).find(({ project_id }) => project_id === id)
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
      this.#takeName(id, record)
      await this.#directory?.put(id, record)
      await this.#store.save(id, new Changes().project(record).entries)
      return new Lab(id, new Map([['project', record]]), this.#store, this.events)
    }
    throw noSuchProject(word)
  }

  #opened(id: string, lab: Lab): Lab {
    lab.isOpen = true
    this.events.openProject(id)
    this.#open.set(id, lab)
    lab.acted = (shown) => this.#noteRun(lab, shown)
    if (this.#only === undefined) this.#listen(lab, lab.closing.signal)
    return lab
  }

  /** Opens a feed of an open lab. */
  feed(lab: Lab, request: FeedRequest): ReadableStream<FeedItem> {
    const items = this.events.open(request)
    if (!this.#listens) void this.#attend(lab)
    return items
  }

  /** Whether computes tell what happens in the labs that are open. */
  get #listens(): boolean {
    return this.#only === undefined || this.#isAttended
  }

  #listen(lab: Lab, signal: AbortSignal): void {
    const ask = ownAsk(this.computes)
    void watchLinks(lab, { ask, hasReaders: () => this.events.hasReaders(lab.id), signal })
    for (const computeId of lab.document.project.computes) this.#watch.add(computeId)
  }

  /** Listens to the computes of the only lab while its feed has readers: else this process can sleep. */
  async #attend(lab: Lab): Promise<void> {
    this.#isAttended = true
    const over = new AbortController()
    const signal = AbortSignal.any([over.signal, lab.closing.signal])
    this.#listen(lab, signal)
    await this.#readAgain(lab)
    while (!signal.aborted && this.events.hasReaders(lab.id)) await pause(readersMs, signal)
    over.abort()
    this.#watch.close()
    this.#isAttended = false
  }

  async #readAgain(lab: Lab): Promise<void> {
    this.#readAt = Date.now()
    const ask = ownAsk(this.computes)
    const { computes } = lab.document.project
    await this.#refresh(lab, computes, ask)
    const hasEnded = [...lab.ran].some((id) => lab.shown.get(id)?.status === 'stopped')
    if (hasEnded) await this.#startAfterReboot(lab, computes, ask)
    for (const shown of lab.shown.values()) this.#noteRun(lab, shown)
  }

  async #keepHead(id: string, head: ProjectRecord): Promise<void> {
    this.#heads.set(id, head)
    await this.#directory?.put(id, head)
  }

  #closed(lab: Lab, action: string): void {
    this.#unsaved.get(lab)?.()
    this.#unsaved.delete(lab)
    lab.isOpen = false
    lab.closing.abort()
    this.#tellAll(lab, action)
    this.#open.delete(lab.id)
    this.events.closeProject(lab.id)
    this.#watch.keep(new Set([...this.#open.values()].flatMap(({ document }) => document.project.computes)))
  }

  async #closeComputes(lab: Lab, ask: AskCompute): Promise<void> {
    await mapLimit(lab.document.project.computes, (computeId) => ask(computeId).closeProject(lab.id).catch(unlessGone))
  }

  async #saveOpen(lab: Lab, is_open: boolean): Promise<void> {
    await lab.edit(({ project }) => ({
      changes: new Changes().project({ ...project, is_open }),
      news: () => [],
      result: undefined,
    }))
    await this.#keepHead(lab.id, lab.document.project)
  }

  /** Reads the nodes of a lab of its computes. */
  async #refresh(lab: Lab, computes: readonly string[], ask: AskCompute): Promise<void> {
    await mapLimit(computes, async (computeId) => {
      const nodes = [...lab.document.nodes.values()].filter(({ compute_id }) => compute_id === computeId)
      await mapLimit([...new Set(nodes.map(({ node_type }) => node_type))], async (kind) => {
        try {
          const shown = new Map((await ask(computeId).nodes(lab.id, kind)).map((node) => [node.node_id, node]))
          for (const { node_id, node_type } of nodes) {
            if (node_type !== kind) continue
            const node = shown.get(node_id)
            if (node === undefined)
              lab.troubles.set(node_id, 'Its compute does not have it any more: delete it, or make it again')
            else {
              lab.troubles.delete(node_id)
              lab.shown.set(node_id, node)
            }
          }
        } catch (error) {
          for (const { node_id, node_type } of nodes) {
            if (node_type === kind) lab.troubles.set(node_id, (error as Error).message)
          }
        }
      })
    })
  }

  /** A compute is there again, or was not heard: its part of each lab is opened if it is not, and read. */
  async #refreshAll(computeId: string): Promise<void> {
    const ask = ownAsk(this.computes)
    for (const lab of this.#openOn(computeId)) {
      const { name } = lab.document.project
      try {
        const there = await ask(computeId).openProject({ project_id: lab.id, name })
        // It was renamed while the compute was away.
        if (there.name !== name) await ask(computeId).updateProject(lab.id, { name })
        await this.#refresh(lab, [computeId], ask)
        await this.#startAfterReboot(lab, [computeId], ask)
      } catch (error) {
        this.#absent(lab, computeId, error as Error)
      }
      this.#tellNodes(lab, computeId)
    }
  }

  #openOn(computeId: string): Lab[] {
    return [...this.#open.values()].filter(({ document }) => document.project.computes.includes(computeId))
  }

  #tellNodes(lab: Lab, computeId: string): void {
    for (const record of lab.document.nodes.values()) {
      if (record.compute_id === computeId) lab.tell({ action: 'node.updated', event: lab.nodeView(record) })
    }
  }

  /** 503 while a compute of the lab is not connected: what is there would be half of what is asked for. */
  async #requirePresent(lab: Lab, what: 'close' | 'delete'): Promise<void> {
    const [name] = await this.computes.absent(lab.document.project.computes)
    if (name === undefined) return
    throw new ApiError(
      503,
      `The compute ${name} has nodes of the project ${lab.document.project.name} and is not connected: ${what} the project when ` +
        'the compute is there again, or remove the compute by DELETE /v2/computes/{compute_id} first',
      { word: 'compute-unreachable', headers: retryAfter },
    )
  }

  /** A compute tells what happened to a node. */
  #heard(lab: Lab, computeId: string, payload: EventPayload): void {
    if (payload.type === 'node.updated' || payload.type === 'node.deleted') {
      const { kind: _, ...shown } = payload.node as unknown as {
        kind: string
        node_id: string
        status: string
        status_reason?: string | null
        name: string
      }
      const record = lab.document.nodes.get(shown.node_id)
      if (record === undefined || record.compute_id !== computeId) return
      lab.troubles.delete(record.node_id)
      this.#noteRun(lab, shown)
      if (payload.type === 'node.deleted') lab.shown.delete(record.node_id)
      else lab.shown.set(record.node_id, shown)
      if (payload.type === 'node.deleted')
        lab.troubles.set(record.node_id, 'It was deleted on its compute: delete it here, or make it again')
      lab.tell({ action: 'node.updated', event: lab.nodeView(record) })
    } else if (payload.type.startsWith('log.') && 'message' in payload)
      lab.tell({ action: payload.type, event: { message: payload.message } })
  }

  /** Remembers whether a node is to run. One that ended by itself, or with the computer, still is. */
  #noteRun(
    lab: Lab,
    { node_id, status, status_reason }: { node_id: string; status: string; status_reason?: string | null },
  ): void {
    const runs = status !== 'stopped'
    if (runs === lab.ran.has(node_id) || (!runs && status_reason != null)) return
    if (runs) lab.ran.add(node_id)
    else lab.ran.delete(node_id)
    if (!lab.document.project.auto_start || this.#unsaved.has(lab)) return
    const cancel = startTimer(() => {
      this.#unsaved.delete(lab)
      lab.saveRan().catch(ignore('the next change is saved with it'))
    }, saveRanMs)
    this.#unsaved.set(lab, cancel)
  }

  #absent(lab: Lab, computeId: string, error: Error): void {
    for (const { node_id, compute_id } of lab.document.nodes.values()) {
      if (compute_id === computeId) lab.troubles.set(node_id, error.message)
    }
  }

  #takeName(id: string, record: ProjectRecord): void {
    this.#requireFreeName(id, record.name)
    this.#heads.set(id, record)
  }

  #requireFreeName(id: string, name: string): void {
    const key = nameKey(name)
    for (const [other, head] of this.#heads) {
      if (other !== id && nameKey(head.name) === key)
        throw conflict(`name: there is a project ${head.name} (${other}) already; choose another name`, {
          word: 'name-taken',
        })
    }
  }
}

/** The service itself asks. */
const ownAsk =
  (computes: LabComputes): AskCompute =>
  (computeId) =>
    computes.client(computeId)
/** A compute that is not there is renamed when it comes back. */
function unlessAway(error: unknown): void {
  if (!(error instanceof ApiError) || error.word !== 'compute-unreachable') throw error
}

function requireName(name: string): void {
  if (isUuid(name)) throw badRequest('name: a name that looks like an id cannot be told from one; choose another name')
}

const projectExists = (id: string): ApiError =>
  conflict(`project_id: there is a project ${id} already`, { word: 'project-exists' })

const noSuchProject = (word: string): ApiError =>
  notFound(`project_id: there is no project ${word}`, { word: 'no-such-project' })

/** A lab that is not in this process: of it only the settings are known. */
function shownHead(
  { computes: _, is_open: __, unfinished: ___, restoring: ____, taking: _____, ...record }: ProjectRecord,
  status: LabProject['status'],
): LabProject {
  return { ...record, status, filename: `${record.name}.gns3` }
}

/** A project that only a compute knows, as a lab that was not opened here yet. */
const unmanaged = ({ project_id, name, path }: Project): LabProject => ({
  project_id,
  name: name ?? project_id.slice(0, 8),
  status: 'closed',
  ...withDefaults(labSettings, {}),
  path,
  filename: `${name ?? project_id}.gns3`,
  revision: 0,
})
