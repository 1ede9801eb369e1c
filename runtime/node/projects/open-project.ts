import { join } from 'node:path'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import { conflict } from '../../../src/errors/api-error.ts'
import type { Project } from '../../../src/model/project.ts'
import type { LabNode } from '../nodes/lab-node.ts'
import { UnsavedRecords } from '../storage/unsaved-records.ts'
import { type ProjectRecord, writeProject } from './project-record.ts'

/** Told, for the user and the log, of what could not be saved. */
export type UnsavedListener = (message: string, error: unknown) => void

/** A project in memory. */
export class OpenProject {
  readonly id: string
  /** Where new projects are created. */
  readonly location: string
  /** Address of the consoles of its nodes. */
  readonly consoleHost: string
  /** By `{kind}:{node_id}`. */
  readonly nodes = new Map<string, LabNode>()
  record: ProjectRecord
  path: string
  readonly #saving = new KeyedMutex()
  #closing = new AbortController()
  /** Uploads and other work that writes into the directory. */
  readonly #writers = new Set<Promise<unknown>>()

  readonly #unsaved: UnsavedRecords

  /** `tell` hears of records that could not be saved. */
  constructor(
    record: ProjectRecord,
    path: string,
    location: string,
    tell: UnsavedListener = () => {},
    consoleHost = '127.0.0.1',
  ) {
    this.id = record.project_id
    this.record = record
    this.path = path
    this.location = location
    this.#unsaved = new UnsavedRecords(tell)
    this.consoleHost = consoleHost
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

  /** It could not be closed: it goes on. */
  endClosing(): void {
    this.#closing = new AbortController()
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
  async save(): Promise<void> {
    await this.#saving.run(this.id, () => writeProject(this.path, this.record))
    this.saved(this.id)
  }

  /** A record could not be saved, and what it is of goes on all the same: told once, until it has been saved. */
  unsaved(record: string, name: string, error: unknown): void {
    const why = (error as Error).message
    this.#unsaved.add(
      record,
      `${name} could not be saved, and what has changed is lost when the service ends: ${why}`,
      error,
    )
  }

  /** A record was saved. */
  saved(record: string): void {
    this.#unsaved.saved(record)
  }

  /** Writes down that UDP ports are not reserved for the project any more, where one of them is. */
  async forgetUdpPorts(ports: readonly number[]): Promise<void> {
    const { udp_ports = [] } = this.record
    if (!udp_ports.some((port) => ports.includes(port))) return
    this.record = { ...this.record, udp_ports: udp_ports.filter((port) => !ports.includes(port)) }
    // A project that is being closed keeps none.
    if (!this.isClosing) await this.save()
  }

  /** 409 while it is being closed. */
  requireUsable(): void {
    if (this.isClosing) throw conflict(`project_id: project ${this.id} is being closed`)
  }

  view(): Project {
    return projectView(this.record, { path: this.path, location: this.location, status: 'open' })
  }
}

/** A project as it is shown. */
export function projectView(
  { project_id, name, temporary, variables }: ProjectRecord,
  { path, location, status }: Required<Pick<Project, 'path' | 'location' | 'status'>>,
): Project {
  return { project_id, name, path, location, temporary, variables, status }
}
