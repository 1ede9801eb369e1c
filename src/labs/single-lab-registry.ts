import type { ProjectScope } from '../model/access/project-scope.ts'
import type { ProjectRecord } from './lab/document.ts'
import { encodeHead } from './lab/document-codec.ts'
import type { LabDirectory } from './lab/store.ts'
import { LabRegistry, type RegistryOptions } from './registry.ts'

/** The head of the only lab of this process. A directory in another process has those of all labs (`DirectoryRegistry`). */
export class SingleLabRegistry extends LabRegistry {
  readonly #id: string
  readonly #directory: LabDirectory

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

  override async remove(id: string): Promise<void> {
    await super.remove(id)
    await this.#directory.remove(id)
  }
}
