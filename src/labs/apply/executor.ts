import { onAbort } from '../../lib/async/abort.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import type { LabJobCreate } from '../../model/lab/job.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import { reasonOf } from '../jobs/failure-reason.ts'
import type { JobState, StartedJob, StartedNodeJob } from '../jobs/jobs.ts'
import { withoutNulls } from '../lab/fields.ts'
import type { Lab } from '../lab/lab.ts'
import { runNodeAction } from '../nodes/nodes.ts'
import { joinAgain } from '../nodes/placeholders.ts'
import { phaseOf } from '../plan/order.ts'
import type { WantedLink } from '../plan/types.ts'
import type { Labs } from '../service.ts'
import { rollBack } from '../undo/undo.ts'
import { ApplyContext, type ApplyInput } from './context.ts'
import { prepare } from './prepare.ts'
import { jobStateOf, progressOf, type StepProgress, stepView } from './progress.ts'
import { runTask, type SingleTask } from './steps/index.ts'
import { makeLinks } from './steps/links.ts'
import { newMarks } from './steps/marks.ts'

/** Steps of one phase that are taken concurrently, and links that are made together. */
const maxAtOnce = 6
const linksAtOnce = 250

/**
 * Takes the steps of a plan, as a job. When a step fails, or the job is cancelled, all changes are reverted, the last one first.
 * After a crash of the service in between, its next start starts the nodes that were stopped, and the next apply of the same
 * file does the rest.
 */
export function applyPlan(labs: Labs, lab: Lab, input: ApplyInput, agentFor: ComputeAgents): StartedJob {
  const executor = new ApplyExecutor(labs, lab, input, agentFor)
  return labs.jobs.run(lab, 'apply', {
    state: () => executor.state(),
    async work({ id, signal, changed }) {
      executor.begin(id, signal, changed)
      await labs.access.exclusively(lab.id, () => executor.execute())
      try {
        await executor.start()
      } finally {
        await executor.end()
      }
    },
  })
}

/** Takes the steps of one plan, phase by phase. */
class ApplyExecutor {
  readonly #context: ApplyContext
  readonly #isNew: boolean
  #steps: StepProgress[]
  #changed = () => {}
  #startJob: string | undefined

  constructor(labs: Labs, lab: Lab, input: ApplyInput, agentFor: ComputeAgents) {
    this.#context = new ApplyContext(labs, lab, input, agentFor)
    this.#isNew = input.isNew === true
    this.#steps = progressOf(input.prepared.plan)
  }

  begin(jobId: string, signal: AbortSignal, changed: () => void): void {
    this.#context.jobId = jobId
    this.#context.signal = signal
    this.#changed = changed
  }

