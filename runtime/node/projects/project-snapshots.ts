import { constants } from 'node:fs'
import { copyFile, cp, lstat, mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { Check } from '@sinclair/typebox/value'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import { conflict, notFound } from '../../../src/errors/api-error.ts'
import type { SnapshotAgent } from '../../../src/host-agent.ts'
import type { Project } from '../../../src/model/project.ts'
import { ProjectSnapshot, type RestoreStep } from '../../../src/model/project-snapshot.ts'
import { isUuid } from '../../../src/schema/fields.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { makeDirectory, removeTree, syncDirectory } from '../storage/durable-file.ts'
import { markerDirectory } from '../storage/paths.ts'
import type { OpenProject } from './open-project.ts'
import { nodeRecords, readProject, writeProject } from './project-record.ts'

export interface SnapshotsOptions {
  readonly projects: { get(id: string): Promise<Project>; find(id: string): Promise<OpenProject> }
  readonly minFreeMb: () => number
}

/** What a snapshot has, by its name there, and where that is in a project. */
const parts = {
  'project-files': (path: string) => join(path, 'project-files'),
  nodes: nodeRecords,
} as const
const partNames = Object.keys(parts) as (keyof typeof parts)[]
/** Directories of `project-files` that are no node's. */
const ofTheMoment = new Set(['captures', 'tmp'])

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
    return this.#serial.run(projectId, () => project.write((signal) => this.#take(project, snapshotId, signal)))
  }

  async #take(project: OpenProject, snapshotId: string, signal: AbortSignal): Promise<ProjectSnapshot> {
    const { path } = project
    const place = placeOf(path, snapshotId)
    if ((await this.#read(path, snapshotId)) !== undefined)
      throw conflict(`snapshot_id: there is a snapshot ${snapshotId} already`)
    requireStopped(project)
    await requireSpace(path, this.#options.minFreeMb())
    const half = `${place}.part`
    try {
      await tidy(path)
      await makeDirectory(half)
      const size = await withDiskErrors('The snapshot', () => this.#copy(path, half, signal))
      requireStopped(project)
      const facts: ProjectSnapshot = { snapshot_id: snapshotId, created_at: Date.now(), size }
      await writeFile(join(half, 'snapshot.json'), JSON.stringify(facts), { flush: true })
      await withDiskErrors('The snapshot', () => rename(half, place))
      await syncDirectory(join(place, '..'))
      return facts
    } catch (error) {
      await removeTree(half)
      throw error
    }
  }

  remove(projectId: string, snapshotId: string): Promise<void> {
    return this.#serial.run(projectId, async () => {
      const { path } = await this.#options.projects.get(projectId)
      await this.#find(path, snapshotId)
      const place = placeOf(path, snapshotId)
      // What is half removed is no snapshot.
      await rename(place, `${place}.part`)
      await tidy(path)
    })
  }

  restore(projectId: string, snapshotId: string, step: RestoreStep): Promise<void> {
    return this.#serial.run(projectId, () => this.#restore(projectId, snapshotId, step))
  }

  async #restore(projectId: string, snapshotId: string, step: RestoreStep): Promise<void> {
    const { path, status } = await this.#options.projects.get(projectId)
    const place = join(path, markerDirectory, 'restore')
    const [next, before] = [join(place, 'next'), join(place, 'before')]
    if ((step === 'commit' || step === 'undo') && status === 'open' && (step === 'commit' || (await exists(before))))
      throw conflict(`project_id: project ${projectId} is open: close it first`)
    if (step === 'prepare') {
      await this.#find(path, snapshotId)
      if (await exists(before)) throw conflict('A restore of this project was not finished: undo or finish it first')
      await requireSpace(path, this.#options.minFreeMb())
      try {
        await removeTree(place)
        await makeDirectory(`${next}.part`)
        await withDiskErrors('The restore', () => this.#stage(placeOf(path, snapshotId), `${next}.part`))
        await requireSpace(path, this.#options.minFreeMb())
        await rename(`${next}.part`, next)
      } catch (error) {
        await removeTree(place)
        throw error
      }
    } else if (step === 'commit') await withDiskErrors('The restore', () => this.#exchange(path, next, before))
    else if (step === 'undo') await withDiskErrors('The restore', () => this.#exchangeBack(path, place, before))
    else await removeTree(place)
  }

  /** Puts the parts of `next` in the place of those of the project, which go to `before`. */
  async #exchange(path: string, next: string, before: string): Promise<void> {
    if (!(await exists(next))) throw conflict('The restore is not prepared')
    const found = await readProject(path)
    const then = await readProject(next)
    if (found === undefined || then === undefined) throw conflict('The record of the project cannot be read')
    await makeDirectory(before)
    await copyFile(recordOf(path), join(before, 'project.json'))
    for (const name of partNames) {
      const there = parts[name](path)
      await mkdir(there, { recursive: true, mode: 0o700 })
      await rename(there, join(before, name))
      await rename(join(next, name), there)
    }
    await writeProject(path, { ...found.record, links: then.record.links ?? [], deleted: [] })
  }

  async #exchangeBack(path: string, place: string, before: string): Promise<void> {
    for (const name of partNames) {
      if (!(await exists(join(before, name)))) continue
      await removeTree(parts[name](path))
      await rename(join(before, name), parts[name](path))
    }
    if (await exists(join(before, 'project.json'))) {
      const kept = JSON.parse(await readFile(join(before, 'project.json'), 'utf8'))
      await writeProject(path, { ...kept, open: false })
    }
    await removeTree(place)
  }

  async #stage(snapshot: string, to: string): Promise<void> {
    await mkdir(join(to, markerDirectory), { mode: 0o700 })
    await copyFile(recordOf(snapshot), recordOf(to))
    await copyParts((name) => join(snapshot, name), to)
  }

  /** Copies what a snapshot has of a project; the number of bytes of the files. */
  async #copy(path: string, to: string, signal: AbortSignal): Promise<number> {
    await mkdir(join(to, markerDirectory), { mode: 0o700 })
    await copyFile(recordOf(path), recordOf(to))
    return copyParts((name) => parts[name](path), to, signal)
  }

  async #find(path: string, snapshotId: string): Promise<ProjectSnapshot> {
    const found = await this.#read(path, snapshotId)
    if (found !== undefined) return found
    throw notFound(`snapshot_id: the project has no snapshot ${snapshotId} on this compute`)
  }

  async #read(path: string, snapshotId: string): Promise<ProjectSnapshot | undefined> {
    const text = await readFile(join(placeOf(path, snapshotId), 'snapshot.json'), 'utf8').catch(() => undefined)
    const value: unknown = text === undefined ? undefined : JSON.parse(text)
    return Check(ProjectSnapshot, value) ? value : undefined
  }
}

