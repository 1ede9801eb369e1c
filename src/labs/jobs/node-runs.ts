import type { NodeAction } from '../../host-agent.ts'
import { abortable } from '../../lib/async/abort.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import { kindIfKnown } from '../../model/kinds/node.ts'
import type { LabJobCreate, LabJobNode } from '../../model/lab/job.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { ComputePool } from '../computes/compute-pool.ts'
import type { Lab } from '../lab/lab.ts'
import { nodeRefOf } from '../lab/node-on-compute.ts'
import { runNodeAction } from '../nodes/nodes.ts'
import { untilReady } from '../nodes/ready.ts'
import { Cancelled, failureOf, reasonOf } from './failure-reason.ts'
import type { JobNode } from './job-nodes.ts'
import type { Job, JobState } from './jobs.ts'
import { StartPaces } from './start-paces.ts'

/** Most nodes that a job shows. */
const maxShown = 100

/** The order in which a job shows its nodes. */
const orderOfStates: readonly LabJobNode['state'][] = ['failed', 'skipped', 'cancelled', 'asked', 'unready', 'waiting']

/** A job that works on nodes. */
export interface NodeJob extends Job {
  readonly lab: Lab
  readonly action: NodeAction
  readonly nodes: readonly JobNode[]
  readonly input: LabJobCreate
  /** Nodes that were asked to start and are not ready yet, and those that wait until there are fewer. */
  active: number
  readonly waiting: Set<() => void>
}

/** The work of a job on one node. */
interface NodeRun {
  readonly job: NodeJob
  readonly node: JobNode
  readonly agentFor: ComputeAgents
  readonly signal: AbortSignal
}

export interface NodeRunsOptions {
  readonly computes: ComputePool
  /** Logs failures that are defects. */
  readonly report: (error: unknown, what: string) => void
}

/** Runs jobs on their nodes: each node when those before it are done, and when the load of its compute allows. */
export class NodeRuns {
  readonly #options: NodeRunsOptions
  readonly #changed: (job: Job) => void
  readonly #paces: StartPaces

  /** `changed` is called after each change of a node. */
  constructor(options: NodeRunsOptions, changed: (job: Job) => void) {
    this.#options = options
    this.#changed = changed
    this.#paces = new StartPaces(options.computes)
  }

  /** Works on one node of a job, and shows how that ended. Never rejects. */
  async run(run: NodeRun): Promise<void> {
    const { job, node, signal } = run
    const { settle } = node
    try {
      await abortable(this.#nodesBefore(run), signal)
      using _ = job.action === 'start' ? await takeTurn(job, signal) : undefined
      await this.#requestAction(run)
      if (job.action === 'start') await this.#untilReady(run)
      this.#show(run, 'done')
    } catch (error) {
      this.#showFailure(run, error)
    } finally {
      settle.requested()
      settle.over()
    }
  }

  #show({ job, node }: NodeRun, state: JobNode['state'], reason: string | null = null): void {
    node.state = state
    node.reason = reason
    this.#changed(job)
  }

  #showFailure(run: NodeRun, error: unknown): void {
    const { job, node, signal } = run
    if (signal.aborted) {
      const why = signal.reason instanceof Cancelled ? signal.reason.message : 'It was closed'
      return this.#show(run, 'cancelled', why)
    }
    if (error instanceof Skipped) return this.#show(run, 'skipped', error.message)
    job.failure ??= failureOf(error, job.id)
    if (error instanceof ApiError) node.image = error.extra.image
    else this.#options.report(error, `the job ${job.id} failed to ${job.action} the node ${node.record.node_id}`)
    this.#show(run, 'failed', reasonOf(error))
  }

  /** Resolves when the nodes before this one are done; throws `Skipped` when one of them ended otherwise. */
  async #nodesBefore(run: NodeRun): Promise<void> {
    const { before } = run.node
    const names = before.filter(({ state }) => state !== 'done').map(({ record }) => record.name)
    if (names.length > 0) this.#show(run, 'waiting', `Waiting for ${names.join(', ')}`)
    for (const it of before) {
      await it.over
      if (it.state !== 'done') throw new Skipped(`It starts after ${it.record.name}, which is ${it.state}`)
    }
  }

  /** Sends the action to the node as soon as its compute may start one more. */
  async #requestAction(run: NodeRun): Promise<void> {
    const { job, node, agentFor, signal } = run
    const { record, settle } = node
    const { action, lab, input } = job
    const isStart = action === 'start'
    node.reason = 'Waiting for other starts on its compute, or for a lower load'
    const endTurn = await this.#paces.turn(record, { isStart, signal, loadBelow: input.load_below })
    try {
      requireNotGivenUp(job)
      this.#show(run, 'asked')
      const shown = await runNodeAction(this.#options, lab, lab.node(record.node_id), action, agentFor)
      if (isStart) this.#paces.learnWeight(record, shown.command_line)
    } finally {
      endTurn()
      settle.requested()
    }
  }

  /** Resolves when a started node is ready by its own conditions. */
  async #untilReady(run: NodeRun): Promise<void> {
    const { record } = run.node
    const { lab } = run.job
    if (record.ready === null && kindIfKnown(record.node_type)?.tellsReady !== true) return
    this.#show(run, 'unready', 'Started, but not ready yet')
    lab.unready.add(record.node_id)
    const { nodes } = run.agentFor(record.compute_id)
    await untilReady(nodes, nodeRefOf(lab, record), record.ready ?? {}, run.signal).catch((error: unknown) => {
      // Nothing was asked for: one that has ended has nothing to say.
      if (record.ready !== null || !(error instanceof ApiError) || error.code !== 'node-stopped') throw error
    })
    lab.unready.delete(record.node_id)
  }
}

/** A node was skipped, as a node before it has failed. */
class Skipped extends Error {}

/** Resolves when fewer than `at_once` nodes of the job are starting, with the turn of one more, which ends when that is ready. */
async function takeTurn(job: NodeJob, signal: AbortSignal): Promise<Disposable> {
  const { at_once = Number.POSITIVE_INFINITY } = job.input
  while (job.active >= at_once) {
    let wake = () => {}
    const isWoken = new Promise<void>((resolve) => {
      wake = resolve
      job.waiting.add(wake)
    })
    await abortable(isWoken, signal).finally(() => job.waiting.delete(wake))
  }
  requireNotGivenUp(job)
  job.active += 1
  return {
    [Symbol.dispose]() {
      job.active -= 1
      for (const wake of job.waiting) wake()
    },
  }
}

function requireNotGivenUp({ input, nodes }: NodeJob): void {
  if (input.give_up !== 'stop') return
  const failed = nodes.find(({ state }) => state === 'failed')
  if (failed !== undefined) throw new Skipped(`${failed.record.name} failed; no further node is started`)
}

/** What a job on nodes shows. */
export function progressOfNodes(nodes: readonly JobNode[]): JobState {
  const of = (state: JobNode['state']) => nodes.filter((node) => node.state === state)
  const [failed, cancelled] = [of('failed'), of('cancelled')]
  const first = cancelled[0] ?? failed[0]
  return {
    reason: first === undefined ? null : `${first.record.name}: ${first.reason}`,
    isCancelled: cancelled.length > 0,
    total: nodes.length,
    done: of('done').length,
    failed: failed.length,
    skipped: of('skipped').length,
    nodes: orderOfStates
      .flatMap(of)
      .slice(0, maxShown)
      .map(({ record: { node_id, name }, state, reason, image }) => ({
        node_id,
        name,
        state,
        reason,
        ...(image !== undefined && { image }),
      })),
  }
}
