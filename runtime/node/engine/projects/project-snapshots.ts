import { constants } from 'node:fs'
import { copyFile, cp, lstat, mkdir, open, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { basename, join, relative } from 'node:path'
import { Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { SnapshotAgent } from '../../../../src/host-agent.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { mapLimit } from '../../../../src/lib/async/map-limit.ts'
import { ApiError, conflict, notFound } from '../../../../src/lib/errors/api-error.ts'
import { StateMachine } from '../../../../src/lib/state-machine.ts'
import type { Project } from '../../../../src/model/project.ts'
import { ProjectSnapshot, type RestoreStep, restoreSteps } from '../../../../src/model/project-snapshot.ts'
import { isUuid } from '../../../../src/model/schema/fields.ts'
import type { EngineNode } from '../nodes/engine-node.ts'
import type { NodeLifecycle } from '../nodes/lifecycle.ts'
import type { NodeTable } from '../nodes/node-table.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { jsonOf, makeDirectory, removeTree, syncDirectory } from '../storage/durable-file.ts'
import { markerDirectory } from '../storage/paths.ts'
import type { OpenProject } from './open-project.ts'
import { nodeRecordFile, nodeRecords, readProject, writeProject } from './project-record.ts'

export interface SnapshotsOptions {
  readonly projects: { get(id: string): Promise<Project>; find(id: string): Promise<OpenProject> }
  readonly table: NodeTable
  readonly lifecycle: Pick<NodeLifecycle, 'resume' | 'isAlwaysOn'>
  /** 503 while the state of a node of the project is unknown. */
  readonly requireKnown: (project: OpenProject) => void
  readonly minFreeMb: () => number
}

/** What a snapshot has, by its name there, and where that is in a project. */
const parts = {
  'project-files': (path: string) => join(path, 'project-files'),
  nodes: nodeRecords,
} as const
const partNames = Object.keys(parts) as (keyof typeof parts)[]
/** Directories of `project-files` that are not a node's. */
const ofTheMoment = new Set(['captures', 'tmp'])
/** In a snapshot under way: the keys of nodes that run on after it. */
const pausedName = 'paused.json'
const Keys = Type.Array(Type.String())
/** How many machines write their memory at once: more take turns on the disk. */
const maxWriters = 2

/**
 * Snapshots of projects, `.patchbay/snapshots/{id}` of each: they are on the file system of the project, so that copies share their
 * blocks where it can (ioctl_ficlone(2)), and they go and move with the project.
 */
export class ProjectSnapshots implements SnapshotAgent {
  readonly #options: SnapshotsOptions
  /** Changes of the snapshots of one project come one after the other. */
  readonly #serial = new KeyedMutex()

  constructor(options: SnapshotsOptions) {
    this.#options = options
  }

  async list(projectId: string): Promise<ProjectSnapshot[]> {
    const { path } = await this.#options.projects.get(projectId)
    const names = (await readdir(join(path, markerDirectory, 'snapshots')).catch(() => [])).filter(isUuid)
    const all = await Promise.all(names.map((id) => this.#read(path, id)))
    return all.filter((it) => it !== undefined).sort((a, b) => a.created_at - b.created_at)
  }

  async take(projectId: string, snapshotId: string): Promise<ProjectSnapshot> {
    const project = await this.#options.projects.find(projectId)
    const { table } = this.#options
    const keys = [...project.nodes.keys()]
    return this.#serial.run(projectId, () =>
      project.write((signal) => table.lockAll(keys, () => this.#create(project, snapshotId, signal))),
    )
  }

  async #create(project: OpenProject, snapshotId: string, signal: AbortSignal): Promise<ProjectSnapshot> {
    const { path } = project
    const directory = snapshotDirectory(path, snapshotId)
    if ((await this.#read(path, snapshotId)) !== undefined)
      throw conflict(`snapshot_id: a snapshot ${snapshotId} already exists`)
    this.#options.requireKnown(project)
    const running = [...project.nodes.values()].filter(({ status }) => status !== 'stopped')
    await requireKeepable(running)
    await requireSpace(path, this.#options.minFreeMb())
    const half = `${directory}.part`
    try {
      await tidy(path)
      await makeDirectory(half)
      const size = await withDiskErrors('The snapshot', () => this.#copy(project, half, running, signal))
      await syncTree(half)
      const ran = Object.fromEntries(
        running
          .filter((node) => !this.#options.lifecycle.isAlwaysOn(node))
          .map(({ record, status }) => [record.node_id, status === 'suspended' ? status : 'started'] as const),
      )
      const facts: ProjectSnapshot = { snapshot_id: snapshotId, created_at: Date.now(), size, ran }
      await writeFile(join(half, 'snapshot.json'), JSON.stringify(facts), { flush: true })
      await withDiskErrors('The snapshot', () => rename(half, directory))
      await syncDirectory(join(directory, '..'))
      return facts
    } catch (error) {
      await removeTree(half)
      throw error
    }
  }

  /** Reverts a snapshot that a killed service began: nodes that it paused are resumed. */
  async recover({ path, nodes }: OpenProject): Promise<void> {
    const directory = join(path, markerDirectory, 'snapshots')
    for (const name of await readdir(directory).catch(() => [])) {
      // While the file is incomplete, no node is paused yet.
      const keys = await readFile(join(directory, name, pausedName), 'utf8')
        .then(jsonOf(Keys))
        .catch(() => [])
      for (const key of keys) if (nodes.has(key)) this.#options.table.queue(key, (node) => this.#runOn(node))
    }
    await tidy(path)
  }

  async #runOn(node: EngineNode): Promise<void> {
    if (node.status === 'suspended') await this.#options.lifecycle.resume(node)
  }

  remove(projectId: string, snapshotId: string): Promise<void> {
    return this.#serial.run(projectId, async () => {
      const { path } = await this.#options.projects.get(projectId)
      await tidy(path)
      await this.#find(path, snapshotId)
      const directory = snapshotDirectory(path, snapshotId)
      // What is half removed is not a snapshot.
      await rename(directory, `${directory}.part`)
      await tidy(path)
    })
  }

  restore(projectId: string, snapshotId: string, step: RestoreStep): Promise<void> {
    return this.#serial.run(projectId, () => this.#restore(projectId, snapshotId, step))
  }

  async #restore(projectId: string, snapshotId: string, step: RestoreStep): Promise<void> {
    const { path, status } = await this.#options.projects.get(projectId)
    const directory = join(path, markerDirectory, 'restore')
    const [next, before] = [join(directory, 'next'), join(directory, 'before')]
    const state = (await exists(before)) ? 'swapped' : (await exists(next)) ? 'prepared' : 'none'
    if (status === 'open' && (step === 'commit' || (step === 'undo' && state === 'swapped')))
      throw conflict(`project_id: project ${projectId} is open: close it first`)
    if (step === 'prepare') await this.#find(path, snapshotId)
    if (!new StateMachine('A restore', restoreSteps, state).can(step))
      throw conflict(
        step === 'commit'
          ? 'The restore is not prepared'
          : 'A restore of this project was not finished: undo or finish it first',
      )
    if (step === 'prepare') {
      await requireSpace(path, this.#options.minFreeMb())
      try {
        await removeTree(directory)
        await makeDirectory(`${next}.part`)
        await withDiskErrors('The restore', () => this.#stage(snapshotDirectory(path, snapshotId), `${next}.part`))
        await requireSpace(path, this.#options.minFreeMb())
        await rename(`${next}.part`, next)
      } catch (error) {
        await removeTree(directory)
        throw error
      }
    } else if (step === 'commit') await withDiskErrors('The restore', () => this.#exchange(path, next, before))
    else if (step === 'undo') await withDiskErrors('The restore', () => this.#exchangeBack(path, directory, before))
    else await removeTree(directory)
  }

  /** Puts the parts of `next` in the place of those of the project, which go to `before`. Goes on after a crash in the middle. */
  async #exchange(path: string, next: string, before: string): Promise<void> {
    const found = await readProject(path)
    const then = await readProject(next)
    if (found === undefined || then === undefined) throw conflict('The record of the project cannot be read')
    await makeDirectory(before)
    const kept = join(before, 'project.json')
    if (!(await exists(kept))) {
      await copyFile(recordOf(path), `${kept}.part`)
      await rename(`${kept}.part`, kept)
    }
    for (const name of partNames) {
      if (!(await exists(join(next, name)))) continue
      const there = parts[name](path)
      if (await exists(join(before, name))) await removeTree(there)
      else {
        await mkdir(there, { recursive: true, mode: 0o700 })
        await rename(there, join(before, name))
      }
      await rename(join(next, name), there)
    }
    await writeProject(path, { ...found.record, links: then.record.links ?? [], deleted: [] })
  }

  async #exchangeBack(path: string, directory: string, before: string): Promise<void> {
    for (const name of partNames) {
      if (!(await exists(join(before, name)))) continue
      await removeTree(parts[name](path))
      await rename(join(before, name), parts[name](path))
    }
    if (await exists(join(before, 'project.json'))) {
      const kept = JSON.parse(await readFile(join(before, 'project.json'), 'utf8'))
      await writeProject(path, { ...kept, open: false })
    }
    await removeTree(directory)
  }

  async #stage(snapshot: string, to: string): Promise<void> {
    await mkdir(join(to, markerDirectory), { mode: 0o700 })
    await copyFile(recordOf(snapshot), recordOf(to))
    await copyParts((name) => join(snapshot, name), to)
  }

  /**
   * Copies what a snapshot has of a project; the number of bytes of the files. Nodes that run are still together while their memory is
   * written and their directories are copied.
   */
  async #copy(
    { path, nodes }: { readonly path: string; readonly nodes: ReadonlyMap<string, EngineNode> },
    to: string,
    running: readonly EngineNode[],
    signal: AbortSignal,
  ): Promise<number> {
    await mkdir(join(to, markerDirectory), { mode: 0o700 })
    await copyFile(recordOf(path), recordOf(to))
    const paused = running.filter(({ status, kind }) => status === 'started' && kind.control !== undefined)
    await writeFile(join(to, pausedName), JSON.stringify(paused.map(({ key }) => key)), { flush: true })
    const directoryFor = ({ directory }: EngineNode) =>
      join(to, 'project-files', relative(join(path, 'project-files'), directory))
    for (const node of running) await makeDirectory(directoryFor(node))
    const kept = await withQuiescedGuests(running, async () => {
      const keep = (node: EngineNode, until: AbortSignal) =>
        withName(node, async () => (await node.kind.control?.keepMemory?.(node, directoryFor(node), until)) ?? 0)
      const copy = (node: EngineNode, until: AbortSignal) =>
        copyTree(node.directory, directoryFor(node), { signal: until })
      return (await inTurns(running, signal, keep)) + (await inTurns(running, signal, copy))
    })
    const skipped = new Set(running.map(({ directory }) => directory))
    const all = [...nodes.values()].filter(({ kind }) => kind.gather !== undefined)
    const gathered = await inTurns(all, signal, async (node, until) => {
      await makeDirectory(directoryFor(node))
      return withName(node, async () => (await node.kind.gather?.(node, directoryFor(node), until)) ?? 0)
    })
    const size = kept + gathered + (await copyParts((name) => parts[name](path), to, { signal, skipped }))
    for (const node of running) {
      const file = basename(nodeRecordFile(path, node.record.kind, node.record.node_id))
      await writeFile(join(to, 'nodes', file), node.stored({ running: this.#options.lifecycle.isAlwaysOn(node) }))
    }
    await removeTree(join(to, pausedName))
    return size
  }

  async #find(path: string, snapshotId: string): Promise<ProjectSnapshot> {
    const found = await this.#read(path, snapshotId)
    if (found !== undefined) return found
    throw noSuchSnapshot(snapshotId)
  }

  async #read(path: string, snapshotId: string): Promise<ProjectSnapshot | undefined> {
    const text = await readFile(join(snapshotDirectory(path, snapshotId), 'snapshot.json'), 'utf8').catch(
      () => undefined,
    )
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    return Check(ProjectSnapshot, value) ? value : undefined
  }
}

/** The directory of a snapshot of a project. */
export const snapshotDirectory = (path: string, id: string): string => join(path, markerDirectory, 'snapshots', id)
export const noSuchSnapshot = (snapshotId: string): ApiError =>
  notFound(`snapshot_id: the project has no snapshot ${snapshotId} on this compute`)

/** Removes what a service that was killed left half made or half removed. */
async function tidy(path: string): Promise<void> {
  const directory = join(path, markerDirectory, 'snapshots')
  const names = await readdir(directory).catch(() => [])
  for (const name of names) if (name.endsWith('.part')) await removeTree(join(directory, name))
}

const recordOf = (path: string): string => join(path, markerDirectory, 'project.json')
const exists = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

/** 409, with all their names, when nodes cannot be kept as they run. */
async function requireKeepable(running: readonly EngineNode[]): Promise<void> {
  const refusals = await mapLimit(running, (node) =>
    (node.kind.control?.requireKeepable?.(node) ?? Promise.resolve()).then(
      () => [],
      ({ message }: Error) => [`${node.record.name} (${message})`],
    ),
  )
  const named = refusals.flat()
  if (named.length === 0) return
  throw conflict(`A snapshot cannot save these nodes while they are running; stop them first: ${named.join(', ')}`, {
    code: 'node-running',
  })
}

/** Has errors for the client name the node. */
async function withName<T>({ record }: EngineNode, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 409) throw error
    throw conflict(`${record.name}: ${error.message}`, { cause: error })
  }
}

/** Works on nodes, a few at a time; the sum of the results. When one fails, the others have ended too before this rejects. */
async function inTurns(
  nodes: readonly EngineNode[],
  signal: AbortSignal,
  work: (node: EngineNode, signal: AbortSignal) => Promise<number>,
): Promise<number> {
  const over = new AbortController()
  const until = AbortSignal.any([signal, over.signal])
  const each = (node: EngineNode) =>
    work(node, until).catch((error: unknown) => {
      over.abort(error)
      return 0
    })
  const sizes = await mapLimit(nodes, each, maxWriters)
  over.signal.throwIfAborted()
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Runs a function while all of the nodes are still at the same time. */
async function withQuiescedGuests<T>(nodes: readonly EngineNode[], run: () => Promise<T>): Promise<T> {
  if (nodes.length === 0) return run()
  let entered = 0
  let [enter, fail]: [(result: Promise<T>) => void, (error: unknown) => void] = [() => {}, () => {}]
  const done = new Promise<T>((resolve, reject) => {
    ;[enter, fail] = [resolve, reject]
  })
  done.catch(ignore('it is awaited by the nodes that are still'))
  const still = (node: EngineNode) =>
    node.withQuiescedGuest(() => {
      if (++entered === nodes.length) enter(run())
      return done
    })
  // The others do not wait for a node that is not still.
  await Promise.allSettled(nodes.map((node) => still(node).catch(fail)))
  return done
}

/** Copies the parts of a snapshot; the number of bytes of the files. */
async function copyParts(
  pathOfPart: (name: keyof typeof parts) => string,
  to: string,
  options: CopyOptions = {},
): Promise<number> {
  let size = 0
  for (const name of partNames) {
    const source = pathOfPart(name)
    await mkdir(join(to, name), { recursive: true, mode: 0o700 })
    if (!(await exists(source))) continue
    const skipped = new Set(options.skipped)
    if (name === 'project-files') for (const it of ofTheMoment) skipped.add(join(source, it))
    size += await copyTree(source, join(to, name), { ...options, skipped })
  }
  return size
}

interface CopyOptions {
  readonly signal?: AbortSignal
  /** Paths that are left out. */
  readonly skipped?: ReadonlySet<string>
}

/** Copies a directory without sockets and FIFOs; the number of bytes of the files. */
async function copyTree(source: string, to: string, { signal, skipped }: CopyOptions): Promise<number> {
  let size = 0
  const filter = async (path: string): Promise<boolean> => {
    signal?.throwIfAborted()
    if (skipped?.has(path)) return false
    const stats = await lstat(path).catch(() => undefined)
    if (stats?.isFile()) size += stats.size
    return stats !== undefined && (stats.isFile() || stats.isDirectory() || stats.isSymbolicLink())
  }
  const mode = constants.COPYFILE_FICLONE
  await cp(source, to, { recursive: true, verbatimSymlinks: true, mode, filter })
  return size
}

/** Writes all of a directory to the disk. */
async function syncTree(directory: string): Promise<void> {
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue
    await using file = await open(join(entry.parentPath, entry.name))
    await file.sync()
  }
}
