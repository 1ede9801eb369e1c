import { setTimeout as sleep } from 'node:timers/promises'
import type { LabJob } from '../../../src/client/patchbay.ts'
import { isSegmentKind } from '../../../src/labfile/segment-kinds.ts'
import { counted } from '../../../src/lib/text/counted.ts'
import { escapeUnsafeLines } from '../../../src/lib/text/escape.ts'
import { type CommandContext, clientOf } from './client.ts'
import type { CommandInput, serviceFlags } from './command.ts'
import { CommandError, exits } from './exits.ts'
import type { CommandOutcome } from './outcome.ts'
import { type Progress, progressOf } from './progress.ts'
import { labIfAny, labOf, nodeOf } from './targets.ts'

const [firstPollMs, longestPollMs] = [20, 500]
const cancelMs = 5000

interface JobWatch extends CommandContext {
  readonly progress: Progress
  /** Called with every state of the job that was read. */
  readonly onState?: (job: LabJob) => void
  /** Default: when the job has ended. */
  readonly isOver?: (job: LabJob) => boolean
}

/** Waits for the end of a job, and shows its progress. When the signal aborts, the job is cancelled; rejects with its reason then. */
export async function jobEnd(
  jobId: string,
  { client, signal, progress, onState = () => {}, isOver = hasEnded }: JobWatch,
): Promise<LabJob> {
  const params = { job_id: jobId }
  try {
    for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.5, longestPollMs)) {
      const job = await client.call('GET /v2/jobs/{job_id}', { params, signal })
      onState(job)
      progress.at(job.done + job.failed + job.skipped, job.total, currentOf(job))
      if (isOver(job)) return job
      await sleep(pollMs, undefined, { signal })
    }
  } catch (error) {
    if (signal.aborted)
      await client.call('DELETE /v2/jobs/{job_id}', { params, timeoutMs: cancelMs }).catch(() => undefined)
    throw error
  } finally {
    progress.end()
  }
}

const hasEnded = ({ status }: LabJob): boolean => status !== 'running'

/** What a job waits for now. */
function currentOf({ nodes, checks = [], projects = [] }: LabJob): string {
  const moving = projects.find(({ state }) => state === 'moving' || state === 'working')
  if (moving !== undefined) return `${moving.name}${moving.reason === null ? '' : `, ${moving.reason}`}`
  const check = checks.find(({ state }) => state === 'running')
  if (check !== undefined) return check.name
  const unready = nodes.filter(({ state }) => state === 'unready' || state === 'asked')
  if (unready.length === 0) return ''
  const names = unready.slice(0, 3).map(({ name }) => name)
  return `waiting for ${names.join(', ')}${unready.length > names.length ? ' ...' : ''}`
}

/** The nodes of one lab that a command names; undefined: all of them. */
interface Wanted {
  readonly project_id: string
  readonly lab: string
  nodes: string[] | undefined
}

/** The labs and nodes that words name: `LAB`, `LAB/NODE`, or `NODE` where only one open lab has it. */
async function wantedOf(words: readonly string[], context: CommandContext, opens: boolean): Promise<Wanted[]> {
  const found = new Map<string, Wanted>()
  for (const word of words) {
    const lab = word.includes('/') ? undefined : await labIfAny(word, context, { opens })
    if (lab !== undefined) {
      found.set(lab.project_id, { project_id: lab.project_id, lab: lab.name, nodes: undefined })
      continue
    }
    if (word.includes('/')) await labOf(word.slice(0, word.indexOf('/')), context, { opens })
    const { lab: name, node } = await nodeOf(word, context)
    const one = found.get(node.project_id) ?? { project_id: node.project_id, lab: name, nodes: [] }
    one.nodes?.push(node.node_id)
    found.set(node.project_id, one)
  }
  return [...found.values()]
}

const words = { start: ['Starting', 'started'], stop: ['Stopping', 'stopped'] } as const

/** How many of the wanted nodes are what they were asked to be. Segments are not counted, unless only segments were named. */
async function outcomeOf(
  { project_id, nodes }: Wanted,
  done: 'started' | 'stopped',
  { client, signal }: CommandContext,
) {
  const all = await client.call('GET /v2/projects/{project_id}/nodes', { params: { project_id }, signal })
  const wanted = all.filter(({ node_id }) => nodes?.includes(node_id) !== false)
  const withoutSegments = wanted.filter(({ node_type }) => !isSegmentKind(node_type))
  const [what, list] =
    withoutSegments.length === 0 && nodes !== undefined ? ['segment', wanted] : ['node', withoutSegments]
  const left = list.filter(({ status }) => status !== done)
  return { what, done: list.length - left.length, total: list.length, left }
}

/** `patchbay start` and `patchbay stop`: all nodes of labs, or single nodes. */
export async function runNodes(
  action: 'start' | 'stop',
  { args, flags, signal }: CommandInput<typeof serviceFlags>,
): Promise<CommandOutcome> {
  const context = { client: await clientOf(flags), signal }
  const [doing, done] = words[action]
  const jobs: (LabJob & { lab: string; outcome: Awaited<ReturnType<typeof outcomeOf>> })[] = []
  for (const wanted of await wantedOf(args, context, action === 'start')) {
    const { lab, project_id, nodes } = wanted
    const body = { action, ...(nodes !== undefined && { nodes }) }
    const job = await context.client.call('POST /v2/projects/{project_id}/jobs', {
      params: { project_id },
      body,
      signal,
    })
    const progress = await progressOf(`${doing} ${lab}`, flags)
    const end = await jobEnd(job.job_id, { ...context, progress }).catch((error) => {
      if (!signal.aborted) throw error
      throw new CommandError(exits.interrupted, [
        {
          message: `interrupted while ${doing.toLowerCase()} ${lab}; nodes that are ${done} stay ${done}`,
          hint: `"patchbay ${action} ${lab}" continues it`,
        },
      ])
    })
    jobs.push({ ...end, lab, outcome: await outcomeOf(wanted, done, context) })
  }
  const failed = jobs.flatMap(({ lab, nodes }) =>
    nodes.filter(({ state }) => state === 'failed' || state === 'skipped').map((node) => ({ lab, ...node })),
  )
  // A job for a whole lab leaves out the nodes that this service cannot run.
  for (const { lab, nodes, outcome } of jobs)
    for (const { node_id, name, status_reason } of action === 'start' ? outcome.left : [])
      if (status_reason != null && !nodes.some((it) => it.node_id === node_id))
        failed.push({ lab, node_id, name, state: 'failed', reason: status_reason })
  const hasNoEffect = ({ outcome }: (typeof jobs)[number]) => outcome.total > 0 && outcome.done === 0
  return {
    exit: jobs.some((job) => job.status !== 'done' || hasNoEffect(job)) ? exits.failed : exits.done,
    json: {
      jobs: jobs.map(({ lab, job_id, status, outcome: { done: finished, total } }) => ({
        lab,
        job_id,
        status,
        done: finished,
        total,
      })),
      errors: failed.map(({ lab, name, reason }) => ({ message: `${lab}/${name}: ${reason}` })),
    },
    async text() {
      return [
        ...jobs.map(
          ({ lab, outcome: { what, done: finished, total } }) =>
            `${lab}: ${counted(finished, what)} ${done}${finished === total ? '' : ` of ${total}`}`,
        ),
        ...failed.map(({ lab, name, reason }) => `  ${lab}/${name}: ${reason}`),
      ]
        .map(escapeUnsafeLines)
        .join('\n')
    },
  }
}
