import { silentMs } from '../fleet/members/fan-out.ts'
import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { conflict, ignoreNotFound } from '../lib/errors/api-error.ts'
import type { LabProject } from '../model/lab/project.ts'
import type { LabAccess } from './access.ts'
import { listProjects, unmanaged } from './catalog.ts'
import { type ComputeAgents, removeProject } from './computes/agents.ts'
import type { ComputePool } from './computes/compute-pool.ts'
import type { LabDocuments } from './documents.ts'
import type { Lab } from './lab/lab.ts'
import { UnreadableLab } from './lab/store.ts'
import { type LabRegistry, noSuchProject } from './registry.ts'

interface ListsOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly computes: ComputePool
}

/** Lists labs, and the projects that only computes have. */
export class LabLists {
  readonly #options: ListsOptions

  constructor(options: ListsOptions) {
    this.#options = options
  }

  /** See `listProjects`. */
  async list(agentFor: ComputeAgents): Promise<LabProject[]> {
    const { documents, access } = this.#options
    await access.reopened
    return listProjects(this.#options, agentFor, (id, reasonOf) => {
      const lab = documents.get(id)
      if (lab === undefined) return undefined
      lab.statusReason = reasonOf(lab.document.project)
      return lab.project()
    })
  }

  /** A lab, or a project that only computes have, as lists show it. `before`: called with a lab. 404. */
  async read(
    idOrName: string,
    agentFor: ComputeAgents,
    before: (lab: Lab) => Promise<void> = async () => {},
  ): Promise<LabProject> {
    const { registry, access } = this.#options
    const id = registry.idOf(idOrName)
    const lab = await access.find(id).catch(ignoreNotFound).catch(unlessUnreadable)
    const head = registry.get(id)
    if (lab !== undefined) {
      await before(lab)
      return lab.project()
    }
    if (head === undefined || !registry.isUnreadable(id)) return this.unmanaged(id, idOrName, agentFor)
    return registry.view(id, head)
  }

  /** Deletes a project that only computes have, as lists show it. 404. */
  async removeUnmanaged(id: string, idOrName: string, agentFor: ComputeAgents): Promise<void> {
    const { registry } = this.#options
    const shown = await this.unmanaged(id, idOrName, agentFor)
    for (const computeId of shown.compute_ids) await removeProject(agentFor(computeId), id).catch(ignoreNotFound)
    registry.emit({ action: 'project.deleted', event: shown })
  }

  /** A project that only computes have. 404. */
  async unmanaged(
    id: string,
    idOrName: string,
    agentFor: ComputeAgents,
  ): Promise<LabProject & { compute_ids: string[] }> {
    const { registry, computes } = this.#options
    if (registry.get(id)?.unfinished) throw noSuchProject(idOrName)
    const none = ignore('a compute that does not answer has no projects to show')
    const look = async (computeId: string) => {
      const project = await agentFor(computeId).projects.get(id).catch(ignoreNotFound).catch(none)
      return project === undefined ? [] : [{ computeId, project }]
    }
    const found = (await mapLimit(await computes.all(), look, undefined, silentMs)).flat()
    const [first] = found
    if (first === undefined) throw noSuchProject(idOrName)
    return { ...unmanaged(first.project), compute_ids: found.map(({ computeId }) => computeId) }
  }

  /** For `catch`: 409 for a project that only computes have. */
  async unlessUnmanaged(error: unknown, idOrName: string, agentFor: ComputeAgents): Promise<never> {
    const { registry } = this.#options
    ignoreNotFound(error)
    const { name, project_id } = await this.unmanaged(registry.idOf(idOrName), idOrName, agentFor)
    throw conflict(
      `Project ${name} exists only on a compute. Import it first with POST /v2/projects/${project_id}/open`,
    )
  }
}

/** For `catch`: undefined for a document that cannot be read. */
function unlessUnreadable(error: unknown): undefined {
  if (!(error instanceof UnreadableLab)) throw error
}
