import type { NodeAction } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import { startTimer } from '../../lib/async/pause.ts'
import { ApiError, notFound, tooMany } from '../../lib/errors/api-error.ts'
import { counted } from '../../lib/text/counted.ts'
import type { LabListEvent } from '../../model/lab/event.ts'
import type { LabJob, LabJobCreate } from '../../model/lab/job.ts'
import { isKnownKind } from '../../model/lab/node.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { Conventions } from '../lab/conventions.ts'
import type { Lab } from '../lab/lab.ts'
import { Cancelled, failureOf } from './failure-reason.ts'
import { type JobNode, newJobNode, putInOrder } from './job-nodes.ts'
import { type NodeJob, NodeRuns, type NodeRunsOptions, progressOfNodes } from './node-runs.ts'

/** Most running jobs of a service, most ended jobs in its list, and how long these are listed, ms. */
const maxRunning = 200
const maxEnded = 200
const keptMs = 15 * 60_000
/** Least time between two events of one job, ms. */
const tellMs = 100
/** What a job shows of its work. */
export type JobState = Pick<LabJob, 'total' | 'done' | 'failed' | 'skipped' | 'nodes'> &
  Partial<Pick<LabJob, 'steps' | 'checks' | 'tasks' | 'start_job_id' | 'compute_id' | 'class' | 'projects'>> & {
    /** Why the first part of the work failed. */
    readonly reason: string | null
    readonly isCancelled: boolean
  }

/** A job and its state. */
export interface Job {
  readonly id: string
  /** Absent: the job works on many labs. */
  readonly lab: Lab | undefined
  readonly action: LabJob['action']
  readonly startedAt: Date
  readonly cancel: AbortController
  readonly state: () => JobState
  /** Of a check: name of the token or user that started it. */
  readonly by?: string | undefined
  endedAt: Date | undefined
  /** The error of the first part that failed. */
  failure: unknown
  /** Whether an event of the job is scheduled. */
  isChanged: boolean
}

/** What the work of a job gets. */
export interface JobContext {
  readonly id: string
  /** Aborts when the job is cancelled, and when its project is closed. */
  readonly signal: AbortSignal
  /** Call after each change of the state. */
  readonly changed: () => void
}

/** A job, for the request that started it. */
export interface StartedJob {
  readonly id: string
  /** Resolves when the requests to all nodes have ended; rejects with the first failure. */
  readonly requested: Promise<void>
  /** Likewise at the end of the job, when all nodes are ready. */
  readonly over: Promise<void>
  /** Resolves when the job is in the list of the service. */
  readonly listed: Promise<void>
}

/** A job on nodes, for the request that started it. */
export interface StartedNodeJob extends StartedJob {
  /** All its nodes and their states, also when the list of the service has forgotten the job. */
  readonly nodes: readonly Pick<JobNode, 'record' | 'state' | 'reason'>[]
}

interface JobsOptions extends NodeRunsOptions {
  /** Called with the lab of each new job, and with undefined at its removal, for a process that lists the jobs of all labs. */
  readonly noted?: ((jobId: string, projectId: string | undefined) => Promise<void>) | undefined
  /** Emits the events of jobs that work on many labs. */
  readonly emit?: (event: LabListEvent) => void
}

/** The jobs of a service. */
export interface JobList {
  list(): LabJob[] | Promise<LabJob[]>
  /** 404. */
  get(id: string): LabJob | Promise<LabJob>
  /** Cancels a running job, or forgets an ended one. 404. */
  remove(id: string): void | Promise<void>
}

/**
 * Work on many nodes of labs. Jobs end with the service; the nodes go on. A node starts when the nodes in its `after` are ready and the load
 * of its compute allows. The failure of a node skips only the nodes after it.
 */
export class Jobs implements JobList {
  readonly #options: JobsOptions
  readonly #jobs = new Map<string, Job>()
  readonly #runs: NodeRuns

  constructor(options: JobsOptions) {
    this.#options = options
    this.#runs = new NodeRuns(options, (job) => this.#changed(job))
  }

