import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { Class, ClassLink } from '../../../src/client/patchbay.ts'
import { ErrorMessage } from '../parts/error-message.tsx'
import { Icon } from '../parts/icon.tsx'
import { StackedTable } from '../parts/stacked-table.tsx'
import { timeText } from '../parts/time-text.ts'
import { client } from '../state/client.ts'
import { messageOf } from '../state/notices.ts'
import { classPath, route } from '../state/route.ts'
import { isAdministrator } from '../state/session.ts'
import { ClassForm } from './class-form.tsx'
import { ClassWall } from './class-wall.tsx'
import style from './classes.css' with { type: 'text' }
import { LinksDialog } from './links-dialog.tsx'

/** The classes, or one of them, as the address says. */
export function ClassesScreen() {
  if (!isAdministrator()) return <p class="muted">Classes need the role admin.</p>
  const { value: shown } = route
  const name = shown.screen === 'classes' ? shown.className : undefined
  return (
    <>
      <style>{style}</style>
      {name === undefined ? <ClassList /> : <ClassWall key={name} name={name} />}
    </>
  )
}

function ClassList() {
  const classes = useSignal<readonly Class[] | undefined>(undefined)
  const isMaking = useSignal(false)
  const made = useSignal<{ className: string; links: readonly ClassLink[] } | undefined>(undefined)
  const failure = useSignal('')
  useEffect(() => {
    client.call('GET /v2/classes').then(
      (all) => {
        classes.value = all
      },
      (error) => {
        failure.value = messageOf(error)
      },
    )
  }, [])
  const newClass = (
    <button
      type="button"
      class="is-main"
      onClick={() => {
        isMaking.value = true
      }}
    >
      <Icon name="plus" /> New class
    </button>
  )
  const all = classes.value ?? []
  return (
    <>
      <div class="labs-head">
        <h2>Classes</h2>
        <span class="spacer" />
        {all.length > 0 && newClass}
      </div>
      <ErrorMessage text={failure.value} />
      {classes.value !== undefined && all.length === 0 && (
        <div class="empty">
          <h3>No classes yet</h3>
          <p>
            A class gives each student a copy of a lab that you have prepared, and a link that opens it without a
            password. You see who is there and what runs, and put a lab back to its start.
          </p>
          {newClass}
        </div>
      )}
      {all.length > 0 && (
        <StackedTable
          columns={['Name', 'Students', 'Links valid until']}
          rows={all.map(({ name, students }) => ({
            key: name,
            cells: [
              <a href={classPath(name)}>
                <bdi>{name}</bdi>
              </a>,
              students.length,
              validity(students),
            ],
            actions: null,
          }))}
        />
      )}
      {isMaking.value && (
        <ClassForm
          onMade={(className, links) => {
            isMaking.value = false
            made.value = { className, links }
          }}
          onClose={() => {
            isMaking.value = false
          }}
        />
      )}
      {made.value !== undefined && (
        <LinksDialog
          {...made.value}
          onClose={() => {
            location.hash = classPath(made.value?.className ?? '')
          }}
        />
      )}
    </>
  )
}

/** Until when the links of a class are valid: the first that ends. */
function validity(students: Class['students']): string {
  const tokens = students.flatMap(({ token }) => token ?? [])
  if (tokens.length === 0) return 'none has one'
  const [first] = tokens.flatMap(({ expires_at }) => expires_at ?? []).sort()
  return first === undefined ? 'without end' : timeText(first)
}
