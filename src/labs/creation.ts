import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { ApiError, ignoreNotFound, retryLater } from '../lib/errors/api-error.ts'
import { Revert } from '../lib/revert.ts'
import type { ProjectScope } from '../model/access/project-scope.ts'
import type { LabClass } from '../model/lab/class.ts'
import { type LabProject, type LabProjectCreate, labSettings } from '../model/lab/project.ts'
import type { LabAccess } from './access.ts'
import type { AutoStart } from './autostart.ts'
import type { ComputeParts } from './compute-parts.ts'
import { type ComputeAgents, openProject, removeProject } from './computes/agents.ts'
import type { ComputePool } from './computes/compute-pool.ts'
import type { LabDocuments } from './documents.ts'
import { Changes, noSizes, type ProjectRecord } from './lab/document.ts'
import { withDefaults, withoutNulls } from './lab/fields.ts'
import { requireSmallHead } from './lab/head-size.ts'
import type { Lab } from './lab/lab.ts'
import { requireName } from './lab/lab-name.ts'
import { type LabRegistry, projectExists } from './registry.ts'

interface BuildOptions {
  readonly agentFor: ComputeAgents
  /** Computes on which it is made. */
  readonly like?: readonly string[]
  readonly asksAll?: boolean
  /** The projects of the client. */
  readonly scope?: ProjectScope | undefined
  readonly class?: LabClass | undefined
}

interface CreationOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly computes: ComputePool
  readonly parts: ComputeParts
  readonly autoStart: AutoStart
}

/** Makes labs. */
export class LabCreation {
  readonly #options: CreationOptions

  constructor(options: CreationOptions) {
    this.#options = options
  }

  /** `more`: members of the record that no client gives. `scope`: the projects of the client. */
  async create(
    input: LabProjectCreate,
    agentFor: ComputeAgents,
    { scope, ...more }: Pick<ProjectRecord, 'lastApplied'> & { readonly scope?: ProjectScope | undefined } = {},
  ): Promise<LabProject> {
    const { registry, documents, access, computes, parts, autoStart } = this.#options
    const { name, path = null, compute_id, project_id, ...settings } = input
    requireName(name)
    requireSmallHead(settings)
    const id = registry.newId(project_id)
    return access.locked(id, async () => {
      registry.requireNew(id)
      const record: ProjectRecord = {
        project_id: id,
        name,
        ...withDefaults(labSettings, settings),
        ...withoutNulls({ kept: settings.kept }),
        path: null,
        revision: 0,
        changed_at: new Date().toISOString(),
        sizes: noSizes,
        computes: [await computes.choose(compute_id ?? undefined, settings.placement ?? undefined)],
        is_open: true,
        ...more,
      }
      // Before the next `await`, so that no other request takes the name.
      registry.requireQuota(id)
      registry.add(id, record, scope)
      using _ = parts.states.during(id, { event: 'open', onFailure: 'fail' })
      const lab = await access.creating(id, async () => {
        await using revert = new Revert(ignore('what is left of it is listed as a project of its compute'))
        revert.add(() => registry.remove(id))
        await registry.announce(id, record, scope)
        const compute = agentFor(record.computes[0] as string)
        // A project that only the compute knows has nodes that the new one would not show, and would delete.
        const known = project_id == null ? undefined : await compute.projects.get(id).catch(ignoreNotFound)
        if (known !== undefined) throw projectExists(id)
        const opened = await openProject(compute, { project_id: id, name, path })
        revert.add(() => removeProject(compute, id))
        const head = { ...record, path: opened.path }
        await documents.saveNew(id, head)
        revert.add(() => documents.remove(id))
        await registry.put(id, head)
        revert.commit()
        const made = documents.make(id, new Map([['project', head]]))
        parts.states.move(id, 'ready')
        parts.markOpen(made)
        return made
      })
      documents.publish(lab, 'project.created')
      await autoStart.startAfterReboot(lab, record.computes, agentFor)
      return lab.project()
    })
  }

