import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { LabJob, LabTasks } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { counted } from '../parts/counted.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { client } from '../state/client.ts'
import { mayEdit } from '../state/session.ts'
import { Markdown } from './markdown.tsx'

type Task = LabTasks['tasks'][number]
type Result = NonNullable<LabJob['tasks']>[number]

/** The tasks of a lab beside its map: what is to be done, and what is done. */
export function TasksPane({ window: lab }: { window: LabWindow }) {
  const { store } = lab.editor
  const { project_id = '', score } = store.project.value ?? {}
  const tasks = useSignal<LabTasks | undefined>(undefined)
  const failure = useSignal('')
  const isAsked = useSignal(false)
  const heading = useRef<HTMLHeadingElement>(null)
  const job = lastCheck(store.jobs.values())
  const isRunning = job?.status === 'running'
  const isBusy = isAsked.value || isRunning
  // A check, or a lab file, has changed them.
  const state = JSON.stringify(score)
  useEffect(() => {
    if (project_id === '') return
    client
      .call('GET /v2/projects/{project_id}/tasks', { params: { project_id } })
      .then((read) => {
        tasks.value = read
      })
      .catch((error: unknown) => {
        failure.value = messageOf(error)
      })
  }, [project_id, state])
  useEffect(() => {
    if (lab.tasksChoice.peek() === true) heading.current?.focus()
  }, [])
  const check = async () => {
    isAsked.value = true
    failure.value = ''
    try {
      const begun = await client.call('POST /v2/projects/{project_id}/tasks/check', { params: { project_id } })
      if (store.jobs.get(begun.job_id) === undefined) store.jobs.put(begun.job_id, begun)
    } catch (error) {
      failure.value = messageOf(error)
    } finally {
      isAsked.value = false
    }
  }
  const { points = 0, of = 0, checked_at } = tasks.value ?? {}
  const done = job?.tasks?.filter(({ state }) => state !== 'waiting' && state !== 'running').length ?? 0
  return (
    <aside class="tasks" aria-label="Tasks">
      <div class="row">
        <h2 ref={heading} tabIndex={-1}>
          Tasks
        </h2>
        <span class="spacer" />
        <IconButton icon="close" title="Close the tasks" onClick={() => lab.showTasks(false)} />
      </div>
      {of > 0 && (
        <div class="tasks-score">
          <p role="status">
            <b>
              {points} of {counted(of, 'point')}
            </b>
            {checked_at !== undefined && <small> checked at {new Date(checked_at).toLocaleTimeString()}</small>}
          </p>
          <progress value={points} max={of} aria-label="Points" />
          {mayEdit() && (
            <button type="button" class="is-main" disabled={isBusy} onClick={() => void check()}>
              <Icon name="check" /> {isBusy ? `Checking … ${done} of ${job?.total ?? 0}` : 'Check'}
            </button>
          )}
        </div>
      )}
      <ErrorMessage text={failure.value} />
      <ol>
        {tasks.value?.tasks.map((task) => (
          <TaskItem
            key={task.name}
            task={task}
            result={job?.tasks?.find(({ name }) => name === task.name)}
            isRunning={isRunning}
          />
        ))}
      </ol>
    </aside>
  )
}

const words = { done: 'Done', open: 'Not done yet', unchecked: 'Not checked yet', text: '' } as const
const waitingWords = { running: 'Checking …', waiting: 'Waiting for its check …' } as const

function TaskItem({ task, result, isRunning }: { task: Task; result: Result | undefined; isRunning: boolean }) {
  const { name, text, points, state, reason } = task
  const isWaiting = isRunning && (result?.state === 'running' || result?.state === 'waiting')
  // What the last check could not find out is not among the results that the lab keeps.
  const unknown = result?.state === 'unknown' ? result.reason : null
  const why = unknown ?? reason
  return (
    <li class={`task is-${state}`}>
      <h3>
        {state !== 'text' && (
          <span class="tick" aria-hidden="true">
            {state === 'done' && <Icon name="check" />}
          </span>
        )}
        <bdi>{name}</bdi>
        {state !== 'text' && <small>{counted(points, 'point')}</small>}
      </h3>
      {text !== '' && <Markdown text={text} />}
      {state !== 'text' && (
        <p class="task-state">
          {isWaiting
            ? waitingWords[result?.state === 'running' ? 'running' : 'waiting']
            : why === null
              ? words[state]
              : `${why}.`}
        </p>
      )}
    </li>
  )
}

/** The last check of the tasks that the page knows. */
const lastCheck = (jobs: readonly LabJob[]): LabJob | undefined =>
  jobs
    .filter((job) => job.tasks !== undefined)
    .toSorted((a, b) => a.started_at.localeCompare(b.started_at))
    .at(-1)

const messageOf = (error: unknown): string =>
  error instanceof PatchbayError ? `${error.message}.` : 'The tasks cannot be read now.'
