import { join } from 'node:path'
import { GroupCommit } from '../../../../src/lib/async/group-commit.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import { Revert } from '../../../../src/lib/revert.ts'
import type { Project } from '../../../../src/model/project.ts'
import type { EngineNode } from '../nodes/engine-node.ts'
import { withDiskErrors } from '../storage/disk.ts'
import { UnsavedRecords } from '../storage/unsaved-records.ts'
import { type EngineProjectRecord, type StoredLink, writeProject } from './project-record.ts'

/** Called with a message for the user and the error when a record could not be saved. */
export type UnsavedListener = (message: string, error: unknown) => void

export type LinkChanges = readonly (readonly [id: string, link: StoredLink | null])[]

/** For changes of links in memory. */
export const revertLinks = () => new Revert(ignore('a change in memory does not fail'))

/** A project in memory. */
export class OpenProject {
  readonly id: string
  /** Directory of new projects. */
  readonly location: string
  /** Address of the nodes' consoles. */
  readonly consoleHost: string
  /** By `{kind}:{node_id}`. */
  readonly nodes = new Map<string, EngineNode>()
  /** Direct links by their ids. */
  readonly links = new Map<string, StoredLink>()
  /** Counts what changes the states of direct links at once: a change of a link, or of the status of a node. */
  linkChanges = 0
  #linksAt: Map<string, readonly StoredLink[]> | undefined
  record: EngineProjectRecord
  path: string
  readonly #saving = new GroupCommit()
  #closing = new AbortController()
  /** Uploads and other operations that write into the directory. */
  readonly #writers = new Set<Promise<unknown>>()

  readonly #unsaved: UnsavedRecords

  /** `report` is called for records that could not be saved. */
  constructor(
    record: EngineProjectRecord,
    path: string,
    location: string,
    report: UnsavedListener = () => {},
    consoleHost = '127.0.0.1',
  ) {
    this.id = record.project_id
    this.record = record
    for (const link of record.links ?? []) this.links.set(link.link_id, link)
    this.path = path
    this.location = location
    this.#unsaved = new UnsavedRecords(report)
    this.consoleHost = consoleHost
  }

  get filesDirectory(): string {
    return join(this.path, 'project-files')
  }

  /** Whether the project is being closed; new operations are then refused. */
  get isClosing(): boolean {
    return this.#closing.signal.aborted
  }

  /** Refuses new operations and aborts writes into the directory. Resolves when they have ended. */
  async beginClosing(): Promise<void> {
    this.#closing.abort(conflict(`project_id: project ${this.id} is being closed; nothing was written`))
    await Promise.allSettled(this.#writers)
  }

  /** Undoes `beginClosing`: the project stays open. */
  endClosing(): void {
    this.#closing = new AbortController()
  }

  /** Runs an operation that writes into the project's directory; `signal` aborts when the project is being closed. 409 while it is. */
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

  /** Enters, changes or (null) removes direct links in memory. */
  enterLinks(links: LinkChanges, revert: Revert): void {
    const before = links.map(([id]) => [id, this.links.get(id) ?? null] as const).reverse()
    revert.add(() => this.#setLinks(before))
    this.#setLinks(links)
  }

  #setLinks(links: LinkChanges): void {
    for (const [id, link] of links) {
      if (link === null) this.links.delete(id)
      else this.links.set(id, link)
    }
    this.#linksAt = undefined
    this.linkChanges += 1
  }

  /** The same, on disk too, or neither. */
  async setLinks(links: LinkChanges): Promise<void> {
    await using revert = revertLinks()
    this.enterLinks(links, revert)
    await this.saveLinks()
    revert.commit()
  }

  /** Writes links that were entered. A project that is closing writes its record itself. */
  async saveLinks(): Promise<void> {
    if (!this.isClosing) await withDiskErrors('The record of the project', () => this.save())
  }

  /** The direct links of a node, by its key. */
  linksAt(node: string): readonly StoredLink[] {
    if (this.#linksAt === undefined) {
      this.#linksAt = new Map()
      for (const link of this.links.values()) {
        for (const key of new Set(link.nodes.map(({ node_type, node_id }) => `${node_type}:${node_id}`)))
          this.#linksAt.set(key, [...(this.#linksAt.get(key) ?? []), link])
      }
    }
    return this.#linksAt.get(node) ?? []
  }

  /** The record as it is written. */
  get stored(): EngineProjectRecord {
    return { ...this.record, links: [...this.links.values()] }
  }

  /** Writes the record in its state at the time of the write: an earlier state never replaces a later one. */
  async save(): Promise<void> {
    await this.#saving.run(this.id, () => writeProject(this.path, this.stored))
    this.saved(this.id)
  }

  /** Reports a record that could not be saved, once until it is saved. The operation itself goes on. */
  unsaved(record: string, name: string, error: unknown): void {
    const why = (error as Error).message
    this.#unsaved.add(record, `${name} could not be saved; changes will be lost when the service stops: ${why}`, error)
  }

  /** Notes that a record was saved. */
  saved(record: string): void {
    this.#unsaved.saved(record)
  }

  /** Removes reservations of UDP ports from the record, if there are any. */
  async forgetUdpPorts(ports: readonly number[]): Promise<void> {
    const { udp_ports = [] } = this.record
    if (!udp_ports.some((port) => ports.includes(port))) return
    this.record = { ...this.record, udp_ports: udp_ports.filter((port) => !ports.includes(port)) }
    // A closing project keeps no reservations.
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

/** A project in the form of the API. */
export const projectView = (
  { project_id, name, temporary, variables }: EngineProjectRecord,
  { path, location, status }: Required<Pick<Project, 'path' | 'location' | 'status'>>,
): Project => ({ project_id, name, path, location, temporary, variables, status })
