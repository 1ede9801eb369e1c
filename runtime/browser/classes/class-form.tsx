import { useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import type { ClassLink, LabJob } from '../../../src/client/patchbay.ts'
import { nameKey } from '../../../src/model/lab/names.ts'
import { Gallery } from '../examples/gallery.tsx'
import { ImportDialog } from '../importing/import-dialog.tsx'
import { byName } from '../parts/by-name.ts'
import { counted } from '../parts/counted.ts'
import { Dialog } from '../parts/dialog.tsx'
import { ErrorMessage } from '../parts/error-message.tsx'
import { OpenService } from '../parts/open-service.tsx'
import { client } from '../state/client.ts'
import { followJob } from '../state/follow-job.ts'
import { messageOf } from '../state/notices.ts'
import { JobProgress } from './job-progress.tsx'
import { choiceField, Field, LinkFields, linkSettings, linkTexts, textField } from './link-fields.tsx'
import { namesText, studentNames } from './student-names.ts'

interface ClassFormProps {
  /** The class that gets more students; absent: a new one. */
  readonly className?: string | undefined
  /** The labs are there, and the students have links. */
  readonly onMade: (className: string, links: readonly ClassLink[]) => void
  readonly onClose: () => void
}

/** Makes a class, or adds students to one: a lab and a link for each. */
export function ClassForm({ className, onMade, onClose }: ClassFormProps) {
  const texts = useSignal<Readonly<Record<string, string>>>({ name: className ?? '', ...linkTexts() })
  /** The labs to choose from, with how many of their nodes run. */
  const labs = useSignal<ReadonlyMap<string, number>>(new Map())
  const files = useSignal<readonly File[]>([])
  const imagesOfExample = useSignal<string | undefined>(undefined)
  const isChoosingExample = useSignal(false)
  const failure = useSignal('')
  const job = useSignal<LabJob | 'links' | undefined>(undefined)
  const isBusy = useSignal(false)
  const input = useRef<HTMLInputElement>(null)
  const over = useMemo(() => new AbortController(), [])
  useEffect(() => {
    client.call('GET /v2/projects').then(
      (all) => {
        const own = all.filter((it) => it.class === undefined)
        labs.value = new Map(own.toSorted(byName).map(({ name, counts }) => [name, counts?.running ?? 0]))
      },
      (error) => {
        failure.value = messageOf(error)
      },
    )
    return () => over.abort()
  }, [])
  const { name = '', students = '', lab = '' } = texts.value
  const given = useMemo(() => studentNames(students), [students])
  const running = labs.value.get(lab) ?? 0
  const take = (made: string) => {
    files.value = []
    labs.value = new Map([...labs.value, [made, 0]])
    texts.value = { ...texts.value, lab: made }
  }
  const closeExamples = () => {
    isChoosingExample.value = false
  }
  const send = async () => {
    // A second press comes before the button is shown as disabled.
    if (isBusy.value) return
    isBusy.value = true
    failure.value = ''
    try {
      if (running > 0) await client.call('POST /v2/projects/{project_id}/nodes/stop', { params: { project_id: lab } })
      const body = { name: name.trim(), project_id: lab, students: [...given.names] }
      const made = await makeClass(body, linkSettings(texts.value), over.signal, (it) => (job.value = it))
      onMade(made.className, made.links)
    } catch (error) {
      failure.value = messageOf(error)
    } finally {
      isBusy.value = false
      job.value = undefined
    }
  }
  return (
    <Dialog
      title={className === undefined ? 'New class' : `Add students to ${className}`}
      isWide
      isFirm
      onClose={onClose}
    >
      <form
        class="schema-form class-form"
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        <OpenService>
          Its links would restrict nobody, and students at other computers do not reach it. For them, first make a token
          with the role admin at <b>Tokens</b>, and start the service again by this line.
        </OpenService>
        {className === undefined && <Field texts={texts} field={textField('name', 'Name of the class')} />}
        <Field
          texts={texts}
          field={{
            name: 'students',
            title: 'Students',
            isRequired: true,
            kind: 'lines',
            ...{
              description: 'One name a line; a pasted list or table, too.',
              maxLength: undefined,
              pattern: undefined,
            },
          }}
        />
        <p class={given.twice.length > 0 ? 'names-count is-warning' : 'names-count'} role="status">
          {given.names.length > 0 && namesText(given)}
        </p>
        <div class="row class-lab">
          <Field texts={texts} field={choiceField('lab', 'Each gets a copy of the lab', [...labs.value.keys()])} />
          <input
            ref={input}
            type="file"
            hidden
            onChange={({ currentTarget }) => {
              imagesOfExample.value = undefined
              files.value = [...(currentTarget.files ?? [])]
              currentTarget.value = ''
            }}
          />
          <button type="button" onClick={() => input.current?.click()}>
            or of a file …
          </button>
          <button
            type="button"
            onClick={() => {
              isChoosingExample.value = true
            }}
          >
            or of an example …
          </button>
        </div>
        {running > 0 && <p class="names-count">{counted(running, 'node')} of it running: stopped first.</p>}
        <LinkFields texts={texts} />
        <ErrorMessage text={failure.value} />
        <JobProgress job={job.value} />
        <div class="row form-actions">
          <button type="submit" class="is-main" disabled={isBusy.value}>
            {className === undefined ? 'Make the class' : 'Add the students'}
          </button>
          <button type="button" onClick={onClose}>
            {isBusy.value ? 'Close' : 'Cancel'}
          </button>
        </div>
      </form>
      {isChoosingExample.value && (
        <Dialog title="From an example" isWide onClose={closeExamples}>
          <Gallery
            onChoose={(file, imagesFrom) => {
              closeExamples()
              imagesOfExample.value = imagesFrom
              files.value = [file]
            }}
          />
          <div class="row form-actions">
            <button type="button" onClick={closeExamples}>
              Cancel
            </button>
          </div>
        </Dialog>
      )}
      {files.value.length > 0 && (
        <ImportDialog
          files={files.value}
          options={{ imagesFrom: imagesOfExample.value }}
          onMade={take}
          onClose={() => {
            files.value = []
          }}
        />
      )}
    </Dialog>
  )
}

interface ClassInput {
  readonly name: string
  readonly project_id: string
  readonly students: string[]
}

/**
 * Makes the labs, then links for the students who have none. Rejects when a lab could not be made: asked again, it goes on with the rest.
 * A class that is there keeps its name, which may be in another case.
 */
async function makeClass(
  body: ClassInput,
  settings: ReturnType<typeof linkSettings>,
  over: AbortSignal,
  onProgress: (job: LabJob | 'links') => void,
): Promise<{ className: string; links: readonly ClassLink[] }> {
  const started = await client.call('POST /v2/classes', { body })
  const { done, total, reason } = await followJob(started.job_id, over, onProgress)
  if (done < total) throw new Error(`${done} of ${total} labs are there. ${reason ?? ''}`)
  onProgress('links')
  const classes = await client.call('GET /v2/classes')
  const { class: className = body.name } = started
  const wanted = new Set(body.students.map(nameKey))
  const students = (classes.find((it) => nameKey(it.name) === nameKey(className))?.students ?? [])
    .filter(({ student, token }) => token === null && wanted.has(nameKey(student)))
    .map(({ student }) => student)
  if (students.length === 0) throw new Error('All of them are in the class already, and have links.')
  const params = { class: className }
  const links = await client.call('POST /v2/classes/{class}/links', { params, body: { ...settings, students } })
  return { className, links }
}
