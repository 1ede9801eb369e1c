import { retryAfter } from '../fleet/members/member-errors.ts'
import { ignore } from '../lib/async/ignore.ts'
import { KeyedMutex } from '../lib/async/keyed-mutex.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { withTimeout } from '../lib/async/timeout.ts'
import { ApiError, ignoreNotFound } from '../lib/errors/api-error.ts'
import { Revert } from '../lib/revert.ts'
import { type LabProject, labSettings } from '../model/lab/project.ts'
import type { LabAccess } from './access.ts'
import type { LabArchives } from './archives/lab-archives.ts'
import type { AutoStart } from './autostart.ts'
import { type ComputeParts, computesWithFiles, isUnreachable, type LabRecovery } from './compute-parts.ts'
import { type ComputeAgents, openProject, removeProject } from './computes/agents.ts'
import { type ComputePool, serviceAgents } from './computes/compute-pool.ts'
import type { LabCreation } from './creation.ts'
import type { LabDocuments } from './documents.ts'
import type { Jobs } from './jobs/jobs.ts'
import { Changes, type ProjectRecord } from './lab/document.ts'
import { withDefaults, withoutNulls } from './lab/fields.ts'
import type { Lab } from './lab/lab.ts'
import { saveOrRevert } from './lab/save-or-revert.ts'
import { UnreadableLab } from './lab/store.ts'
import type { LabLists } from './lists.ts'
import { type LabRegistry, noSuchProject } from './registry.ts'
import { runRestored } from './snapshots/snapshots.ts'
import type { ComputeSync } from './sync.ts'

/** How long requests wait for labs that the start of the service opens, ms. */
const maxReopenMs = 30_000

interface LifecycleOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly access: LabAccess
  readonly computes: ComputePool
  readonly jobs: Jobs
  readonly sync: ComputeSync
  readonly autoStart: AutoStart
  readonly archives: LabArchives
  readonly parts: ComputeParts
  readonly recovery: LabRecovery
  readonly creation: LabCreation
  readonly lists: LabLists
  readonly warn: (message: string) => void
}

/**
 * Why a lab is opened. `open`: a client or `auto_open` wants it so; `auto_start` starts all nodes. `reopen`: it was open before the service
 * ended, or before it was moved; only nodes that ran before a reboot of their computes start, and a compute whose answers are malformed
 * does not keep the lab closed.
 */
type Opening = 'open' | 'reopen'

/** Opens, closes and deletes labs. */
export class LabLifecycle {
  readonly #options: LifecycleOptions
  /** On behalf of the service itself. */
  readonly #ownAgents: ComputeAgents
  /** One enlistment of a compute for a lab at a time. */
  readonly #enlistments = new KeyedMutex()

  constructor(options: LifecycleOptions) {
    this.#options = options
    this.#ownAgents = serviceAgents(options.computes)
  }

