import type { LabJobStep } from '../../model/lab/topology.ts'
import type { JobState } from '../jobs/jobs.ts'
import type { Plan, PlannedStep } from '../plan/types.ts'

/** Most steps that a job shows. */
const maxShown = 100

/** A step and how far it is. */
export interface StepProgress {
  readonly step: PlannedStep
  state: LabJobStep['state']
  reason: string | null
}

export const progressOf = ({ steps }: Plan): StepProgress[] =>
  steps.map((step) => ({ step, state: 'waiting', reason: null }))

/** A step of a job for the client. */
export const stepView = ({ step: { task: _, ...step }, state, reason }: StepProgress): LabJobStep => ({
  ...step,
  state,
  reason,
})

/** How far all steps are. */
export function jobStateOf(steps: readonly StepProgress[], startJob: string | undefined): JobState {
  const inState = (state: StepProgress['state']) => steps.filter((step) => step.state === state)
  const [failed] = inState('failed')
  const shown = (['failed', 'undone', 'cancelled', 'running', 'waiting'] as const).flatMap(inState).slice(0, maxShown)
  return {
    reason: failed === undefined ? null : `${failed.step.name}: ${failed.reason}`,
    isCancelled: failed === undefined && inState('cancelled').length > 0,
    total: steps.length,
    done: inState('done').length,
    failed: inState('failed').length,
    skipped: inState('undone').length + inState('cancelled').length,
    nodes: [],
    steps: shown.map(stepView),
    ...(startJob !== undefined && { start_job_id: startJob }),
  }
}
