import { KeyedMutex } from '../lib/async/keyed-mutex.ts'
import { conflict, notFound } from '../lib/errors/api-error.ts'
import type { LabDocuments } from './documents.ts'
import type { Lab } from './lab/lab.ts'
import { type LabRegistry, noSuchProject } from './registry.ts'
import type { ComputeSync } from './sync.ts'

/** Finds labs, and gives one operation at a time a lab for itself. */
export class LabAccess {
  readonly #registry: LabRegistry
  readonly #documents: LabDocuments
  readonly #sync: ComputeSync
  /** One opening, closing, deletion or restore of a lab at a time. */
  readonly #mutex = new KeyedMutex()
  /** Creations in progress: lists have these projects already, but their documents are not stored yet. */
  readonly #creations = new KeyedMutex()
  /** Labs that are being moved to other computes. */
  readonly #moving = new Set<string>()
  /** Settled when the labs of the last run are open again, or some time after the start. */
  reopened: Promise<void> = Promise.resolve()

  constructor(registry: LabRegistry, documents: LabDocuments, sync: ComputeSync) {
    this.#registry = registry
    this.#documents = documents
    this.#sync = sync
  }

  /** Finds an open lab. 404; for a closed lab with the error code `project-closed`. */
  async lab(idOrName: string): Promise<Lab> {
    const lab = await this.find(idOrName)
    if (lab.isOpen) return lab
    throw notFound(`project_id: the project ${idOrName} is closed; open it first`, { code: 'project-closed' })
  }

  /** Finds an open or closed lab, for reading. Waits while the start of the service opens it. 404. */
  async find(idOrName: string): Promise<Lab> {
    const id = this.#registry.idOf(idOrName)
    if (this.#registry.get(id)?.is_open === true && this.#documents.get(id) === undefined) await this.reopened
    const open = this.#documents.get(id)
    if (open !== undefined) {
      await this.#sync.beforeRead(open)
      return open
    }
    if (this.#creations.isBusy(id)) {
      await this.#creations.run(id, async () => {})
      const created = this.#documents.get(id)
      if (created !== undefined) return created
    }
    const entries = await this.#documents.load(id)
    if (entries === undefined || this.#registry.get(id)?.unfinished) {
      // A creation or a deletion that broke off may have left its name in the directory.
      if (!this.#registry.has(id)) await this.#registry.remove(id)
      throw noSuchProject(idOrName)
    }
    const lab = this.#documents.make(id, entries)
    await this.#sync.recordReason(lab)
    return lab
  }

  /** Runs what makes a lab; `find` waits for it. */
  creating<T>(id: string, make: () => Promise<T>): Promise<T> {
    return this.#creations.run(id, make)
  }

  /** Runs an operation while no other opens, closes, deletes or restores the lab of this id. */
  locked<T>(id: string, run: () => Promise<T>): Promise<T> {
    return this.#mutex.run(id, run)
  }

  /**
   * Runs an operation on a lab while no other opens, closes, deletes or restores it. The operation must use the `lab` that it gets: a lab
   * that was found before may be another object by then. 404, 409 while it is moved.
   */
  async exclusively<T>(id: string, run: (lab: Lab) => Promise<T>): Promise<T> {
    this.requireNotMoving(id)
    return this.locked(id, async () => run(await this.find(id)))
  }

  /** Takes note that a lab is moved, until the result is disposed. 409 while it is moved already. */
  beginMove(id: string): Disposable {
    this.requireNotMoving(id)
    this.#moving.add(id)
    return { [Symbol.dispose]: () => void this.#moving.delete(id) }
  }

  /** 409 while the lab is moved to another compute. */
  requireNotMoving(id: string): void {
    if (!this.#moving.has(id)) return
    const name = this.#registry.get(id)?.name ?? id
    throw conflict(`The project ${name} is being moved to another compute: try again when the move is done`)
  }
}