  /**
   * Opens the labs that were open at the end of the last run, and those with `auto_open`, once `ready` resolves.
   */
  reopenAfterStart(ready: Promise<unknown> = Promise.resolve()): Promise<void> {
    const { registry, access, creation, warn } = this.#options
    const wanted = registry.all().filter(([, { is_open, auto_open, unfinished }]) => is_open || auto_open || unfinished)
    const open = async ([id, { name, is_open, unfinished, computes }]: (typeof wanted)[number]) => {
      if (unfinished) {
        const agentFor = this.#ownAgents
        // A compute that crashed may have the directory of the project and not know the project: once opened, both can be removed.
        // One that was removed from the fleet cannot be asked any more.
        const known = mapLimit(computes, async (computeId) => {
          await openProject(agentFor(computeId), { project_id: id, name }).catch(ignoreNotFound)
        })
        await known
          .then(() => creation.drop(id, computes, agentFor))
          .catch(ignore('the next start of the service tries again'))
        return
      }
      await this.#openNow(id, this.#ownAgents, is_open ? 'reopen' : 'open').catch((error: Error) => {
        // An unreadable document is reported already. A lab that does not fit shows why until it is opened.
        if (error instanceof UnreadableLab) return
        if (error instanceof ApiError && error.code === 'limit-reached') registry.markUnopened(id, error.message)
        else warn(`The project ${id} could not be opened: ${error.message}`)
      })
    }
    const opened = ready.then(() => mapLimit(wanted, open)).then(() => this.#recoverMoves())
    access.reopened = withTimeout(opened, maxReopenMs, () => undefined).then(() => {})
    registry.tellWatchers()
    return access.reopened
  }

  /** Recovers moves of closed labs that ended with the service; those of open ones are recovered when they are opened. */
  async #recoverMoves(): Promise<void> {
    const { registry, documents, access, recovery } = this.#options
    const unrecovered = registry.all().filter(([id, { moving, formerComputes, pendingLinks, unfinished }]) => {
      return documents.get(id) === undefined && !unfinished && (moving ?? formerComputes ?? pendingLinks) !== undefined
    })
    await mapLimit(unrecovered, async ([id]) => {
      const settle = async () => recovery.recoverMove(await access.find(id), this.#ownAgents)
      await access.locked(id, settle).catch(ignore('the next opening or move of the project tries again'))
    })
  }

  /** Opens a lab, or a project that only a compute has. Does nothing for an open lab. */
  async open(idOrName: string, agentFor: ComputeAgents): Promise<LabProject> {
    const { registry, access } = this.#options
    const id = registry.idOf(idOrName)
    await access.reopened
    access.requireNotMoving(id)
    return this.#openNow(id, agentFor, 'open', idOrName)
  }

  #openNow(id: string, agentFor: ComputeAgents, opening: Opening, idOrName = id): Promise<LabProject> {
    const { registry, documents, access } = this.#options
    return access.locked(id, async () => {
      const opened = documents.get(id)
      if (opened !== undefined) return opened.project()
      registry.clearUnopened(id)
      return this.#openClosed(await this.#load(id, idOrName, agentFor), agentFor, opening)
    })
  }

  /** Opens a closed lab that the caller has locked. */
  async #openClosed(lab: Lab, agentFor: ComputeAgents, opening: Opening): Promise<LabProject> {
    const { documents, sync, parts, recovery } = this.#options
    using _ = documents.enter(lab)
    await this.#requireComputeOfArchived(lab)
    await recovery.recoverSnapshots(lab, agentFor)
    await recovery.recoverMove(lab, agentFor).catch(ignore('the next opening of the project tries again'))
    const { computes } = lab.document.project
    using _opening = parts.states.during(lab.id, { event: 'open', onFailure: 'fail' })
    await this.#openOnComputes(lab, agentFor, opening)
    await sync.refresh(lab, computes, agentFor)
    sync.nodesRead()
    // A lab that the start of the service opens was open before, so there is no event.
    if (!lab.document.project.is_open) {
      await this.#saveOpenOrClose(lab, agentFor)
      documents.publish(lab, 'project.opened')
    }
    await this.#resumeNodes(lab, computes, agentFor, opening)
    return lab.project()
  }

  /** 503 for a lab that has an archive and whose compute is not connected. */
  async #requireComputeOfArchived(lab: Lab): Promise<void> {
    const { sync, archives } = this.#options
    if (lab.document.project.archivedRevision === undefined) return
    await sync.recordReason(lab)
    if (archives.isComputeLost(lab)) throw computeLost(lab, lab.statusReason)
  }

  /** Opens the projects of a lab on its computes, and closes them again if one refuses. */
  async #openOnComputes(lab: Lab, agentFor: ComputeAgents, opening: Opening): Promise<void> {
    const { sync, archives, parts } = this.#options
    const { id, document } = lab
    const { computes, name } = document.project
    const open = (computeId: string) =>
      openProject(agentFor(computeId), { project_id: id, name }).catch((error: Error) => {
        // The compute has just gone: `recordReason` did not know it yet.
        if (archives.hasArchive(lab) && isUnreachable(error)) throw computeLost(lab, error.message)
        if (opening === 'open' && isMalformed(error)) throw error
        sync.markUnknown(lab, computeId, error)
      })
    try {
      await parts.waitUntilReleased(id)
      await mapLimit(computes, async (computeId) => void (await open(computeId)))
      parts.states.move(id, 'ready')
      parts.markOpen(lab)
    } catch (error) {
      // Those that have opened it.
      await parts.close(lab, agentFor).catch(ignore('the client gets the first error'))
      throw error
    }
  }

  /** Saves that a lab is open; closes it again when that fails. */
  async #saveOpenOrClose(lab: Lab, agentFor: ComputeAgents): Promise<void> {
    const { parts } = this.#options
    try {
      await this.#saveIsOpen(lab, true)
    } catch (error) {
      using _ = parts.states.during(lab.id, { event: 'close', onFailure: 'refuse' })
      await parts.close(lab, agentFor).catch(ignore('the client gets the first error'))
      parts.states.move(lab.id, 'end')
      parts.markClosed(lab)
      throw error
    }
  }

  /** Goes on with what a restore or an apply has left, and starts the nodes that start by themselves. */
  async #resumeNodes(lab: Lab, computes: readonly string[], agentFor: ComputeAgents, opening: Opening): Promise<void> {
    const { autoStart } = this.#options
    await runRestored(lab, agentFor)
    autoStart.resumeApply(lab, agentFor)
    for (const [node, { status }] of lab.reported) if (status !== 'stopped') lab.lastRunning.add(node)
    if (opening === 'open') autoStart.start(lab, undefined, agentFor)
    await autoStart.startAfterReboot(lab, computes, agentFor)
  }

  /** The document of a closed lab, or a new one for a project that a compute has. */
  async #load(id: string, idOrName: string, agentFor: ComputeAgents): Promise<Lab> {
    const { registry, documents, computes } = this.#options
    const entries = await documents.load(id)
    if (entries !== undefined) return documents.make(id, entries)
    for (const computeId of await computes.all()) {
      const found = (await agentFor(computeId).projects.list('all')).find(({ project_id }) => project_id === id)
      if (found === undefined) continue
      const record: ProjectRecord = {
        project_id: id,
        name: found.name ?? id.slice(0, 8),
        ...withDefaults(labSettings, {}),
        path: found.path,
        revision: 0,
        computes: [computeId],
        is_open: false,
      }
      registry.add(id, record)
      await using revert = new Revert(ignore('the next opening of the project adds it again'))
      revert.add(() => registry.remove(id))
      await registry.announce(id, record)
      await documents.saveNew(id, record)
      revert.commit()
      return documents.make(id, new Map([['project', record]]))
    }
    throw noSuchProject(idOrName)
  }

  /** Closes a lab, which stops its nodes. Does nothing for a closed lab. */
  async close(idOrName: string, agentFor: ComputeAgents): Promise<void> {
    const { registry, documents, access, jobs, archives, parts } = this.#options
    const id = registry.idOf(idOrName)
    access.requireNotMoving(id)
    // A running apply has locked the lab until it has reverted its changes: it is cancelled before the lock is waited for.
    jobs.cancelAllOf(id, 'The project was closed', { only: 'apply' })
    return access.locked(id, async () => {
      const lab = documents.get(id)
      if (lab === undefined) return
      await parts.requireConnected(lab, 'close')
      await lab.requireSavable()
      jobs.cancelAllOf(id, 'The project was closed')
      await lab.exclusive(
        async () => {
          using _ = parts.states.during(id, { event: 'close', onFailure: 'refuse' })
          await parts.closeOrReopen(lab, agentFor)
          await saveOrRevert(
            lab,
            () => this.#saveIsOpen(lab, false),
            () => parts.reopen(lab, agentFor),
          )
          parts.states.move(id, 'end')
          parts.markClosed(lab)
        },
        { onTimeout: 'proceed' },
      )
      archives.archiveAfterClose(id)
    })
  }

  async #saveIsOpen(lab: Lab, is_open: boolean): Promise<void> {
    const { registry, archives } = this.#options
    const more = is_open ? {} : archives.firstAttempt()
    await lab.edit(({ project: { stop_at, ttl_deletes, archiveAttempts: _, ...project } }) => ({
      changes: new Changes().project({
        ...project,
        is_open,
        ...more,
        ...(is_open && withoutNulls({ stop_at, ttl_deletes })),
      }),
      news: () => [],
      result: undefined,
      isServiceChange: true,
    }))
    await registry.put(lab.id, lab.document.project)
  }

  /** Deletes a lab, also on its computes, or a project that only computes have. */
  async remove(idOrName: string, agentFor: ComputeAgents): Promise<void> {
    const { registry, access, jobs, parts, lists } = this.#options
    const id = registry.idOf(idOrName)
    access.requireNotMoving(id)
    jobs.cancelAllOf(id, 'The project was deleted', { only: 'apply' })
    return access.locked(id, async () => {
      const lab = await access
        .find(id)
        .catch((error) => this.#withoutDocument(id, error))
        .catch(ignoreNotFound)
      if (lab === undefined) return lists.removeUnmanaged(id, idOrName, agentFor)
      await parts.requireConnected(lab, 'delete')
      jobs.cancelAllOf(id, 'The project was deleted', { forget: true })
      await this.discard(lab, agentFor)
    })
  }

  /** For `catch` of `find`: a lab whose document cannot be read, with its settings alone. */
  #withoutDocument(id: string, error: unknown): Lab {
    const { registry, documents } = this.#options
    const head = registry.get(id)
    if (!(error instanceof UnreadableLab) || head === undefined) throw error
    return documents.make(id, new Map([['project', head]]))
  }

  /** Deletes a lab that the caller has locked (`exclusively`). Its jobs stay in the list. */
  async discard(lab: Lab, agentFor: ComputeAgents): Promise<void> {
    return lab.exclusive(() => this.#discardNow(lab, agentFor), { onTimeout: 'proceed' })
  }

  async #discardNow(lab: Lab, agentFor: ComputeAgents): Promise<void> {
    const { registry, documents, archives, parts, warn } = this.#options
    const { id, document } = lab
    using _ = parts.states.during(id, { event: 'delete', onFailure: 'refuse' })
    const { formerComputes = [], name } = document.project
    for (const computeId of computesWithFiles(document.project)) {
      const isFormer = formerComputes.includes(computeId)
      await removeProject(agentFor(computeId), id).catch((error: unknown) => {
        if (!isFormer || !isUnreachable(error)) return ignoreNotFound(error)
        warn(
          `The project ${name} was deleted, but compute ${computeId}, which is not connected, may still have an old copy of its ` +
            'files. When the compute is back, the copy is listed as a project and can be deleted',
        )
      })
    }
    for (const snapshot of document.snapshots.keys()) await documents.putSideDocument(snapshot, undefined)
    lab.isOver = true
    await documents.remove(id)
    await archives.remove(id)
    await registry.remove(id)
    parts.states.move(id, 'gone')
    parts.markDeleted(lab)
  }

  /**
   * Closes a lab, runs an operation on it, and opens it again if it was open. `check` throws to refuse before anything is changed. Requests
   * that would change the lab get 409 meanwhile.
   */
  async withClosedLab<T>(
    id: string,
    agentFor: ComputeAgents,
    check: (lab: Lab) => void,
    run: (lab: Lab) => Promise<T>,
  ): Promise<T> {
    const { documents, access, parts, warn } = this.#options
    const moving = access.beginMove(id)
    let wasOpen = false
    try {
      return await access.locked(id, async () => {
        const lab = await access.find(id)
        check(lab)
        if (parts.states.of(id) === 'open') {
          await parts.requireConnected(lab, 'close')
          await lab.exclusive(
            async () => {
              using _ = parts.states.during(id, { event: 'close', onFailure: 'refuse' })
              await parts.closeOrReopen(lab, agentFor)
              wasOpen = true
              // The record says that it is open: after a crash the next start opens it.
              parts.states.move(id, 'end')
              parts.markClosed(lab)
            },
            { onTimeout: 'proceed' },
          )
        }
        using _moving = parts.states.during(id, { event: 'move', onFailure: 'settle' })
        const result = await run(await access.find(id))
        parts.states.move(id, 'settle')
        return result
      })
    } finally {
      moving[Symbol.dispose]()
      if (wasOpen)
        await this.#openNow(id, agentFor, 'reopen').then(
          () => {
            const opened = documents.get(id)
            if (opened !== undefined) documents.publish(opened, 'project.opened')
          },
          (error: Error) => warn(`The project ${id} could not be opened after its move: ${error.message}`),
        )
    }
  }

  /** Opens an open lab on a further compute. */
  async attachCompute(lab: Lab, computeId: string, agentFor: ComputeAgents): Promise<void> {
    const { registry, documents, sync, autoStart, recovery } = this.#options
    const isOn = () => lab.document.project.computes.includes(computeId)
    if (isOn()) return
    await this.#enlistments.run(`${lab.id}/${computeId}`, async () => {
      if (isOn()) return
      await recovery.forgetOn(lab, computeId, agentFor)
      const known = await agentFor(computeId).projects.get(lab.id).catch(ignoreNotFound)
      await openProject(agentFor(computeId), { project_id: lab.id, name: lab.document.project.name })
      const save = () =>
        lab.edit(({ project }) => ({
          changes: new Changes().project({ ...project, computes: [...project.computes, computeId] }),
          news: () => [],
          result: undefined,
        }))
      await saveOrRevert(lab, save, async () => {
        // What another client has made there is not ours to remove.
        if (known === undefined) await removeProject(agentFor(computeId), lab.id)
      })
      await registry.put(lab.id, lab.document.project)
      documents.publish(lab, 'project.updated')
      sync.computeAdded(computeId)
      await autoStart.startAfterReboot(lab, [computeId], agentFor)
    })
  }
}

/** Whether a compute answered with something else than it should: it is not away, and the lab must not be shown as open there. */
const isMalformed = (error: unknown): boolean => error instanceof ApiError && error.status === 502

/** 503 for a lab that has an archive and whose compute is gone. Opened without the compute, the lab would differ from its archive. */
function computeLost({ document }: Lab, reason: string | undefined): ApiError {
  const [compute = ''] = document.project.computes
  return new ApiError(
    503,
    `${reason}. To restore the project from its archive on another compute, use POST /v2/computes/${compute}/drain`,
    { code: 'compute-unreachable', headers: retryAfter },
  )
}