  state(): JobState {
    return jobStateOf(this.#steps, this.#startJob)
  }

  /** Takes all steps but the starts, or none. */
  async execute(): Promise<void> {
    const context = this.#context
    const { labs, lab, agentFor, signal } = context
    // The project may have been deleted while this waited.
    signal.throwIfAborted()
    // Another edit may have come since the plan was made.
    if (lab.document.project.revision !== context.prepared.actual.project.revision) {
      const { desired, options } = context.prepared
      context.prepared = await prepare(labs, lab, desired, options, agentFor)
      this.#steps = progressOf(context.prepared.plan)
    }
    try {
      await this.#recordLastApplied()
      for (const phase of new Set(this.#steps.map(({ step }) => phaseOf(step)))) {
        const together = this.#steps.filter(({ step }) => phaseOf(step) === phase)
        await this.#freeLinkNames(together)
        await this.#runPhase(together)
      }
    } catch (error) {
      for (const it of this.#steps) if (it.state === 'waiting' || it.state === 'running') this.#show(it, 'cancelled')
      // At the end of the service its next start and the next apply go on from here.
      if (!lab.closing.signal.aborted) {
        await this.#revert()
        if (this.#isNew && isEmpty(lab)) await labs.lifecycle.discard(lab, agentFor)
        else await this.end()
      }
      throw error
    }
  }

  /** Records that the apply is done, or was reverted. */
  async end(): Promise<void> {
    const { lab, jobId, by } = this.#context
    if (lab.closing.signal.aborted || lab.document.project.lastApplied?.pendingApply?.job_id !== jobId) return
    await this.#context.write([{ lastApplied: { by } }], { by: 'rollback' }, false)
  }

  /** Saves what was applied to objects that need no step, and that the apply is pending. */
  async #recordLastApplied(): Promise<void> {
    const { lab, by, jobId, prepared } = this.#context
    const nodes = newMarks(lab, prepared).map(({ record, lastApplied }) => ({
      node: record.node_id,
      set: { lastApplied },
    }))
    const links = prepared.plan.linksToMark.map((id) => ({
      link: id,
      set: { lastApplied: { managed: true as const } },
    }))
    const lastApplied = { by, pendingApply: { job_id: jobId, stopped: [] } }
    await this.#context.write([{ lastApplied }, ...nodes, ...links], this.#context.undoGroup, false)
  }

  /** Removes the names of links that get other names, so that two links can exchange their names. */
  async #freeLinkNames(steps: readonly StepProgress[]): Promise<void> {
    const { lab, undoGroup } = this.#context
    const renamed = steps.flatMap(({ step: { task } }) => {
      if (task.type !== 'change-link' || !task.parts.includes('name')) return []
      const link = lab.link(task.link_id)
      return link.name == null ? [] : [{ link: link.link_id, set: { name: null } }]
    })
    await this.#context.write(renamed, undoGroup, false)
  }

  /**
   * Takes steps that do not depend on each other. Rejects with the first failure, when no step runs any more; the job logs that
   * one. Every other failure that is not a refusal is logged here.
   */
  async #runPhase(steps: readonly StepProgress[]): Promise<void> {
    const failures: unknown[] = []
    const isOver = () => failures.length > 0 || this.#context.signal.aborted
    const fail = (it: StepProgress, error: unknown) => {
      failures.push(error)
      this.#show(it, 'failed', reasonOf(error))
    }
    const links: { it: StepProgress; link: WantedLink }[] = []
    const others: { it: StepProgress; task: SingleTask }[] = []
    for (const it of steps) {
      const { task } = it.step
      if (task.type === 'create-link') links.push({ it, link: task.link })
      // `start` has a job of its own for the starts.
      else if (task.type !== 'start-node') others.push({ it, task })
    }
    for (let first = 0; first < links.length && !isOver(); first += linksAtOnce) {
      const together = links.slice(first, first + linksAtOnce)
      for (const { it } of together) this.#show(it, 'running')
      const wanted = together.map(({ link }) => link)
      const made = await makeLinks(this.#context, wanted).catch((error: unknown) => together.map(() => ({ error })))
      for (const [index, { it }] of together.entries()) {
        const link = made[index]
        if (link !== undefined && 'error' in link) fail(it, link.error)
        else this.#show(it, 'done')
      }
    }
    await mapLimit(
      others,
      async ({ it, task }) => {
        if (isOver()) return
        this.#show(it, 'running')
        try {
          await runTask(this.#context, task)
          this.#show(it, 'done')
        } catch (error) {
          fail(it, error)
        }
      },
      maxAtOnce,
    )
    const [first, ...more] = failures
    for (const error of more) this.#context.reportDefect(error, 'failed')
    if (failures.length > 0) throw first
    this.#context.signal.throwIfAborted()
  }

  #show(it: StepProgress, state: StepProgress['state'], reason: string | null = null): void {
    it.state = state
    it.reason = reason
    const { lab, jobId } = this.#context
    lab.emit({ action: 'job.step', event: { job_id: jobId, project_id: lab.id, ...stepView(it) } })
    this.#changed()
  }

  /** Reverts all changes: first those in the document, then the others, the last one first. */
  async #revert(): Promise<void> {
    const context = this.#context
    const { labs, lab, agentFor, unreverted } = context
    const note = (error: unknown) => context.noteUnreverted(error)
    unreverted.push(...(await rollBack(labs, lab, context.undoGroup, agentFor)))
    await context.revert[Symbol.asyncDispose]()
    const unwired = [...lab.document.links.values()].filter(({ wiring }) => wiring.type === 'none')
    const ids = unwired.map(({ link_id }) => link_id)
    await joinAgain(labs, lab, ids, agentFor, { by: 'rollback' }).catch(note)
    for (const id of context.stopped) {
      const record = lab.document.nodes.get(id)
      if (record !== undefined) await runNodeAction(labs, lab, record, 'start', agentFor).catch(note)
    }
    for (const it of this.#steps) if (it.state === 'done') this.#show(it, 'undone')
    for (const reason of unreverted) {
      const message = `Not all changes of the failed apply could be reverted: ${reason}`
      lab.emit({ action: 'log.warning', event: { message } })
    }
  }

  /** Starts the nodes of the plan, by a job of their own, and waits for it. */
  async start(): Promise<void> {
    const { labs, lab, agentFor, prepared, signal } = this.#context
    const steps = this.#steps.filter(({ step }) => step.task.type === 'start-node')
    if (steps.length === 0) return
    // By id: the nodes may be renamed or deleted while they start.
    const stepOf = new Map(steps.map((it) => [lab.node(it.step.name).node_id, it]))
    const { at_once, load_below, give_up } = prepared.desired.starting
    const input: LabJobCreate = {
      action: 'start',
      nodes: [...stepOf.keys()],
      give_up,
      ...withoutNulls({ at_once, load_below }),
    }
    let job: StartedNodeJob
    try {
      job = labs.jobs.start(lab, input, agentFor)
    } catch (error) {
      // Too many jobs run.
      for (const it of steps) this.#show(it, 'failed', (error as Error).message)
      throw error
    }
    for (const it of steps) this.#show(it, 'running')
    this.#startJob = job.id
    this.#changed()
    const stop = () => {
      if (labs.jobs.get(job.id).status === 'running') labs.jobs.remove(job.id)
    }
    // The cancel may have come since the last step was taken.
    const forget = onAbort(signal, stop)
    try {
      await job.over
    } finally {
      forget()
      for (const { record, state, reason } of job.nodes) {
        const it = stepOf.get(record.node_id)
        if (it !== undefined) this.#show(it, state === 'done' || state === 'failed' ? state : 'cancelled', reason)
      }
    }
  }
}

const isEmpty = ({ document: { nodes, links, drawings } }: Lab): boolean =>
  nodes.size + links.size + drawings.size === 0
