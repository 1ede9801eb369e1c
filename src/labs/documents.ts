import type { EventLog } from '../fleet/events/event-log.ts'
import type { LabEvent } from '../model/lab/event.ts'
import type { LabProject } from '../model/lab/project.ts'
import { Changes, type ProjectRecord } from './lab/document.ts'
import { Lab, type LabRoom } from './lab/lab.ts'
import { inMebibytes, type LabLimits, limitReached, mebibyte } from './lab/lab-limits.ts'
import { apart, type LabEntries, type LabStorage, UnreadableLab } from './lab/store.ts'
import { type LabRegistry, listShowsChange } from './registry.ts'

/** What happens to a lab as a whole. */
type ProjectAction = Extract<LabEvent, { event: LabProject }>['action']

interface DocumentsOptions {
  readonly store: LabStorage
  readonly events: EventLog<LabEvent>
  readonly registry: LabRegistry
  readonly limits: () => LabLimits
}

/** The documents of labs: of all labs on disk, and of the open ones in memory. */
export class LabDocuments {
  readonly #store: LabStorage
  readonly #events: EventLog<LabEvent>
  readonly #registry: LabRegistry
  readonly #limits: () => LabLimits
  readonly #room: LabRoom
  readonly #open = new Map<string, Lab>()
  /** Labs that are being opened. */
  readonly #entering = new Set<Lab>()

  constructor({ store, events, registry, limits }: DocumentsOptions) {
    this.#store = store
    this.#events = events
    this.#registry = registry
    this.#limits = limits
    this.#room = { limits, excess: (growth) => this.#excess(growth) }
  }

  /** An open lab. */
  get(id: string): Lab | undefined {
    return this.#open.get(id)
  }

  /** The compute that has a node or a direct link of an open lab. */
  computeOf(id: string, part: string): string | undefined {
    const document = this.get(id)?.document
    const wiring = document?.links.get(part)?.wiring
    return document?.nodes.get(part)?.compute_id ?? (wiring?.type === 'direct' ? wiring.compute_id : undefined)
  }

  /** All open labs. */
  open(): Lab[] {
    return [...this.#open.values()]
  }

  /** The open labs with a part on a compute. */
  openOn(computeId: string): Lab[] {
    return this.open().filter(({ document }) => document.project.computes.includes(computeId))
  }

  addOpen(lab: Lab): void {
    this.#open.set(lab.id, lab)
  }

  removeOpen(lab: Lab): void {
    this.#open.delete(lab.id)
  }

  /** A lab in memory that is not open. */
  make(id: string, entries: LabEntries): Lab {
    return new Lab(id, entries, this.#store, this.#events, this.#room)
  }

  /** Loads the document of a lab. Rejects with UnreadableLab. */
  async load(id: string): Promise<LabEntries | undefined> {
    try {
      const entries = await this.#store.load(id)
      this.#registry.markReadable(id)
      return entries
    } catch (error) {
      if (error instanceof UnreadableLab) this.#registry.markUnreadable(id, error.message)
      throw error
    }
  }

  /** Saves the document of a new lab. */
  async saveNew(id: string, record: ProjectRecord): Promise<void> {
    await this.#store.save(id, new Changes().project(record).entries)
  }

  remove(id: string): Promise<void> {
    return this.#store.remove(id)
  }

  /** Saves a document apart from that of its lab (see `apart`); undefined removes it. */
  async putSideDocument(word: string, document: unknown): Promise<void> {
    if (document === undefined) await this.#store.remove(apart(word))
    else await this.#store.save(apart(word), new Map([['document', document]]))
  }

  async readSideDocument(word: string): Promise<unknown> {
    return (await this.#store.load(apart(word)))?.get('document')
  }

  /** Saves what a move or an archive has changed in a lab. Lists of labs learn what they show of it. */
  async saveServiceChange(lab: Lab, changes: (project: ProjectRecord) => Changes): Promise<void> {
    const before = await lab.edit(({ project }) => {
      const { archivedRevision, revision } = project
      const all = changes(project)
      const next = all.entries.get('project') as ProjectRecord
      // A move changes nothing that is in archives: an archive of the revision before is also one of this revision.
      const isArchived = archivedRevision === revision || next.archivedRevision === revision
      if (isArchived) all.project({ ...next, archivedRevision: revision + 1 })
      return { changes: all, news: () => [], result: lab.project(), isServiceChange: true }
    })
    await this.#registry.put(lab.id, lab.document.project)
    if (listShowsChange(before, lab.project())) this.publish(lab, 'project.updated')
  }

  /** Emits an event to the feed of the lab and to that of the service. */
  publish(lab: Lab, action: ProjectAction): void {
    const event = { action, event: lab.project() }
    lab.emit(event)
    this.#registry.emit(event)
  }

  /** 413 when a lab that is opened does not fit into memory beside the open ones. From now on it counts, until the result is disposed. */
  enter(lab: Lab): Disposable {
    if (this.#excess(lab.bytes) > 0) {
      const max = this.#limits().open_labs_mb
      const what = `The project ${lab.document.project.name} needs ${inMebibytes(lab.bytes)} of memory`
      throw limitReached(
        `${what}, and all open projects together are limited to ${max} MiB: close others first`,
        'open_labs_mb',
      )
    }
    this.#entering.add(lab)
    return { [Symbol.dispose]: () => void this.#entering.delete(lab) }
  }

  /** See `LabRoom`. */
  #excess(growth: number): number {
    const open = [...new Set([...this.#open.values(), ...this.#entering])]
    let excess = open.reduce((sum, { bytes }) => sum + bytes, growth) - this.#limits().open_labs_mb * mebibyte
    if (excess <= 0) return excess
    for (const { history } of open.sort((a, b) => b.history.bytes - a.history.bytes)) {
      excess -= history.shrink(excess)
      if (excess <= 0) break
    }
    return excess
  }
}
