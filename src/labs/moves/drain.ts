import { mapLimit } from '../../lib/async/map-limit.ts'
import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import type { LabCatalog } from '../catalog.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { reasonOf } from '../jobs/failure-reason.ts'
import type { StartedJob } from '../jobs/jobs.ts'
import { type JobProject, progressOfProjects } from '../jobs/project-progress.ts'

/** Labs that move at the same time: each copies its files through the service. */
const maxAtOnce = 2
/** Default of the longest drain, s. */
export const defaultDrainS = 3600

/**
 * Moves the labs of a compute to other computes by a job. Labs with running nodes stay, and so do projects that are not labs; the job says
 * why. `close` makes the compute refuse new projects, and is called only when the job can start. 409 while another drain of the compute
 * runs, 429. After `catalog.drainS` seconds it ends, and the job says which labs are left; a move under way is reverted.
 */
export async function drainCompute(
  catalog: LabCatalog,
  computeId: string,
  agentFor: ComputeAgents,
  close: () => Promise<unknown>,
): Promise<StartedJob> {
  requireUndrained(catalog, computeId)
  catalog.jobs.requireRoom()
  await close()
  // Another request may have started a drain meanwhile. From here until this job is in the list nothing is awaited, so none can.
  requireUndrained(catalog, computeId)
  const parts = catalog.registry.on(computeId).map(({ project_id, name }): JobProject => {
    return { project_id, name, state: 'waiting', reason: null, compute_id: null }
  })
  return catalog.jobs.run(undefined, 'drain', {
    state: () => progressOfProjects(parts, { compute_id: computeId }),
    async work({ signal: cancelled, changed }) {
      const drainS = catalog.drainS?.() ?? defaultDrainS
      const over = new AbortController()
      const timer = setTimeout(() => over.abort(), drainS * 1000)
      const signal = AbortSignal.any([cancelled, over.signal])
      const show = (part: JobProject, state: JobProject['state'], reason: string | null = null) => {
        Object.assign(part, { state, reason })
        changed()
      }
      const leave = (part: JobProject) => {
        if (cancelled.aborted) return show(part, 'cancelled')
        show(part, 'skipped', `It was not moved within ${drainS} s (fleet.drain_s); drain the compute again`)
      }
      await mapLimit(
        [...parts],
        async (part) => {
          if (signal.aborted) return leave(part)
          show(part, 'moving')
          try {
            const to = await catalog.move(part.project_id, computeId, {
              agentFor,
              signal,
              show: (doing) => show(part, 'moving', doing),
            })
            part.compute_id = to
            show(part, 'done')
          } catch (error) {
            if (signal.aborted) return leave(part)
            const computes = catalog.registry.computesOf(part.project_id)
            if (error instanceof ApiError && computes?.includes(computeId) === false) {
              part.compute_id = computes[0] ?? null
              return show(part, 'done', 'It was already moved; its old files are deleted when the compute is back')
            }
            const isStaying = error instanceof ApiError && error.status < 500
            show(part, isStaying ? 'skipped' : 'failed', reasonOf(error))
            if (!(error instanceof ApiError)) throw error
          }
        },
        maxAtOnce,
      ).finally(() => clearTimeout(timer))
      for (const other of await unmanagedOn(catalog, computeId, agentFor)) parts.push(other)
      changed()
    },
  })
}

function requireUndrained(catalog: LabCatalog, computeId: string): void {
  // These jobs are always of this process.
  const busy = catalog.jobs
    .list()
    .find(({ action, status, compute_id }) => action === 'drain' && status === 'running' && compute_id === computeId)
  if (busy !== undefined) throw conflict(`The compute ${computeId} is being drained by the job ${busy.job_id}`)
}

/** Projects that clients of the compute interface made: only these clients know on which computes their nodes are. */
async function unmanagedOn(catalog: LabCatalog, computeId: string, agentFor: ComputeAgents): Promise<JobProject[]> {
  const all = await agentFor(computeId)
    .projects.list('all')
    .catch(() => [])
  const reason = 'It was created through the compute interface: the client that created it has to move it'
  return all
    .filter(({ project_id }) => catalog.registry.nameOf(project_id) === undefined)
    .map(({ project_id, name }) => ({
      project_id,
      name: name ?? project_id,
      state: 'skipped' as const,
      reason,
      compute_id: null,
    }))
}