  /**
   * Makes a closed project whose content `fill` writes. The project is invisible until it is complete. A failure or a crash leaves nothing:
   * the next start of the service removes an unfinished project. `asksAll`: no compute of the fleet may have a project of its id.
   */
  async build(
    { name, path = null, ...settings }: LabProjectCreate,
    { agentFor, like = [], asksAll = false, scope, class: ofClass }: BuildOptions,
    fill: (lab: Lab) => Promise<void>,
  ): Promise<LabProject> {
    const { registry, documents, access, computes, parts } = this.#options
    const id = registry.newId(settings.project_id)
    // The start of the service first removes unfinished projects.
    await access.reopened
    return access.locked(id, async () => {
      requireName(name)
      requireSmallHead(settings)
      registry.requireNew(id)
      // Before the lab has its name, by which credentials see every project of its id.
      if (asksAll) await this.#requireNowhere(id, agentFor)
      const first =
        like[0] ?? (await computes.choose(settings.compute_id ?? undefined, settings.placement ?? undefined))
      const record: ProjectRecord = {
        project_id: id,
        name,
        ...withDefaults(labSettings, settings),
        path: null,
        revision: 0,
        ...withoutNulls({ kept: settings.kept, class: ofClass }),
        computes: [first, ...like.slice(1)],
        is_open: false,
        unfinished: true,
      }
      registry.requireQuota(id)
      registry.add(id, record, scope)
      /** The computes where a project of this id is the new one. */
      const own: string[] = []
      await using revert = new Revert(ignore('the next start of the service removes an unfinished project'))
      revert.add(() => this.drop(id, own, agentFor))
      const lab = documents.make(id, new Map([['project', record]]))
      await registry.announce(id, record, scope)
      const input = { project_id: id, name }
      // Before the record is saved: after a crash the next start removes an unfinished project from all its computes.
      for (const computeId of record.computes)
        if ((await agentFor(computeId).projects.list('all')).some(({ project_id }) => project_id === id))
          throw projectExists(id)
      await documents.saveNew(id, record)
      own.push(...record.computes)
      const made = await openProject(agentFor(first), { ...input, path })
      for (const computeId of like.slice(1)) await openProject(agentFor(computeId), input)
      await fill(lab)
      await parts.close(lab, agentFor)
      await lab.edit(({ project: { unfinished: _, ...project } }) => ({
        changes: new Changes().project({ ...project, path: made.path }),
        news: () => [],
        result: undefined,
      }))
      await registry.put(id, lab.document.project)
      revert.commit()
      registry.emit({ action: 'project.created', event: lab.project() })
      return lab.project()
    })
  }

  /** 409 when any compute of the fleet has a project of this id, 503 when one cannot be asked. */
  async #requireNowhere(id: string, agentFor: ComputeAgents): Promise<void> {
    const { computes } = this.#options
    const all = await computes.registered()
    await mapLimit(all, async (computeId) => {
      const projects = await agentFor(computeId)
        .projects.list('all')
        .catch((error: unknown) => {
          if (error instanceof ApiError && error.code === 'no-such-compute') return []
          const message = `Could not check whether compute ${computeId} has a project ${id}; try again`
          throw retryLater(503, message, 5, error)
        })
      if (projects.some(({ project_id }) => project_id === id)) throw projectExists(id)
    })
  }

  /** Removes an unfinished project. */
  async drop(id: string, computes: readonly string[], agentFor: ComputeAgents): Promise<void> {
    const { registry, documents } = this.#options
    for (const computeId of computes) await removeProject(agentFor(computeId), id).catch(ignoreNotFound)
    const unreadable = ignore('snapshots of a document that cannot be read are not known')
    const keys = [...((await documents.load(id).catch(unreadable))?.keys() ?? [])]
    for (const key of keys)
      if (key.startsWith('snapshot/')) await documents.putSideDocument(key.slice('snapshot/'.length), undefined)
    await documents.remove(id)
    await registry.remove(id)
  }
}
