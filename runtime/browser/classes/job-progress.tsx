import type { LabJob } from '../../../src/client/patchbay.ts'
import { progressText } from '../editing/job-text.ts'

/** How far a job on a class is; `links`: the labs are done. */
export function JobProgress({ job }: { job: LabJob | 'links' | undefined }) {
  if (job === undefined) return null
  const text = job === 'links' ? 'Making the links …' : progressText(job)
  return (
    <div class="job-progress">
      <p role="status">{text}</p>
      <progress {...(job !== 'links' && { value: job.done, max: job.total })} aria-label={text} />
    </div>
  )
}
