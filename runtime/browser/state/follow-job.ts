import type { LabJob } from '../../../src/client/patchbay.ts'
import { pause } from '../../../src/lib/async/pause.ts'
import { client } from './client.ts'

/** Time between two reads of a job, ms. */
const jobMs = 300

/** Reads a job until it has ended, or the signal aborts: then it rejects. `onProgress`: it still runs. */
export async function followJob(
  job_id: string,
  over: AbortSignal,
  onProgress: (job: LabJob) => void = () => {},
): Promise<LabJob> {
  for (;;) {
    const job = await client.call('GET /v2/jobs/{job_id}', { params: { job_id }, signal: over })
    if (job.status !== 'running') return job
    onProgress(job)
    await pause(jobMs, over)
    over.throwIfAborted()
  }
}
