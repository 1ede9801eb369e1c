import { type LabJob, PatchbayError } from '../../client/patchbay.ts'
import { pause } from '../../lib/async/pause.ts'
import type { ToolContext } from './tool.ts'

const [firstPollMs, longestPollMs] = [50, 1000]

/** How long a tool waits for a job by itself, and at most, s. */
export const [defaultWithinS, longestWithinS] = [120, 600]

interface Wait {
  readonly doing: string
  /** When the wait ends, ms since 1970. */
  readonly until: number
  /** Default: when the job has ended. */
  readonly isOver?: (job: LabJob) => boolean
}

/** A job at its end, or as it is when the time is over; undefined: it is gone, with its lab. */
export async function jobAtEnd(
  job_id: string,
  { client, signal, progress }: ToolContext,
  { doing, until, isOver = ({ status }) => status !== 'running' }: Wait,
): Promise<LabJob | undefined> {
  for (let pollMs = firstPollMs; ; pollMs = Math.min(pollMs * 1.5, longestPollMs)) {
    const job = await client.call('GET /v2/jobs/{job_id}', { params: { job_id }, signal }).catch((error: unknown) => {
      if (error instanceof PatchbayError && error.status === 404) return undefined
      throw error
    })
    if (job === undefined) return undefined
    progress(job.done + job.failed + job.skipped, job.total, doing)
    const left = until - Date.now()
    if (isOver(job) || left <= 0) return job
    await pause(Math.min(pollMs, left), signal)
    signal.throwIfAborted()
  }
}

/** Of a job that goes on after its tool has answered. */
export const stillRunning = 'it takes longer than within_s, and goes on: "inspect" shows how far it is'
