import type { LabProject, LabProjectUpdate } from '../model/lab/project.ts'
import type { LabAccess } from './access.ts'
import type { AutoStart } from './autostart.ts'
import { isUnreachable } from './compute-parts.ts'
import { type ComputeAgents, renameProject } from './computes/agents.ts'
import type { LabDocuments } from './documents.ts'
import { Changes, type ProjectRecord } from './lab/document.ts'
import { withoutNulls } from './lab/fields.ts'
import { requireSmallHead } from './lab/head-size.ts'
import type { UndoGroup } from './lab/history.ts'
import type { Lab } from './lab/lab.ts'
import { requireName } from './lab/lab-name.ts'
import { saveOrRevert } from './lab/save-or-revert.ts'
import type { LabLists } from './lists.ts'
import type { LabRegistry } from './registry.ts'
import { deletesAfter, type LabTimers } from './timers.ts'

interface SettingsOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly autoStart: AutoStart
  readonly timers: LabTimers
  readonly lists: LabLists
}

/** Changes the settings of labs. */
export class LabSettings {
  readonly #options: SettingsOptions

  constructor(options: SettingsOptions) {
    this.#options = options
  }

  async update(idOrName: string, input: LabProjectUpdate, agentFor: ComputeAgents): Promise<LabProject> {
    const { registry, access, timers, lists } = this.#options
    access.requireNotMoving(registry.idOf(idOrName))
    const { ttl_s, ttl_deletes, ...settings } = input
    const lab = await access.find(idOrName).catch((error) => lists.unlessUnmanaged(error, idOrName, agentFor))
    // Refused before anything is changed; the time is set last, as a name may be refused, too.
    deletesAfter(lab, { ttl_s, ttl_deletes })
    await this.set(lab, withoutNulls(settings), agentFor)
    await timers.stopAfter(lab, { ttl_s, ttl_deletes })
    return lab.project()
  }

  /** Changes the settings of a lab. In contrast to `update` null is a value. */
  async set(
    lab: Lab,
    input: Partial<ProjectRecord>,
    agentFor: ComputeAgents,
    undoGroup?: UndoGroup,
  ): Promise<LabProject> {
    const { registry, documents, autoStart } = this.#options
    const { name, ...settings } = input
    requireSmallHead({ ...lab.document.project, ...settings }, lab.document.project)
    if (undoGroup?.by !== 'rollback') {
      const head = { ...lab.document.project, ...settings }
      registry.requireRoom(lab.id, head)
      // Before it is saved: the directory refuses what is too much together with other labs.
      if (['variables', 'supplier', 'kept'].some((key) => key in settings)) await registry.announce(lab.id, head)
    }
    const save = async (more: { readonly name?: string }) => {
      // Before the setting: a start of the service would start what ran when `lastRunning` was saved last.
      if (settings.auto_start ?? lab.document.project.auto_start) await lab.saveLastRunning()
      await lab.edit(
        ({ project }) => ({
          changes: new Changes().project({ ...project, ...settings, ...more }),
          news: () => [],
          result: undefined,
        }),
        undoGroup,
      )
    }
    if (name === undefined || name === lab.document.project.name) await save({})
    else await this.#rename(lab, name, agentFor, () => save({ name }))
    await registry.put(lab.id, lab.document.project)
    if (lab.document.project.auto_start && lab.isOpen)
      await autoStart.startAfterReboot(lab, lab.document.project.computes, agentFor)
    documents.publish(lab, 'project.updated')
    return lab.project()
  }

  /** Gives a lab a name in the directory and on its computes; then `save` gives it in the document. A failure leaves the former name. */
  async #rename(lab: Lab, name: string, agentFor: ComputeAgents, save: () => Promise<void>): Promise<void> {
    const { registry } = this.#options
    requireName(name)
    using _ = registry.reserveName(lab.id, name)
    const { project } = lab.document
    const give = async (to: string) => {
      await registry.announce(lab.id, { ...project, name: to })
      if (!lab.isOpen) return
      for (const id of project.computes) await renameProject(agentFor(id), lab.id, to).catch(ignoreUnreachable)
    }
    await saveOrRevert(
      lab,
      async () => {
        await give(name)
        await save()
      },
      () => give(project.name),
    )
  }
}

/** Ignores a compute that is not connected: `#refreshAll` renames the project there later. */
function ignoreUnreachable(error: unknown): void {
  if (!isUnreachable(error)) throw error
}
