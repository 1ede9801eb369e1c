import { type LabJob, PatchbayError } from '../../client/patchbay.ts'
import { pause } from '../../lib/async/pause.ts'
import type { ToolContext } from './tool.ts'

const [firstPollMs, longestPollMs] = [50, 1000]

/** How long a tool waits for a job by itself, and at most, s. */
export const [defaultWithinS, longestWithinS] = [120, 600]

interface Wait {
  readonly doing: string
  /** Its lab, by its id or name. */
  readonly project_id: string
  /** When the wait ends, ms since 1970. */
  readonly until: number
  /** Default: when the job has ended. */
  readonly isOver?: (job: LabJob) => boolean
}

/**
 * A job as far as it is known; gone: its lab is, too; forgotten: the lab is there, and the job is not, as when the service was started again;
 * unheard: the service could not say how far it is.
 */
export type KnownJob = LabJob | 'gone' | 'forgotten' | 'unheard'

/** A job at its end, or as it is when the time is over. */
export async function jobAtEnd(
  job_id: string,
  { client, signal, progress }: ToolContext,
  { doing, project_id, until, isOver = ({ status }) => status !== 'running' }: Wait,
): Promise<KnownJob> {
  let known: KnownJob = 'unheard'
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.5, longestPollMs)) {
    const job = await client.call('GET /v2/jobs/{job_id}', { params: { job_id }, signal }).catch(answerLost)
    // Jobs end with the service, labs do not.
    const lost = job === 'gone' ? await labOfLost(project_id, { client, signal }) : undefined
    if (lost === 'gone' || lost === 'forgotten') return lost
    if (typeof job !== 'string') {
      known = job
      progress(job.done + job.failed + job.skipped, job.total, doing)
      if (isOver(job)) return job
    }
    const left = until - Date.now()
    if (left <= 0) return known
    await pause(Math.min(pollMs, left), signal)
    signal.throwIfAborted()
  }
}

/** What an error says about a job: one that cannot be asked for now may go on. */
function answerLost(error: unknown): 'gone' | 'unheard' {
  if (error instanceof PatchbayError && error.status === 404) return 'gone'
  if (error instanceof PatchbayError && [0, 429, 502, 503, 504].includes(error.status)) return 'unheard'
  throw error
}

/** What a lab says about its job that is not there. */
const labOfLost = (project_id: string, { client, signal }: Pick<ToolContext, 'client' | 'signal'>) =>
  client
    .call('GET /v2/projects/{project_id}', { params: { project_id }, signal })
    .then(() => 'forgotten' as const, answerLost)

export const isFailed = (job: KnownJob): boolean =>
  typeof job === 'string' ? job !== 'unheard' : job.status === 'failed' || job.status === 'cancelled'

/** What is not done yet, of a job that may go on after its tool has answered. */
export function notYet(job: KnownJob): string[] {
  if (job === 'unheard') return ['Not known yet: the service did not say in time how far it is; "inspect" shows it']
  if (job === 'forgotten')
    return ['Not known: the service no longer has the job, as after a restart; "inspect" shows how far it came']
  if (job === 'gone' || job.status !== 'running') return []
  return ['Not all of it yet: it takes longer than within_s, and goes on; "inspect" shows how far it is']
}
