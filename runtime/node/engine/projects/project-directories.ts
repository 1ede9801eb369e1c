import { cp, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Project } from '../../../../src/model/project.ts'
import { isUuid } from '../../../../src/model/schema/fields.ts'
import { removeDurable, writeDurable } from '../storage/durable-file.ts'
import { markerDirectory, type PathRules } from '../storage/paths.ts'
import { projectView } from './open-project.ts'
import { deleteProject, readProject } from './project-record.ts'

/** Where projects are on disk: in the projects directory, or elsewhere. */
export class ProjectDirectories {
  /** The projects directory. */
  readonly #inside: string
  /** Directory of files with the paths of projects outside the projects directory. */
  readonly #elsewhere: string

  constructor({ projectsDirectory, dataDirectory }: PathRules) {
    this.#inside = projectsDirectory
    this.#elsewhere = join(dataDirectory, 'elsewhere')
  }

  /** The directory of a project, or of a new one with this id. */
  async of(id: string): Promise<string> {
    return (await this.#outside(id)) ?? join(this.#inside, id)
  }

  /** The directories that may contain projects. */
  async all(): Promise<string[]> {
    const [inside = [], outside = []] = await Promise.all(
      [this.#inside, this.#elsewhere].map((directory) => readdir(directory).catch(() => [])),
    )
    const elsewhere = await Promise.all(outside.filter(isUuid).map((id) => this.#outside(id)))
    const paths = [...inside.filter(isUuid).map((id) => join(this.#inside, id)), ...elsewhere]
    return [...new Set(paths.filter((path) => path !== undefined))]
  }

  /** Records the directory of a project that is not in the projects directory. */
  async record(id: string, path: string): Promise<void> {
    await mkdir(this.#elsewhere, { recursive: true, mode: 0o700 })
    await writeDurable(join(this.#elsewhere, id), path)
  }

  async delete(id: string, path: string): Promise<void> {
    await deleteProject(path, id)
    await removeDurable(join(this.#elsewhere, id))
  }

  /** A closed project; undefined for a project that is being deleted. */
  async closed(id: string, directory?: string): Promise<Project | undefined> {
    const path = directory ?? (await this.of(id))
    const record = (await readProject(path))?.record
    if (record?.project_id !== id || record.ending === 'remove') return undefined
    return projectView(record, { path, location: this.#inside, status: 'closed' })
  }

  async #outside(id: string): Promise<string | undefined> {
    const path = await readFile(join(this.#elsewhere, id), 'utf8').catch(() => undefined)
    if (path === undefined) return undefined
    // The directory may no longer have this project.
    return (await readProject(path))?.record.project_id === id ? path : undefined
  }
}

/** Whether a new project can be created in a directory: it is missing, empty, or has files of a lab without records. */
export async function isVacant(path: string): Promise<boolean> {
  const names: string[] = await readdir(path).catch(() => [])
  return names.length === 0 || names.includes('project-files') || names.every((name) => name === markerDirectory)
}

export async function moveDirectory(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o700 })
  try {
    await rename(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    try {
      await cp(from, to, { recursive: true, verbatimSymlinks: true })
    } catch (failure) {
      await rm(to, { recursive: true, force: true })
      throw failure
    }
    await rm(from, { recursive: true, force: true })
  }
}
