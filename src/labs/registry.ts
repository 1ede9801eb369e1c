import type { ProjectQuota } from '../fleet/placement/project-quota.ts'
import { conflict, notFound } from '../lib/errors/api-error.ts'
import { omit } from '../lib/omit.ts'
import { compareText } from '../lib/text/compare-text.ts'
import type { ProjectScope } from '../model/access/project-scope.ts'
import type { LabListEvent } from '../model/lab/event.ts'
import { type FreeName, freeName, nameKey } from '../model/lab/names.ts'
import { type LabProject, labSettings } from '../model/lab/project.ts'
import { isUuid } from '../model/schema/fields.ts'
import { archivedView, archiveFailure } from './lab/archive-status.ts'
import { type ProjectRecord, shownOf } from './lab/document.ts'
import { withDefaults, withoutNulls } from './lab/fields.ts'
import { fileName, type Lab, placementOf } from './lab/lab.ts'
import type { LabLimits } from './lab/lab-limits.ts'
import type { StoredHead } from './lab/store.ts'
import { requireRoomForProject } from './project-limits.ts'

export interface RegistryOptions {
  /** The head of each lab, as it was stored. */
  readonly heads: ReadonlyMap<string, StoredHead>
  /** Limits how many labs are made; absent: there is no limit, or the directory knows it. */
  readonly quota?: ProjectQuota | undefined
  readonly limits: () => LabLimits
  readonly warn: (message: string) => void
}

/** The names and the heads of all labs, open or closed. A head is the record of a project: its settings, as lists show them. */
export class LabRegistry {
  readonly #heads = new Map<string, ProjectRecord>()
  /** Names that labs are about to get. */
  readonly #newNames = new Map<string, string>()
  /** Why documents cannot be read: they are damaged, too large or of a newer version. Their labs are closed, with heads that may be made up. */
  readonly #unreadable = new Map<string, string>()
  /** Why labs that were open at the end of the last run are closed. */
  readonly #unopened = new Map<string, string>()
  readonly #listeners = new Set<(event: LabListEvent) => void>()
  readonly #watchers = new Set<HeadWatcher>()
  readonly #quota: ProjectQuota | undefined
  readonly #limits: () => LabLimits
  readonly #warn: (message: string) => void

  constructor({ heads, quota, limits, warn }: RegistryOptions) {
    this.#quota = quota
    this.#limits = limits
    this.#warn = warn
    for (const [id, { head, fault }] of heads) {
      this.#heads.set(id, (head as ProjectRecord | undefined) ?? madeUpHead(id))
      if (fault !== undefined) this.markUnreadable(id, fault)
    }
  }

