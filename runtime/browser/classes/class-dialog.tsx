import { useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ClassLink, LabJob } from '../../../src/client/patchbay.ts'
import { nameKey } from '../../../src/model/lab/names.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { counted } from '../parts/counted.ts'
import { client } from '../state/client.ts'
import { followJob } from '../state/follow-job.ts'
import { notify, notifyError } from '../state/notices.ts'
import { JobProgress } from './job-progress.tsx'
import { LinkFields, linkSettings, linkTexts } from './link-fields.tsx'

/** What can be done with students of a class. */
export type ClassAction = 'reset' | 'links' | 'delete'

interface ClassDialogProps {
  readonly action: ClassAction
  readonly className: string
  /** All students of the class. */
  readonly count: number
  /** The one student whom it is about; absent: all. */
  readonly student?: string | undefined
  readonly onLinks: (links: readonly ClassLink[]) => void
  /** The class is deleted. */
  readonly onDeleted: () => void
  readonly onClose: () => void
}

/** Asks before something is done with a class or a student, and shows how far it is. */
export function ClassDialog({ action, className, count, student, onLinks, onDeleted, onClose }: ClassDialogProps) {
  const texts = useSignal(linkTexts())
  const job = useSignal<LabJob | undefined>(undefined)
  const over = useMemo(() => new AbortController(), [])
  const isLinks = action === 'links'
  useEffect(() => {
    if (isLinks)
      client.call('GET /v2/classes').then((all) => {
        const { students = [] } = all.find(({ name }) => nameKey(name) === nameKey(className)) ?? {}
        const own = students.filter((it) => it.student === student)
        texts.value = linkTexts([...own, ...students])
      }, notifyError)
    return () => over.abort()
  }, [])
  const params = { class: className }
  const students = student === undefined ? null : [student]
  const wait = async ({ job_id }: LabJob) => {
    const { status, reason } = await followJob(job_id, over.signal, (it) => (job.value = it))
    if (status !== 'done') throw new Error(reason ?? `It was ${status}.`)
  }
  const send = async () => {
    if (isLinks) {
      const body = { ...linkSettings(texts.value), students }
      onLinks(await client.call('POST /v2/classes/{class}/links', { params, body }))
    } else if (action === 'reset') {
      await wait(await client.call('POST /v2/classes/{class}/reset', { params, body: { students } }))
      notify(
        'done',
        `${student === undefined ? counted(count, 'lab') : `The lab of ${student}`} ${student === undefined && count > 1 ? 'were' : 'was'} put back to the start.`,
      )
    } else {
      await wait(await client.call('DELETE /v2/classes/{class}', { params }))
      onDeleted()
    }
  }
  const whom = student ?? `all ${counted(count, 'student')}`
  const [title, verb, text] = {
    reset: [
      `Reset the lab of ${whom}?`,
      'Reset',
      'It goes back to how it was handed out. Its nodes are stopped, and what was done since then is lost.',
    ],
    links: [
      `New link for ${whom}?`,
      'Make',
      'The link so far ends at once, also for who is in the lab by it. The lab stays as it is.',
    ],
    delete: [
      `Delete the class ${className}?`,
      'Delete',
      `The labs of ${whom} are deleted with all that was done in them, and the links end. This cannot be undone.`,
    ],
  }[action] as [string, string, string]
  return (
    <ActionDialog title={title} verb={verb} isDanger={!isLinks} onSend={send} onClose={onClose}>
      <p>{text}</p>
      {isLinks && <LinkFields texts={texts} />}
      <JobProgress job={job.value} />
    </ActionDialog>
  )
}
