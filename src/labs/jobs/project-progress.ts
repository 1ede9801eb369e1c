import type { LabJobProject } from '../../model/lab/job.ts'
import type { JobState } from './jobs.ts'

/** Most projects that a job shows. */
const maxShown = 100

/** A project of a job that works on several. */
export type JobProject = { -readonly [K in keyof LabJobProject]: LabJobProject[K] }

/** The order in which a job shows its projects. */
const orderOfStates: readonly JobProject['state'][] = [
  ...(['failed', 'skipped', 'cancelled', 'moving', 'working', 'waiting', 'done'] as const),
]

/** How far a job on several projects is. `subject`: what it is about. */
export function progressOfProjects(
  projects: readonly JobProject[],
  subject: Pick<JobState, 'compute_id' | 'class'>,
): JobState {
  const of = (state: JobProject['state']) => projects.filter((project) => project.state === state)
  const [failed, skipped] = [of('failed'), of('skipped')]
  const first = failed[0] ?? skipped[0]
  return {
    reason: first === undefined ? null : `${first.name}: ${first.reason}`,
    isCancelled: of('cancelled').length > 0,
    ...subject,
    total: projects.length,
    done: of('done').length,
    failed: failed.length,
    skipped: skipped.length,
    nodes: [],
    projects: orderOfStates
      .flatMap(of)
      .slice(0, maxShown)
      .map(({ project_id, name, state, reason, compute_id }) => ({ project_id, name, state, reason, compute_id })),
  }
}
