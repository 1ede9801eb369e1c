import { join } from 'node:path'
import { conflict } from '../../../src/errors.ts'
import type { Project } from '../../../src/model/project.ts'
import { Serial } from '../../../src/serial.ts'
import type { LabNode } from '../nodes/lab-node.ts'
import { type ProjectRecord, writeProject } from './project-record.ts'

/** A project in memory. */
export class OpenProject {
  readonly id: string
  /** Where new projects are created. */
  readonly location: string
  /** By `{kind}:{node_id}`. */
  readonly nodes = new Map<string, LabNode>()
  record: ProjectRecord
  path: string
  readonly #saving = new Serial()
  readonly #closing = new AbortController()
  /** Uploads and other work that writes into the directory. */
  readonly #writers = new Set<Promise<unknown>>()

  constructor(record: ProjectRecord, path: string, location: string) {
    this.id = record.project_id
    this.record = record
    this.path = path
    this.location = location
  }

  get filesDirectory(): string {
    return join(this.path, 'project-files')
  }

  /** Whether the project is being closed: nothing new begins in it. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted
  }

  /** From now on nothing new begins in the project; what writes into its directory is ended. Resolves when it has ended. */
  async beginClosing(): Promise<void> {
    this.#closing.abort(conflict(`project_id: project ${this.id} is being closed; nothing was written`))
    await Promise.allSettled(this.#writers)
  }

  /** Runs what writes into the directory of the project; `signal` aborts when the project is being closed. 409 when it is. */
  async write<T>(run: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.requireUsable()
    const writing = run(this.#closing.signal)
    this.#writers.add(writing)
    try {
      return await writing
    } finally {
      this.#writers.delete(writing)
    }
  }

  /** Writes the record as it is when it is the turn of this: a later state is never replaced by an earlier one. */
  save(): Promise<void> {
    return this.#saving.run(this.id, () => writeProject(this.path, this.record))
  }

  /** 409 while it is being closed. */
  requireUsable(): void {
    if (this.isClosing) throw conflict(`project_id: project ${this.id} is being closed`)
  }

  view(): Project {
    return viewOf(this.record, { path: this.path, location: this.location, status: 'open' })
  }
}

/** A project as it is shown. */
export function viewOf(
  { project_id, name, temporary, variables }: ProjectRecord,
  { path, location, status }: Required<Pick<Project, 'path' | 'location' | 'status'>>,
): Project {
  return { project_id, name, path, location, temporary, variables, status }
}
