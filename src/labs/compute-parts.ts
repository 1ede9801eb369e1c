import type { EventLog } from '../fleet/events/event-log.ts'
import { retryAfter } from '../fleet/members/member-errors.ts'
import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { ApiError, ignoreNotFound } from '../lib/errors/api-error.ts'
import type { LabEvent } from '../model/lab/event.ts'
import { type ComputeAgents, openProject } from './computes/agents.ts'
import type { ComputePool } from './computes/compute-pool.ts'
import type { LabDocuments } from './documents.ts'
import type { ProjectRecord } from './lab/document.ts'
import type { Lab } from './lab/lab.ts'
import { LabStates } from './lab-states.ts'
import type { ComputeSync } from './sync.ts'

/** Recovers what operations that ended with the service have left. */
export interface LabRecovery {
  recoverSnapshots(lab: Lab, agentFor: ComputeAgents): Promise<void>
  recoverMove(lab: Lab, agentFor: ComputeAgents): Promise<void>
  /** Removes what a move has left on a compute. */
  forgetOn(lab: Lab, computeId: string, agentFor: ComputeAgents): Promise<void>
}

interface ComputePartsOptions {
  readonly documents: LabDocuments
  readonly computes: ComputePool
  readonly events: EventLog<LabEvent>
  readonly sync: ComputeSync
  readonly recovery: LabRecovery
}

/** The parts of labs on their computes, where each is a project: an open lab is open there, too. */
export class ComputeParts {
  readonly #options: ComputePartsOptions
  readonly states = new LabStates()
  /** Closed labs that `withOpen` is closing on their computes again. */
  readonly #releasing = new Map<string, Promise<void>>()
  /** Number of running operations of `withOpen`, by lab. */
  readonly #users = new Map<string, number>()

  constructor(options: ComputePartsOptions) {
    this.#options = options
  }

  /** Shows a lab as open, whose parts were opened. */
  markOpen(lab: Lab): void {
    const { documents, events, sync } = this.#options
    lab.isOpen = true
    events.openProject(lab.id)
    documents.addOpen(lab)
    sync.opened(lab)
  }

  /** Shows a lab as closed, whose parts were closed. */
  markClosed(lab: Lab): void {
    this.#markOver(lab, 'project.closed')
    this.#options.events.idleProject(lab.id)
  }

  /** Shows that a lab is deleted, as its parts were. */
  markDeleted(lab: Lab): void {
    this.#markOver(lab, 'project.deleted')
    this.#options.events.closeProject(lab.id)
  }

  #markOver(lab: Lab, action: 'project.closed' | 'project.deleted'): void {
    const { documents, sync } = this.#options
    lab.isOpen = false
    lab.isOver = true
    lab.closing.abort()
    documents.publish(lab, action)
    documents.removeOpen(lab)
    sync.closed(lab)
  }

  /** Runs an operation while a project is open on its computes. Closes a closed lab there again after the last one. */
  async withOpen<T>(lab: Lab, agentFor: ComputeAgents, run: () => Promise<T>): Promise<T> {
    const { documents, recovery } = this.#options
    if (!lab.isOpen) await recovery.recoverSnapshots(lab, agentFor)
    const { computes, name } = lab.document.project
    this.#users.set(lab.id, (this.#users.get(lab.id) ?? 0) + 1)
    try {
      if (!lab.isOpen) {
        await this.waitUntilReleased(lab.id)
        for (const id of computes) await openProject(agentFor(id), { project_id: lab.id, name })
      }
      return await run()
    } finally {
      const remaining = (this.#users.get(lab.id) ?? 1) - 1
      if (remaining > 0) this.#users.set(lab.id, remaining)
      else {
        this.#users.delete(lab.id)
        if (documents.get(lab.id) === undefined && this.states.of(lab.id) !== 'opening') {
          const releasing = this.close(lab, agentFor)
          this.#releasing.set(lab.id, releasing)
          await releasing.finally(() => this.#releasing.delete(lab.id))
        }
      }
    }
  }

  /** Closes a lab on its computes: on all that can, also when one refuses. Rejects with the first refusal. */
  async close(lab: Lab, agentFor: ComputeAgents): Promise<void> {
    const refusals: unknown[] = []
    await mapLimit(lab.document.project.computes, (computeId) =>
      agentFor(computeId)
        .projects.close(lab.id)
        .catch(ignoreNotFound)
        .catch((error: unknown) => void refusals.push(error)),
    )
    if (refusals.length > 0) throw refusals[0]
  }

  /** Closes an open lab on its computes. When one refuses, the others open it again, as the lab stays open; its nodes there have stopped. */
  async closeOrReopen(lab: Lab, agentFor: ComputeAgents): Promise<void> {
    try {
      await this.close(lab, agentFor)
    } catch (error) {
      await this.reopen(lab, agentFor).catch(ignore('the client gets the first error'))
      throw error
    }
  }

  /** Opens a lab on its computes again, and reads its nodes. */
  async reopen(lab: Lab, agentFor: ComputeAgents): Promise<void> {
    const { sync } = this.#options
    const { computes, name } = lab.document.project
    for (const id of computes) await openProject(agentFor(id), { project_id: lab.id, name })
    lab.reported.clear()
    lab.unknownReasons.clear()
    await sync.refresh(lab, computes, agentFor)
  }

  /**
   * 503 while a compute of the lab is not connected: the operation would be done in part only. A compute from which the lab was moved does
   * not count: it may never come back.
   */
  async requireConnected(lab: Lab, what: 'close' | 'delete'): Promise<void> {
    const { computes } = this.#options
    const { project } = lab.document
    const { formerComputes: _, ...present } = project
    const all = await computes.absent(what === 'close' ? project.computes : computesWithFiles(present))
    // Nothing is left of the project at a compute that was removed.
    const absent = all.find(({ since }) => since !== undefined)
    if (absent === undefined) return
    throw new ApiError(
      503,
      `Compute ${absent.name} has files of the project ${lab.document.project.name} but is not connected: ${what} the project when ` +
        `it is connected again, or remove it first with DELETE /v2/computes/${absent.compute_id}`,
      { code: 'compute-unreachable', headers: retryAfter },
    )
  }

  /** Resolves when an operation that is closing the lab again on its computes has done so. */
  async waitUntilReleased(id: string): Promise<void> {
    await this.#releasing.get(id)?.catch(ignore('the operation reports that it could not close the project'))
  }

  /** Whether an operation of `withOpen` runs, such as a copy or an archive. */
  isUsed(id: string): boolean {
    return this.#users.has(id)
  }
}

/** The computes that have files of a lab: also those that it has left. */
export const computesWithFiles = ({
  computes,
  formerComputes = [],
  moving,
}: Pick<ProjectRecord, 'computes' | 'formerComputes' | 'moving'>): string[] => [
  ...new Set([...computes, ...formerComputes, ...(moving === undefined ? [] : [moving.to])]),
]

export const isUnreachable = (error: unknown): boolean =>
  error instanceof ApiError && error.code === 'compute-unreachable'
