import { mkdir, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { EventLog } from '../../../../src/fleet/events/event-log.ts'
import type { ProjectAgent } from '../../../../src/host-agent.ts'
import { inMebibytes, jsonBytes, type LabLimits, limitReached, mebibyte } from '../../../../src/labs/lab/lab-limits.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { ApiError, conflict, forbidden, notFound } from '../../../../src/lib/errors/api-error.ts'
import { requireNoSeparator } from '../../../../src/lib/errors/project-name.ts'
import { Revert } from '../../../../src/lib/revert.ts'
import { compareText } from '../../../../src/lib/text/compare-text.ts'
import type { Project, ProjectCreate, ProjectStatusFilter, ProjectUpdate } from '../../../../src/model/project.ts'
import type { Log } from '../../os/log/log.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import { isFull, requireSpace, withDiskErrors } from '../storage/disk.ts'
import { removeTreeDurable } from '../storage/durable-file.ts'
import { NewerRecord, recordVersion } from '../storage/newer-record.ts'
import { checkedProjectPath, markerDirectory, type PathRules } from '../storage/paths.ts'
import { OpenProject } from './open-project.ts'
import { isVacant, moveDirectory, ProjectDirectories } from './project-directories.ts'
import {
  deleteProject,
  type EngineProjectRecord,
  readProject,
  removeRemains,
  tidyProject,
  writeProject,
} from './project-record.ts'

export interface ProjectsOptions {
  readonly rules: PathRules
  readonly minFreeMb: () => number
  readonly limits: () => LabLimits
  readonly events: EventLog
  readonly ports: PortAllocator
  readonly log: Log
}

/** The operations of projects on their nodes. */
export interface ProjectNodes {
  /** Opens the nodes of a project from their records. `isUnclaimed`: a client opened the project, and creates its nodes again. */
  open(project: OpenProject, isUnclaimed: boolean): Promise<void>
  /** Ends the running nodes of a project that is deleted without being opened. */
  end(path: string): Promise<void>
  commit(project: OpenProject): Promise<void>
  /** The directory of a deleted node is removed. Never throws. */
  filesRemoved(kind: string, nodeId: string): Promise<void>
  /** Leaves the running nodes of a project alone that a newer program wrote. */
  leave(path: string): Promise<void>
  /** 503 while the state of a node of the project is unknown. */
  requireKnown(project: OpenProject): void
  close(project: OpenProject, how: 'close' | 'remove'): Promise<void>
}

/** Most variables of all open projects, MiB: they are in memory. */
const maxVariablesMb = 16

/** The projects of this compute: open projects are in memory, all projects are on disk. */
export class Projects implements ProjectAgent {
  readonly #open = new Map<string, OpenProject>()
  readonly #serial = new KeyedMutex()
  readonly #options: ProjectsOptions
  readonly #directories: ProjectDirectories
  /** Set by `restore`; requests come later. */
  #nodes!: ProjectNodes
  #restored: Promise<void> = Promise.resolve()
  /** Operations to repeat when the keepers answer, by project directory. */
  readonly #unfinished = new Map<string, () => Promise<void>>()

  constructor(options: ProjectsOptions) {
    this.#options = options
    this.#directories = new ProjectDirectories(options.rules)
  }

  /** Opens the projects again that the service before had open, and deletes temporary ones. Rejects at the end if one failed. */
  restore(nodes: ProjectNodes): Promise<void> {
    this.#nodes = nodes
    const restoring = this.#restore()
    this.#restored = restoring.catch(ignore('the caller gets the error; the other projects can be used'))
    return restoring
  }

  /** Number of open projects; does not wait for `restore`. */
  get openCount(): number {
    return this.#open.size
  }

  async list(status: ProjectStatusFilter = 'open'): Promise<Project[]> {
    await this.#restored
    const closed = status === 'open' ? [] : await this.#allClosed()
    // Read last, so that a project that was opened meanwhile is shown as open.
    const open = [...this.#open.values()].map((project) => project.view())
    const isElsewhere = ({ project_id }: Project) => !this.#open.has(project_id)
    return [...(status === 'closed' ? [] : open), ...closed.filter(isElsewhere)]
  }

  async get(projectId: string): Promise<Project> {
    await this.#restored
    const open = this.#open.get(projectId)?.view()
    const found = open ?? (await this.#directories.closed(projectId)) ?? this.#open.get(projectId)?.view()
    if (found === undefined) throw notFound(`project_id: there is no project ${projectId}; ${listed}`, noSuchProject)
    return found
  }

  /** An open project; 404. */
  async find(projectId: string): Promise<OpenProject> {
    await this.#restored
    const project = this.#open.get(projectId)
    if (project !== undefined) return project
    const closed = await this.#directories.closed(projectId)
    const newer = closed && (await readProject(closed.path))?.newer
    if (newer !== undefined) throw newer
    if (closed === undefined)
      throw notFound(`project_id: there is no open project ${projectId}; ${listed}`, noSuchProject)
    const hint = 'open it first with POST /v2/compute/projects and its project_id and name'
    throw notFound(`project_id: project ${projectId} is closed; ${hint}`, { code: 'project-closed' })
  }

  async create(input: ProjectCreate): Promise<{ project: Project; created: boolean }> {
    await this.#restored
    const id = input.project_id ?? crypto.randomUUID()
    return this.#serial.run(id, async () => {
      const open = this.#open.get(id)
      if (open !== undefined) return { project: open.view(), created: false }
      const { rules } = this.#options
      this.#requireRoom(input.variables)
      await this.#finishRemoval(id)
      const wanted = input.path == null ? undefined : await checkedProjectPath(input.path, rules)
      const path = wanted ?? (await this.#directories.of(id))
      const project = await withDiskErrors('path', () => this.#openAt(path, id, input))
      return { project: project.view(), created: true }
    })
  }

  /** 413 when there are too many open projects for a further one, or their variables would be too many. `changed`: an open project. */
  #requireRoom(variables: unknown, changed?: OpenProject): void {
    const { projects } = this.#options.limits()
    if (changed === undefined && this.#open.size >= projects)
      throw limitReached(`This compute is limited to ${projects} open projects: close one first`, 'projects')
    const growth = jsonBytes(variables ?? undefined) - jsonBytes(changed?.record.variables ?? undefined)
    if (growth <= 0) return
    const all = [...this.#open.values()].map(({ record }) => jsonBytes(record.variables ?? undefined))
    const after = all.reduce((sum, bytes) => sum + bytes, growth)
    if (after > maxVariablesMb * mebibyte)
      throw limitReached(
        `The variables of all open projects are limited to ${maxVariablesMb} MiB in total and would have ${inMebibytes(after)}`,
      )
  }

  update(projectId: string, changes: ProjectUpdate): Promise<Project> {
    return this.#with(projectId, async (project) => {
      const name = changes.name ?? project.record.name
      if (name !== project.record.name) requireNoSeparator(name ?? '')
      if (changes.variables != null) this.#requireRoom(changes.variables, project)
      const path = await this.#newPath(project, changes.path ?? undefined)
      await requireSpace(project.path, this.#options.minFreeMb())
      if (path !== undefined) await withDiskErrors('path', () => this.#move(project, path))
      await this.#save(project, {
        name,
        temporary: changes.temporary ?? project.record.temporary,
        variables: changes.variables ?? project.record.variables,
      })
      this.#options.events.emit(projectId, { type: 'project.updated', project: project.view() })
      return project.view()
    })
  }

  close(projectId: string): Promise<void> {
    return this.#with(projectId, (project) => this.#close(project, project.record.temporary ? 'remove' : 'close'))
  }

  async remove(projectId: string): Promise<void> {
    await this.#restored
    if (this.#open.has(projectId)) return this.#with(projectId, (project) => this.#close(project, 'remove'))
    return this.#serial.run(projectId, async () => {
      if (!(await this.#finishRemoval(projectId))) await this.find(projectId)
    })
  }

  commit(projectId: string): Promise<void> {
    return this.#with(projectId, async (project) => {
      await this.#nodes.commit(project)
      await removeDeleted(project, this.#nodes)
      await withDiskErrors('The record of the project', () => project.save())
    })
  }

  async reserveUdpPort(projectId: string): Promise<number> {
    const project = await this.find(projectId)
    project.requireUsable()
    await using revert = new Revert(ignore('a change in memory does not fail'))
    const port = await this.#options.ports.allocate('udp', projectId)
    revert.add(() => this.#options.ports.release('udp', port, projectId))
    // The project may have been closed while the port was tested.
    project.requireUsable()
    // Changed before the save, so that of two simultaneous reservations the later save has both.
    const ports = () => project.record.udp_ports ?? []
    project.record = { ...project.record, udp_ports: [...ports(), port] }
    revert.add(() => {
      project.record = { ...project.record, udp_ports: ports().filter((other) => other !== port) }
    })
    await withDiskErrors('The record of the project', () => project.save())
    revert.commit()
    return port
  }

  async releaseUdpPort(projectId: string, port: number): Promise<void> {
    const project = await this.find(projectId)
    const { ports } = this.#options
    if (ports.ownerOfUdp(port) !== projectId)
      throw notFound(`udp_port: ${port} is not reserved for the project; if a NIO uses it, delete the NIO instead`)
    await withDiskErrors('The record of the project', () => project.forgetUdpPorts([port]))
    ports.release('udp', port, projectId)
  }

  async #openAt(path: string, id: string, input: ProjectCreate): Promise<OpenProject> {
    const { rules, minFreeMb } = this.#options
    const found = await readProject(path)
    if (found?.newer !== undefined) throw found.newer
    if (found !== undefined && found.record.project_id !== id)
      throw conflict(`path: it holds project ${found.record.project_id}`)
    if (found === undefined && !(await isVacant(path))) {
      throw conflict(
        'path: the directory contains files that are not a project of this service; choose an empty or a new directory',
      )
    }
    if (input.name != null && input.name !== found?.record.name) requireNoSeparator(input.name)
    await requireSpace(dirname(rules.projectsDirectory), minFreeMb())
    const record: EngineProjectRecord = {
      version: recordVersion,
      project_id: id,
      name: input.name ?? found?.record.name ?? null,
      temporary: input.temporary ?? found?.record.temporary ?? false,
      variables: input.variables ?? found?.record.variables ?? null,
      open: true,
      links: found?.record.links ?? [],
      deleted: found?.record.deleted ?? [],
    }
    const made = await mkdir(path, { recursive: true, mode: 0o700 })
    try {
      await tidyProject(path)
      if (path !== join(rules.projectsDirectory, id)) await this.#directories.record(id, path)
      await writeProject(path, record)
    } catch (error) {
      if (made !== undefined)
        await rm(made, { recursive: true, force: true }).catch(ignore('a directory without a marker is no project'))
      throw error
    }
    const project = this.#enter(record, path, found?.damaged === true)
    if (found !== undefined) await this.#nodes.open(project, true)
    return project
  }

  /** Enters a project into the table of open ones. */
  #enter(record: EngineProjectRecord, path: string, isDamaged: boolean): OpenProject {
    const { rules, events, log, ports } = this.#options
    const { project_id: id } = record
    const report = (message: string, error: unknown) => {
      log.error({ err: error, project: id }, message)
      events.emit(id, { type: 'log.error', message })
    }
    const project = new OpenProject(record, path, rules.projectsDirectory, report, ports.consoleHost)
    events.openProject(id)
    this.#open.set(id, project)
    if (isDamaged)
      events.emit(id, { type: 'log.warning', message: 'The record of the project was damaged; the one before is used' })
    return project
  }

  async #close(project: OpenProject, how: 'close' | 'remove'): Promise<void> {
    this.#nodes.requireKnown(project)
    if (how === 'remove') requireUnsealed(project)
    await this.#intend(project, how)
    await project.beginClosing()
    try {
      await this.#nodes.close(project, how)
    } catch (error) {
      // A keeper stopped answering during the close: the project stays open with its remaining nodes.
      project.endClosing()
      const { ending: _, ...record } = project.record
      project.record = record
      await project.save().catch((failure: unknown) => project.unsaved(project.id, 'The project', failure))
      throw error
    }
    if (how === 'close') await this.#settle(project)
    this.#options.ports.releaseAll(project.id)
    this.#open.delete(project.id)
    this.#options.events.emit(project.id, { type: 'project.closed', project: project.view() })
    this.#options.events.closeProject(project.id)
    if (how === 'remove') await this.#directories.delete(project.id, project.path)
  }

  /**
   * Records the operation, so that the next service finishes it if this one is killed. A full disk is not an error; a read-only disk is an
   * error for a deletion, but not for a close.
   */
  async #intend(project: OpenProject, ending: 'close' | 'remove'): Promise<void> {
    await this.#save(project, { ending }).catch((error: unknown) => {
      if (ending === 'remove' && !isFull(error)) throw error
      project.unsaved(project.id, 'The project', error)
    })
  }

  /** Changes the record of a project on disk and in memory; a failure changes neither. */
  async #save(project: OpenProject, changes: Partial<EngineProjectRecord>): Promise<void> {
    const before = project.record
    project.record = { ...before, ...changes }
    try {
      await withDiskErrors('The record of the project', () => project.save())
    } catch (error) {
      project.record = before
      throw error
    }
  }

  /** Writes the record of a closed project. A full disk does not keep the project open. */
  async #settle(project: OpenProject): Promise<void> {
    const { ending: _, ...record } = project.record
    project.record = { ...record, open: false, udp_ports: [] }
    await removeDeleted(project, this.#nodes)
    await withDiskErrors('The record of the project', () => project.save()).catch((error: unknown) =>
      project.unsaved(project.id, 'The closed project', error),
    )
  }

  /** Finishes an interrupted deletion of a project; returns whether there was one. */
  async #finishRemoval(projectId: string): Promise<boolean> {
    const path = await this.#directories.of(projectId)
    const found = await readProject(path)
    if (found?.record.ending !== 'remove' || found.record.project_id !== projectId) return false
    if (this.#unfinished.has(path)) {
      await this.#nodes.end(path)
      this.#unfinished.delete(path)
    }
    await this.#directories.delete(projectId, path)
    return true
  }

  /** The new directory of a project; undefined when it stays the same. 403, 409. */
  async #newPath(project: OpenProject, wanted: string | undefined): Promise<string | undefined> {
    if (wanted === undefined || wanted === project.path) return undefined
    if (!this.#options.rules.isLocal())
      throw forbidden('path: the directory of a project can only be changed in local mode')
    const path = await checkedProjectPath(wanted, this.#options.rules)
    if (path === project.path) return undefined
    this.#nodes.requireKnown(project)
    const running = [...project.nodes.values()].find(({ status }) => status !== 'stopped')
    if (running !== undefined)
      throw conflict(`path: ${running.record.name} is running in the old directory; stop it first`, {
        code: 'node-running',
      })
    requireUnsealed(project)
    const found = await readProject(path)
    if (found?.newer !== undefined) throw found.newer
    if (found !== undefined && found.record.project_id !== project.id)
      throw conflict(`path: it holds project ${found.record.project_id}`)
    return path
  }

  /** Moves the files of a project, unless the client has already copied them to the new directory. */
  async #move(project: OpenProject, path: string): Promise<void> {
    const before = project.path
    const isThere = (await stat(path).catch(() => undefined)) !== undefined
    if (!isThere) await moveDirectory(before, path)
    await this.#directories.record(project.id, path)
    await writeProject(path, project.stored)
    project.path = path
    for (const node of project.nodes.values()) {
      await mkdir(node.directory, { recursive: true, mode: 0o700 })
      await node.save()
    }
    if (!isThere) return
    if (project.record.temporary) await deleteProject(before, project.id)
    else await removeTreeDurable(join(before, markerDirectory))
  }

  async #allClosed(): Promise<Project[]> {
    const found: Project[] = []
    await mapLimit(await this.#directories.all(), async (path) => {
      const id = (await readProject(path))?.record.project_id
      const project = id === undefined || this.#open.has(id) ? undefined : await this.#directories.closed(id, path)
      if (project !== undefined) found.push(project)
    })
    return found.sort((a, b) => compareText(a.project_id, b.project_id))
  }

  async #restore(): Promise<void> {
    const paths = await this.#directories.all()
    // Before any project is opened, so that no other project gets these ports.
    await mapLimit(paths, async (path) => {
      const record = (await readProject(path))?.record
      for (const port of record?.open ? (record.udp_ports ?? []) : [])
        this.#options.ports.adopt('udp', port, record?.project_id ?? '')
    })
    const results = await Promise.allSettled(paths.map((path) => this.#restoreOne(path)))
    for (const result of results) if (result.status === 'rejected') throw result.reason
  }

  async #restoreOne(path: string): Promise<void> {
    const found = await readProject(path)
    if (found === undefined) return removeRemains(path)
    const { record, damaged, newer } = found
    if (newer !== undefined) {
      this.#options.log.warn({ project: record.project_id }, newer.message)
      return this.#nodes.leave(path)
    }
    if (record.temporary || record.ending === 'remove') {
      this.#options.ports.releaseAll(record.project_id)
      return this.#whenKnown(path, async () => {
        await this.#nodes.end(path)
        await this.#directories.delete(record.project_id, path)
      })
    }
    if (!record.open || this.#open.has(record.project_id)) return
    await tidyProject(path).catch(ignore('temporary files of a killed writer are harmless'))
    const project = this.#enter(record, path, damaged)
    await this.#nodes.open(project, false)
    if (record.ending === 'close') await this.#whenKnown(path, () => this.#close(project, 'close'))
  }

  /** Runs an operation that needs the state of nodes; repeats it later if it fails with 503. */
  async #whenKnown(path: string, run: () => Promise<void>): Promise<void> {
    try {
      await run()
      this.#unfinished.delete(path)
    } catch (error) {
      if (error instanceof NewerRecord) {
        this.#options.log.warn({}, error.message)
        return this.#nodes.leave(path)
      }
      if (!(error instanceof ApiError) || error.status !== 503) throw error
      this.#unfinished.set(path, run)
    }
  }

  /** Repeats the operations that failed with 503 (`#whenKnown`). */
  async finish(): Promise<void> {
    await Promise.all([...this.#unfinished].map(([path, run]) => this.#whenKnown(path, run)))
  }

  /** Runs a function with the lock of an open project; 409 while the project is being closed. */
  async #with<T>(projectId: string, run: (project: OpenProject) => Promise<T>): Promise<T> {
    ;(await this.find(projectId)).requireUsable()
    return this.#serial.run(projectId, async () => run(await this.find(projectId)))
  }
}

/** Removes the directories of nodes that were deleted since the last commit. */
async function removeDeleted(project: OpenProject, nodes: Pick<ProjectNodes, 'filesRemoved'>): Promise<void> {
  for (const name of project.record.deleted) {
    const [kind = '', id = ''] = name.split('/')
    if (project.nodes.has(`${kind}:${id}`)) continue
    await rm(join(project.filesDirectory, name), { recursive: true, force: true })
    await nodes.filesRemoved(kind, id)
  }
  project.record = { ...project.record, deleted: [] }
}

const listed = 'GET /v2/compute/projects lists the open projects'
const noSuchProject = { code: 'no-such-project' } as const

/** 409 when a newer program wrote the record of a node. */
function requireUnsealed(project: OpenProject): void {
  for (const node of project.nodes.values()) node.requireUnsealed()
}
