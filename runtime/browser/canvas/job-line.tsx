import { progressText } from '../editing/job-text.ts'
import type { LabStore } from '../state/lab-store.ts'

/** What is being done with the lab, at the foot of the map. */
export function JobLine({ store }: { store: LabStore }) {
  const [job, ...others] = store.jobs.values().filter(({ status }) => status === 'running')
  if (job === undefined) return null
  const text = progressText(job)
  const [waiting] = job.nodes.flatMap(({ name, reason }) => (reason === null ? [] : `${name}: ${reason}`))
  return (
    <div class="job-line">
      <p>
        {text}
        {others.length > 0 && <span class="muted"> and {others.length} more</span>}
      </p>
      <progress value={job.done} max={Math.max(1, job.total)} aria-label={text} />
      {waiting !== undefined && (
        <p class="muted" dir="auto">
          {waiting}
        </p>
      )}
    </div>
  )
}
