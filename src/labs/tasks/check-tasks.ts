import { ApiError, conflict } from '../../lib/errors/api-error.ts'
import type { LabJob } from '../../model/lab/job.ts'
import type { LabTaskResult, LabTaskResults } from '../../model/lab/task.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { JobState } from '../jobs/jobs.ts'
import type { Lab } from '../lab/lab.ts'
import { type CheckOutcome, outcomeOf } from '../nodes/checks.ts'
import type { Labs } from '../service.ts'
import { saveResults } from './tasks.ts'

const away = 'Its compute does not answer: the task was not checked, and its last result stays'

/**
 * Runs the checks of the tasks of a lab, each once, as a job; a check that runs already is that job. What the job shows does not say what the
 * checks are. 404 for a lab without tasks, 503 while its compute is away: the last results stay.
 */
export async function checkTasks(labs: Labs, lab: Lab, by: string, agentFor: ComputeAgents): Promise<LabJob> {
  const tasks = lab.document.tasks?.tasks.filter(({ checks }) => checks.length > 0) ?? []
  const { name } = lab.document.project
  if (tasks.length === 0) throw conflict(`The project ${name} has no tasks that can be checked`)
  if (lab.statusReason !== undefined)
    throw new ApiError(503, `The tasks cannot be checked now: ${lab.statusReason}. Their last results stay`, {
      code: 'compute-unreachable',
    })
  const running = labs.jobs
    .list()
    .find((job) => job.project_id === lab.id && job.status === 'running' && job.tasks !== undefined)
  if (running !== undefined) return running
  const results = tasks.map((task): LabTaskResult => ({ ...taskHead(task), state: 'waiting', reason: null }))
  const job = labs.jobs.run(lab, 'check', {
    by,
    state: () => stateOf(results),
    async work({ signal, changed }) {
      const show = (index: number, result: Pick<LabTaskResult, 'state' | 'reason'>) => {
        results[index] = { ...(results[index] as LabTaskResult), ...result }
        changed()
      }
      const known = new Map<string, CheckOutcome>()
      try {
        for (const [index, task] of tasks.entries()) {
          show(index, { state: 'running', reason: null })
          const outcomes: CheckOutcome[] = []
          for (const check of task.checks) {
            const found = known.get(check) ?? (await outcomeOfNamed(lab, check, signal, agentFor))
            known.set(check, found)
            outcomes.push(found)
          }
          show(index, resultOf(outcomes))
        }
      } catch (error) {
        for (const [index, { state }] of results.entries())
          if (state === 'waiting' || state === 'running') show(index, { state: 'cancelled', reason: null })
        throw error
      }
      if (results.some(isKnown)) await saveResults(labs, lab, newResults(lab, results))
    },
  })
  await job.listed
  return labs.jobs.get(job.id)
}

const isKnown = ({ state }: LabTaskResult): boolean => state === 'done' || state === 'open'

const taskHead = ({ name, points }: Pick<LabTaskResult, 'name' | 'points'>) => ({ name, points })

/** Runs the check of this name. The tasks of the lab may have changed meanwhile. */
async function outcomeOfNamed(
  lab: Lab,
  name: string,
  signal: AbortSignal,
  agentFor: ComputeAgents,
): Promise<CheckOutcome> {
  const check = lab.document.tasks?.checks.find((it) => it.name === name)
  if (check === undefined) return { state: 'failed', saw: 'it is gone', cause: 'gone' }
  return outcomeOf(lab, check, signal, agentFor)
}

/** Whether a task is done, by its checks, and why not. */
function resultOf(outcomes: readonly CheckOutcome[]): Pick<LabTaskResult, 'state' | 'reason'> {
  const holding = outcomes.filter(({ state }) => state === 'ok').length
  if (holding === outcomes.length) return { state: 'done', reason: null }
  const has = (wanted: string) => outcomes.some((it) => it.state === 'failed' && it.cause === wanted)
  if (has('away')) return { state: 'unknown', reason: away }
  if (has('stopped'))
    return { state: 'open', reason: 'A node that it is about is not running: start it, and check again' }
  if (has('gone')) return { state: 'open', reason: 'Something that it is about is not in the lab any more' }
  if (outcomes.length === 1) return { state: 'open', reason: 'It does not work yet' }
  return { state: 'open', reason: `${holding} of ${outcomes.length} parts work` }
}

/** The results that the lab keeps: a task that could not be checked keeps its last one. */
function newResults({ document: { taskResults } }: Lab, results: readonly LabTaskResult[]): LabTaskResults {
  const kept = results.flatMap(({ name, state, reason }): [string, LabTaskResults['tasks'][string]][] => {
    if (state === 'done' || state === 'open') return [[name, { state, reason }]]
    const before = taskResults?.tasks[name]
    return before === undefined ? [] : [[name, before]]
  })
  return { checked_at: new Date().toISOString(), tasks: Object.fromEntries(kept) }
}

function stateOf(results: readonly LabTaskResult[]): JobState {
  const of = (...states: LabTaskResult['state'][]) => results.filter(({ state }) => states.includes(state))
  const [unknown] = of('unknown')
  return {
    reason: unknown === undefined ? null : `${unknown.name}: ${unknown.reason}`,
    isCancelled: of('cancelled').length > 0,
    total: results.length,
    done: of('done', 'open').length,
    failed: of('unknown').length,
    skipped: of('cancelled').length,
    nodes: [],
    tasks: results.map((result) => ({ ...result })),
  }
}
