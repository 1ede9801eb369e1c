import { useSignal } from '@preact/signals'
import { Fragment } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Compute, LabJob, LabProject } from '../../../src/client/patchbay.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { counted } from '../parts/counted.ts'
import { client } from '../state/client.ts'
import { messageOf, notifyError } from '../state/notices.ts'
import { isAdministrator } from '../state/session.ts'

/** The last drain of a compute; undefined: there is none that is known. */
export const drainOf = ({ compute_id }: Compute, jobs: readonly LabJob[]): LabJob | undefined =>
  jobs
    .filter((job) => job.action === 'drain' && job.compute_id === compute_id)
    .sort((a, b) => a.started_at.localeCompare(b.started_at))
    .at(-1)

/** Asks before a drain, and says what will move. */
export function DrainDialog({ compute, onClose }: { compute: Compute; onClose: () => void }) {
  const { compute_id, name } = compute
  const labs = useSignal<readonly LabProject[] | undefined>(undefined)
  const failure = useSignal('')
  useEffect(() => {
    client
      .call('GET /v2/projects')
      .then((all) => {
        labs.value = all.filter((lab) => lab.compute_ids?.includes(compute_id))
      })
      .catch((error) => {
        failure.value = messageOf(error)
      })
  }, [])
  const isRunning = ({ counts }: LabProject) => (counts?.running ?? 0) > 0
  return (
    <ActionDialog
      title="Drain the compute?"
      verb="Drain"
      isReady={labs.value !== undefined || failure.value !== ''}
      onSend={() => client.call('POST /v2/computes/{compute_id}/drain', { params: { compute_id } })}
      onClose={onClose}
    >
      <p>
        <b>
          <bdi>{name}</bdi>
        </b>{' '}
        will accept no new labs, and its stopped labs move to other computes. Open labs are closed for the move, and
        opened again.
      </p>
      {labs.value !== undefined && (
        <ul class="help">
          <li>
            <LabNames labs={labs.value.filter((it) => !isRunning(it))} /> will move
          </li>
          {labs.value.some(isRunning) && (
            <li>
              <LabNames labs={labs.value.filter(isRunning)} /> will stay: nodes are running
            </li>
          )}
        </ul>
      )}
      <p class="help">{failure.value}</p>
    </ActionDialog>
  )
}

/** Most names of labs that are shown. */
const mostNames = 10

/** How many labs, and the first names. */
const LabNames = ({ labs }: { labs: readonly LabProject[] }) => (
  <>
    {counted(labs.length, 'lab')}
    {labs.slice(0, mostNames).map(({ project_id, name }, index) => (
      <Fragment key={project_id}>
        {index === 0 ? ' (' : ', '}
        <bdi>{name}</bdi>
      </Fragment>
    ))}
    {labs.length > mostNames && ' …'}
    {labs.length > 0 && ')'}
  </>
)

/** How far a drain is, or what it has done: which labs were moved, and why others stay. */
export function DrainView({ job }: { job: LabJob }) {
  const { job_id, status, done, total, reason, projects = [] } = job
  const isRunning = status === 'running'
  return (
    <div class="job">
      <p role="status">
        {isRunning ? 'Draining' : `Drain ${status}`}: {done} of {counted(total, 'lab')} moved
      </p>
      {isRunning && <progress value={done} max={Math.max(1, total)} aria-label="Labs moved" />}
      {reason !== null && projects.every((it) => it.reason === null) && <p class="reason">{reason}</p>}
      <ul class="muted" aria-label="Labs of the drain">
        {projects
          .filter(({ state }) => state !== 'done')
          .map(({ project_id, name, state, reason }) => (
            <li key={project_id}>
              <bdi>{name}</bdi>: {state === 'skipped' ? 'stays' : state}
              {reason !== null && `, ${reason}`}
            </li>
          ))}
      </ul>
      {isRunning && isAdministrator() && (
        <div>
          <button
            type="button"
            onClick={() => void client.call('DELETE /v2/jobs/{job_id}', { params: { job_id } }).catch(notifyError)}
          >
            Cancel the drain
          </button>
        </div>
      )}
    </div>
  )
}
