import type { ProjectScope } from '../model/access/project-scope.ts'
import type { LabProject } from '../model/lab/project.ts'
import { Changes, type ProjectRecord } from './lab/document.ts'
import type { LabStorage } from './lab/store.ts'
import { LabRegistry, listShowsChange, type RegistryOptions } from './registry.ts'

/** The names and the heads of labs that have processes of their own (`SingleLabRegistry`), which report them. */
export class DirectoryRegistry extends LabRegistry {
  readonly #store: LabStorage

  constructor(options: RegistryOptions, store: LabStorage) {
    super(options)
    this.#store = store
  }

  /**
   * Saves the head of a lab, for lists. 409 when another lab has its name. A head without a path reserves the name of a lab that is being
   * created, and emits no event.
   */
  register(id: string, head: ProjectRecord, scope?: ProjectScope): Promise<void> {
    const before = this.get(id)
    const shownBefore = before && this.view(id, before)
    if (before === undefined) this.requireQuota(id)
    this.add(id, head, scope)
    const event = this.view(id, head)
    const action =
      before === undefined || before.path === null
        ? 'created'
        : before.is_open === head.is_open
          ? 'updated'
          : head.is_open
            ? 'opened'
            : 'closed'
    if (head.path !== null && (shownBefore === undefined || listShowsChange(shownBefore, event)))
      this.emit({ action: `project.${action}`, event })
    return this.#store.save(id, new Changes().project(head).entries)
  }

  override async remove(id: string): Promise<void> {
    const head = this.get(id)
    await super.remove(id)
    if (head === undefined) return
    if (head.path !== null) this.emit({ action: 'project.deleted', event: this.view(id, head) })
    await this.#store.remove(id)
  }

  protected override statusOf({ is_open }: ProjectRecord): LabProject['status'] {
    return is_open ? 'opened' : 'closed'
  }
}