const placeOf = (path: string, id: string): string => join(path, markerDirectory, 'snapshots', id)
/** Removes what a service that was killed left half made or half removed. */
async function tidy(path: string): Promise<void> {
  const directory = join(path, markerDirectory, 'snapshots')
  const names = await readdir(directory).catch(() => [])
  for (const name of names) if (name.endsWith('.part')) await removeTree(join(directory, name))
}

const recordOf = (path: string): string => join(path, markerDirectory, 'project.json')
const exists = async (path: string): Promise<boolean> => (await stat(path).catch(() => undefined)) !== undefined

/** 409 while a node of the project runs. */
function requireStopped({ nodes }: OpenProject): void {
  for (const { status, record } of nodes.values())
    if (status !== 'stopped')
      throw conflict(`${record.name} runs: stop the nodes of the project first`, { word: 'node-running' })
}

/** Copies the parts of a snapshot, without sockets, FIFOs and what is of the moment; the number of bytes of the files. */
async function copyParts(
  placeOfPart: (name: keyof typeof parts) => string,
  to: string,
  signal?: AbortSignal,
): Promise<number> {
  let size = 0
  for (const name of partNames) {
    const source = placeOfPart(name)
    await mkdir(join(to, name), { recursive: true, mode: 0o700 })
    if (!(await exists(source))) continue
    const filter = async (path: string): Promise<boolean> => {
      signal?.throwIfAborted()
      const [first = ''] = relative(source, path).split(sep)
      if (name === 'project-files' && ofTheMoment.has(first)) return false
      const stats = await lstat(path).catch(() => undefined)
      if (stats?.isFile()) size += stats.size
      return stats !== undefined && (stats.isFile() || stats.isDirectory() || stats.isSymbolicLink())
    }
    await cp(source, join(to, name), {
      recursive: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
      filter,
    })
  }
  return size
}
