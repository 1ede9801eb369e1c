import { SerialQueue } from '../lib/async/serial-queue.ts'
import type { ProjectScope } from '../model/access/project-scope.ts'
import type { ProjectRecord } from './lab/document.ts'
import { encodeHead } from './lab/document-codec.ts'
import type { Lab } from './lab/lab.ts'
import type { LabDirectory } from './lab/store.ts'
import { LabRegistry, type RegistryOptions } from './registry.ts'

/** Time between two reports of who has the lab open, ms, while nobody comes or goes. */
export const reportMs = 60_000

/** The head of the only lab of this process. A directory in another process has those of all labs (`DirectoryRegistry`). */
export class SingleLabRegistry extends LabRegistry {
  readonly #id: string
  readonly #directory: LabDirectory
  /** Reports arrive in their order. */
  readonly #reports = new SerialQueue()
  /** When the last one was made, ms since 1970; 0: it did not arrive. */
  #reportedAt = 0

  constructor(options: RegistryOptions, id: string, directory: LabDirectory) {
    super(options)
    this.#id = id
    this.#directory = directory
  }

  override newId(): string {
    return this.#id
  }

  override freeName(name: string): Promise<string> {
    return this.#directory.freeName(name)
  }

  override announce(id: string, head: ProjectRecord, scope?: ProjectScope): Promise<void> {
    return this.#directory.put(id, encodeHead(head), scope)
  }

  override tellPresent(lab: Pick<Lab, 'id' | 'present'>, isChange: boolean): void {
    if (!isChange && Date.now() - this.#reportedAt < reportMs) return
    this.#reportedAt = Date.now()
    this.#reports
      .run(() => this.#directory.present(lab.id, lab.present))
      .catch(() => {
        this.#reportedAt = 0
      })
  }

  override async remove(id: string): Promise<void> {
    await super.remove(id)
    await this.#directory.remove(id)
  }
}