  list(): LabJob[] {
    this.#sweep()
    return [...this.#jobs.values()].map(viewOf)
  }

  get(id: string): LabJob {
    return viewOf(this.#job(id))
  }

  /** Whether a job of a project runs; `only`: one of this action. */
  isBusy(projectId: string, only?: LabJob['action']): boolean {
    return [...this.#jobs.values()].some(
      ({ lab, endedAt, action }) =>
        lab?.id === projectId && endedAt === undefined && (only === undefined || only === action),
    )
  }

  /** Starts a job on nodes. 400 when the `after` of nodes form a cycle, 404 for an unknown node, 429. */
  start(lab: Lab, input: LabJobCreate, agentFor: ComputeAgents, conventions?: Conventions): StartedNodeJob {
    const { action, nodes } = input
    this.requireRoom()
    // A placeholder cannot start. A job for all nodes leaves it out, so as not to fail by it.
    const all = [...lab.document.nodes.values()].filter(
      ({ node_type, creationError }) =>
        isKnownKind(node_type) &&
        (action === 'start' || (creationError === undefined && conventions?.runsAlways(node_type) !== true)),
    )
    const records = nodes === undefined ? all : [...new Set(nodes.map((idOrName) => lab.node(idOrName)))]
    const jobNodes = records.map(newJobNode)
    const job: NodeJob = {
      ...newJob(lab, action, () => progressOfNodes(jobNodes)),
      lab,
      action,
      nodes: jobNodes,
      input,
      active: 0,
      waiting: new Set(),
    }
    if (action === 'start') putInOrder(job.nodes)
    const { listed, signal } = this.#begin(job)
    const runs = job.nodes.map((node) => this.#runs.run({ job, node, agentFor, signal }))
    const orFail = () => {
      if (job.failure !== undefined) throw job.failure
    }
    const requested = Promise.all(job.nodes.map((node) => node.requested)).then(orFail)
    const over = Promise.all(runs)
      .then(() => this.#end(job))
      .then(orFail)
    for (const it of [requested, over]) it.catch(ignore('the job shows what failed'))
    return { id: job.id, requested, over, listed, nodes: job.nodes }
  }

  /** The list of these jobs, and of those in another list. */
  with(others: JobList): JobList {
    const of = (id: string): JobList => (this.#jobs.has(id.toLowerCase()) ? this : others)
    return {
      list: async () => [...this.list(), ...(await others.list())],
      get: (id) => of(id).get(id),
      remove: (id) => of(id).remove(id),
    }
  }

  /** Runs other work as a job: on one lab, or (`lab` is undefined) on many. `work` rejects when it fails; `state` shows its progress. 429. */
  run(
    lab: Lab | undefined,
    action: Exclude<LabJob['action'], NodeAction>,
    { state, by, work }: { state: () => JobState; by?: string; work: (context: JobContext) => Promise<void> },
  ): StartedJob {
    this.requireRoom()
    const job = { ...newJob(lab, action, state), by }
    const { listed, signal } = this.#begin(job)
    const over = work({ id: job.id, signal, changed: () => this.#changed(job) })
      .catch((error: unknown) => {
        job.failure = error
        if (!(error instanceof ApiError) && !signal.aborted)
          this.#options.report(error, `the job ${job.id} (${action}) failed`)
        throw failureOf(error, job.id)
      })
      .finally(() => this.#end(job))
    over.catch(ignore('the job shows what failed'))
    return { id: job.id, requested: over, over, listed }
  }

  /** 429 when no more jobs may run. */
  requireRoom(): void {
    this.#sweep()
    const running = [...this.#jobs.values()].filter(({ endedAt }) => endedAt === undefined)
    if (running.length >= maxRunning)
      throw tooMany(`${maxRunning} jobs are already running; wait for one, or cancel one`)
  }

  #begin(job: Job): { listed: Promise<void>; signal: AbortSignal } {
    this.#jobs.set(job.id, job)
    const listed = job.lab === undefined ? Promise.resolve() : this.#note(job.id, job.lab.id)
    this.#emit(job, 'created')
    const closing = job.lab === undefined ? [] : [job.lab.closing.signal]
    return { listed, signal: AbortSignal.any([job.cancel.signal, ...closing]) }
  }

  /** Cancels a running job, or forgets an ended one. Actions on nodes are not reverted. */
  remove(id: string): void {
    const job = this.#job(id)
    if (job.endedAt === undefined) job.cancel.abort(new Cancelled('A client cancelled it'))
    else this.#forget(job)
  }

  /** Cancels the jobs of a project; undefined: the jobs on many labs. `forget` removes them from the list; `only`: jobs of this action. */
  cancelAllOf(
    projectId: string | undefined,
    reason: string,
    { forget = false, only }: { forget?: boolean; only?: LabJob['action'] } = {},
  ): void {
    for (const job of this.#jobs.values()) {
      if (job.lab?.id !== projectId || (only !== undefined && job.action !== only)) continue
      if (job.endedAt === undefined) job.cancel.abort(new Cancelled(reason))
      if (forget) this.#drop(job)
    }
  }

  /** Emits an event of the job, at most every `tellMs`. */
  #changed(job: Job): void {
    if (job.isChanged) return
    job.isChanged = true
    startTimer(() => {
      job.isChanged = false
      if (job.endedAt === undefined) this.#emit(job, 'updated')
    }, tellMs)
  }

  #end(job: Job): void {
    job.endedAt = new Date()
    this.#emit(job, 'updated')
    this.#sweep()
  }

  #emit(job: Job, what: 'created' | 'updated' | 'deleted'): void {
    // All readers of a feed get the same: nobody what checks are.
    const event = { action: `job.${what}`, event: withoutCheckResults(viewOf(job)) } as const
    if (job.lab === undefined) this.#options.emit?.(event)
    else job.lab.emit(event)
  }

  /** Forgets ended jobs above `maxEnded`, or older than `keptMs`. */
  #sweep(): void {
    const ended = [...this.#jobs.values()].filter(({ endedAt }) => endedAt !== undefined)
    const isOld = ({ endedAt }: Job) => Date.now() - (endedAt?.getTime() ?? 0) > keptMs
    for (const [index, job] of ended.entries()) if (isOld(job) || index < ended.length - maxEnded) this.#forget(job)
  }

  #forget(job: Job): void {
    this.#drop(job)
    this.#emit(job, 'deleted')
  }

  #drop({ id, lab }: Job): void {
    this.#jobs.delete(id)
    if (lab !== undefined) void this.#note(id, undefined)
  }

  async #note(id: string, projectId: string | undefined): Promise<void> {
    await this.#options.noted?.(id, projectId).catch(ignore('the job runs, and its lab shows it'))
  }

  #job(id: string): Job {
    const job = this.#jobs.get(id.toLowerCase())
    if (job === undefined) throw noSuchJob(id)
    return job
  }
}

export const noSuchJob = (id: string): ApiError => notFound(`job_id: there is no job ${id}, or it ended some time ago`)

const newJob = (lab: Lab | undefined, action: LabJob['action'], state: () => JobState): Job => ({
  id: crypto.randomUUID(),
  lab,
  action,
  startedAt: new Date(),
  cancel: new AbortController(),
  state,
  endedAt: undefined,
  failure: undefined,
  isChanged: false,
})

/** A job for those who must not know the checks of a lab file: how many have failed, and not which or why. */
export function withoutCheckResults(job: LabJob): LabJob {
  if (job.checks === undefined) return job
  const { checks: _, reason, ...shown } = job
  const isOfChecks = reason !== null && job.failed > 0
  return { ...shown, reason: isOfChecks ? `${job.failed} of ${counted(job.total, 'check')} failed` : reason }
}

function viewOf({ id, lab, action, startedAt, endedAt, state, by, cancel, failure }: Job): LabJob {
  const { isCancelled, reason, ...shown } = state()
  const hasFailed = shown.failed > 0 || failure !== undefined
  const ended = isCancelled || cancel.signal.aborted ? 'cancelled' : hasFailed ? 'failed' : 'done'
  return {
    job_id: id,
    project_id: lab?.id ?? null,
    action,
    status: endedAt === undefined ? 'running' : ended,
    reason: reason ?? (failure instanceof ApiError || failure instanceof Cancelled ? failure.message : null),
    started_at: startedAt.toISOString(),
    ended_at: endedAt?.toISOString() ?? null,
    ...(by !== undefined && { by }),
    ...shown,
  }
}
