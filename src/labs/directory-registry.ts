import type { ProjectScope } from '../model/access/project-scope.ts'
import type { LabProject } from '../model/lab/project.ts'
import { Changes, type ProjectRecord } from './lab/document.ts'
import type { LabStorage } from './lab/store.ts'
import { LabRegistry, listShowsChange, type RegistryOptions } from './registry.ts'
import { reportMs } from './single-lab-registry.ts'

/** How long a report of who has a lab open holds, ms: some do not arrive, and the process of the lab may have ended. */
const presentMs = 2.5 * reportMs

/** The names of those who have a lab open in a page, and until when that holds, ms since 1970. */
export interface PresentReport {
  readonly names: readonly string[]
  readonly until: number
}

/** Keeps reports: an idle directory loses its memory. */
export interface PresentStore {
  all(): Iterable<readonly [id: string, report: PresentReport]>
  /** Saves the report of a lab; undefined removes it. */
  save(id: string, report: PresentReport | undefined): Promise<void>
}

/** The names and the heads of labs that have processes of their own (`SingleLabRegistry`), which report them. */
export class DirectoryRegistry extends LabRegistry {
  readonly #store: LabStorage
  readonly #presentStore: PresentStore
  readonly #present: Map<string, PresentReport>

  constructor(options: RegistryOptions, store: LabStorage, present: PresentStore) {
    super(options)
    this.#store = store
    this.#presentStore = present
    this.#present = new Map(present.all())
  }

  /**
   * Saves the head of a lab, for lists. 409 when another lab has its name. A head without a path reserves the name of a lab that is being
   * created, and emits no event.
   */
  async register(id: string, head: ProjectRecord, scope?: ProjectScope): Promise<void> {
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
    if (!head.is_open) await this.#putPresent(id, [])
    await this.#store.save(id, new Changes().project(head).entries)
  }

  override async remove(id: string): Promise<void> {
    const head = this.get(id)
    await super.remove(id)
    if (head === undefined) return
    if (head.path !== null) this.emit({ action: 'project.deleted', event: this.view(id, head) })
    await this.#putPresent(id, [])
    await this.#store.remove(id)
  }

  /** Takes note of who has a lab open, and tells of the labs for which that is news. */
  async keepPresent(id: string, names: readonly string[]): Promise<void> {
    const now = Date.now()
    const old = [...this.#present].flatMap(([lab, { until }]) => (until <= now ? [lab] : []))
    const before = this.#presentIn(id)
    const changes = [...old.map((lab) => this.#putPresent(lab, [])), this.#putPresent(id, this.has(id) ? names : [])]
    const isNews = JSON.stringify(this.#presentIn(id)) !== JSON.stringify(before)
    for (const lab of new Set([...old, ...(isNews ? [id] : [])])) {
      const head = this.get(lab)
      if (head !== undefined) this.emit({ action: 'project.updated', event: this.view(lab, head) })
    }
    await Promise.all(changes)
  }

  #presentIn(id: string): readonly string[] {
    const { names = [], until = 0 } = this.#present.get(id) ?? {}
    return until > Date.now() ? names : []
  }

  async #putPresent(id: string, names: readonly string[]): Promise<void> {
    if (names.length > 0) {
      const report = { names, until: Date.now() + presentMs }
      this.#present.set(id, report)
      await this.#presentStore.save(id, report)
    } else if (this.#present.delete(id)) await this.#presentStore.save(id, undefined)
  }

  override view(id: string, head: ProjectRecord, reason?: string): LabProject {
    const present = head.is_open ? this.#presentIn(id) : []
    return { ...super.view(id, head, reason), ...(present.length > 0 && { present: [...present] }) }
  }

  protected override statusOf({ is_open }: ProjectRecord): LabProject['status'] {
    return is_open ? 'opened' : 'closed'
  }
}