  /** Subscribes to events of projects and templates; the returned function unsubscribes. */
  listen(listener: (event: LabListEvent) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  emit(event: LabListEvent): void {
    for (const listener of this.#listeners) listener(event)
  }

  /** Tells of each head that changes. */
  watch(watcher: HeadWatcher): void {
    this.#watchers.add(watcher)
  }

  /** Tells watchers of all heads, after the start. */
  tellWatchers(): void {
    for (const [id, head] of this.#heads) for (const watcher of this.#watchers) watcher.headChanged(id, head)
  }

  /** The id of a project, from its id or its name in a path. 404. */
  idOf(idOrName: string): string {
    if (isUuid(idOrName)) return idOrName.toLowerCase()
    const key = nameKey(idOrName)
    for (const [id, { name, unfinished }] of this.#heads) if (nameKey(name) === key && !unfinished) return id
    throw noSuchProject(idOrName)
  }

  get(id: string): ProjectRecord | undefined {
    return this.#heads.get(id)
  }

  has(id: string): boolean {
    return this.#heads.has(id)
  }

  all(): [id: string, head: ProjectRecord][] {
    return [...this.#heads]
  }

  /** Ids of all labs, also of those that are being made. */
  ids(): Iterable<string> {
    return this.#heads.keys()
  }

  /** The computes of a lab, the first one first; undefined for a project that is not a lab. */
  computesOf(id: string): readonly string[] | undefined {
    return this.#heads.get(id)?.computes
  }

  /** The name of a lab; undefined for a project that is not a lab. */
  nameOf(id: string): string | undefined {
    return this.#heads.get(id.toLowerCase())?.name
  }

  /** The labs with a part on a compute, by name. */
  on(computeId: string): { readonly project_id: string; readonly name: string }[] {
    return this.all()
      .filter(
        ([, { computes, formerComputes = [], unfinished }]) =>
          !unfinished && [...computes, ...formerComputes].includes(computeId),
      )
      .map(([project_id, { name }]) => ({ project_id, name }))
      .sort((a, b) => compareText(a.name, b.name))
  }

  /** The id of a new lab. `wanted`: by the client. */
  newId(wanted: string | null | undefined): string {
    return wanted?.toLowerCase() ?? crypto.randomUUID()
  }

  /** The name, or if it is taken the next free one with a number. */
  async freeName(name: string, free: FreeName = freeName): Promise<string> {
    const taken = new Set([...this.#heads.values()].map((head) => nameKey(head.name)))
    return free(name, (key) => taken.has(key))
  }

  /** 409 when there is a lab of this id. */
  requireNew(id: string): void {
    if (this.#heads.has(id)) throw projectExists(id)
  }

  /** 409 when the lab would be one more than the service may have. */
  requireQuota(id: string): void {
    this.#quota?.requireRoom(id)
  }

  /** 413 when the settings of a lab are too much together with those of all labs. */
  requireRoom(id: string, head: ProjectRecord, scope?: ProjectScope): void {
    requireRoomForProject(this.#heads, { id, head, scope, limits: this.#limits() })
  }

  requireFreeName(id: string, name: string): void {
    const key = nameKey(name)
    const names = [...this.all().map(([other, head]) => [other, head.name] as const), ...this.#newNames]
    for (const [other, taken] of names) {
      if (other !== id && nameKey(taken) === key)
        throw conflict(`name: a project ${taken} (${other}) already exists; choose another name`, {
          code: 'name-taken',
        })
    }
  }

  /** Keeps a name for a lab that is being renamed. 409 when another lab has it. */
  reserveName(id: string, name: string): Disposable {
    this.requireFreeName(id, name)
    this.#newNames.set(id, name)
    return { [Symbol.dispose]: () => void this.#newNames.delete(id) }
  }

  /** Adds the head of a new lab, in this process only. 409 when another lab has its name, 413 when there are too many. */
  add(id: string, head: ProjectRecord, scope?: ProjectScope): void {
    this.requireFreeName(id, head.name)
    this.requireRoom(id, head, scope)
    this.#heads.set(id, head)
  }

  /** Saves a head where those of all labs are, if another process has them: it refuses what does not fit beside the other labs. */
  async announce(_id: string, _head: ProjectRecord, _scope?: ProjectScope): Promise<void> {}

  /** Tells lists who has an open lab in a page. `isChange`: somebody came or went; else all of them are still there. */
  tellPresent(lab: Pick<Lab, 'id' | 'present' | 'project'>, isChange: boolean): void {
    if (isChange) this.emit({ action: 'project.updated', event: lab.project() })
  }

  /** Replaces the head of a lab. */
  async put(id: string, head: ProjectRecord): Promise<void> {
    this.#heads.set(id, head)
    for (const watcher of this.#watchers) watcher.headChanged(id, head)
    await this.announce(id, head)
  }

  /** Forgets a lab. */
  async remove(id: string): Promise<void> {
    this.#heads.delete(id)
    for (const reasons of [this.#unreadable, this.#unopened]) reasons.delete(id)
    for (const watcher of this.#watchers) watcher.headChanged(id, undefined)
  }

  markUnreadable(id: string, reason: string): void {
    this.#staysClosed(this.#unreadable, id, reason)
  }

  markReadable(id: string): void {
    this.#unreadable.delete(id)
  }

  isUnreadable(id: string): boolean {
    return this.#unreadable.has(id)
  }

  markUnopened(id: string, reason: string): void {
    this.#staysClosed(this.#unopened, id, reason)
  }

  /** Takes note that a lab is opened now. */
  clearUnopened(id: string): void {
    this.#unopened.delete(id)
  }

  /** Why a lab that was open at the end of the last run is closed. */
  unopenedReason(id: string): string | undefined {
    return this.#unopened.get(id)
  }

  /** Keeps the reason why a lab is closed, and reports it once. */
  #staysClosed(reasons: Map<string, string>, id: string, reason: string): void {
    if (reasons.get(id) === reason) return
    reasons.set(id, reason)
    this.#warn(`The project ${this.#heads.get(id)?.name ?? id} (${id}) stays closed: ${reason}`)
  }

  /** A lab that is not open in this process, from its head. `reason`: what else is wrong with it. */
  view(id: string, head: ProjectRecord, reason?: string): LabProject {
    const status_reason = this.#unreadable.get(id) ?? this.#unopened.get(id) ?? reason ?? archiveFailure(head)
    const status = this.statusOf(head)
    return {
      ...shownOf(head),
      ...placementOf(head),
      ...archivedView(head),
      compute_ids: [...head.computes],
      // What runs in an open lab is known to its own process.
      ...(head.sizes !== undefined && { counts: { ...head.sizes, ...(status === 'closed' && { running: 0 }) } }),
      status,
      filename: `${fileName(head.name)}.gns3`,
      ...withoutNulls({ status_reason }),
    }
  }

  /** The status of a lab that is not open in this process. */
  protected statusOf(_head: ProjectRecord): LabProject['status'] {
    return 'closed'
  }
}

/** Whether lists of labs show that a lab was changed, besides the time of it and counts of its nodes. */
export function listShowsChange(before: LabProject, after: LabProject): boolean {
  const comparable = (project: LabProject) => JSON.stringify(omit(project, 'revision', 'changed_at', 'counts'))
  return comparable(before) !== comparable(after)
}

/** Follows the heads of labs. */
export interface HeadWatcher {
  /** Undefined: the lab was deleted. */
  headChanged(id: string, head: ProjectRecord | undefined): void
}

/** The head of a lab of which not even that can be read. */
const madeUpHead = (project_id: string): ProjectRecord => ({
  project_id,
  name: project_id.slice(0, 8),
  ...withDefaults(labSettings, {}),
  path: null,
  revision: 0,
  computes: [],
  is_open: false,
})

export const projectExists = (id: string) =>
  conflict(`project_id: a project ${id} already exists; open it, or choose another id`, { code: 'project-exists' })

export const noSuchProject = (idOrName: string) =>
  notFound(`project_id: there is no project ${idOrName}`, { code: 'no-such-project' })
