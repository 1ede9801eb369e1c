import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo } from 'preact/hooks'
import type { ClassLink, LabProject } from '../../../src/client/patchbay.ts'
import { isSegmentKind } from '../../../src/labfile/segment-kinds.ts'
import { nameKey } from '../../../src/model/lab/names.ts'
import { type LabMap, MapPicture } from '../canvas/map-picture.tsx'
import { byName } from '../parts/by-name.ts'
import { counted } from '../parts/counted.ts'
import { Icon } from '../parts/icon.tsx'
import { client } from '../state/client.ts'
import { notifyError } from '../state/notices.ts'
import { labPath } from '../state/route.ts'
import { type ClassAction, ClassDialog } from './class-dialog.tsx'
import { ClassForm } from './class-form.tsx'
import { ClassLabs } from './class-labs.ts'
import { LinksDialog } from './links-dialog.tsx'
import { countPresent, presenceOf, presenceText } from './presence-text.ts'
import { rightsText } from './rights-text.ts'

type Ask = (action: ClassAction, student?: string) => void

/** The labs of a class side by side, as they are now. */
export function ClassWall({ name }: { name: string }) {
  const all = useMemo(() => new ClassLabs(client, name), [])
  const asked = useSignal<{ action: ClassAction; student?: string | undefined } | undefined>(undefined)
  const isAdding = useSignal(false)
  const links = useSignal<readonly ClassLink[]>([])
  useEffect(() => {
    const over = new AbortController()
    void all.follow(over.signal)
    return () => over.abort()
  }, [])
  // The ids as a text, which stays equal when a lab changes: only its card is rendered again then.
  const shown = useComputed(() =>
    // A student may give the lab another name.
    all.labs
      .values()
      .map((lab) => ({ ...lab, name: studentOf(lab) }))
      .toSorted(byName)
      .map(({ project_id }) => project_id)
      .join(' '),
  )
  // The address may have it in another case.
  const ownName = useComputed(() => all.labs.values()[0]?.class?.name ?? name).value
  useEffect(() => {
    document.title = `${ownName} – Patchbay`
  }, [ownName])
  const ids = shown.value.split(' ').filter(Boolean)
  const ask: Ask = (action, student) => {
    asked.value = { action, student }
  }
  const close = () => {
    asked.value = undefined
    isAdding.value = false
  }
  const rights = useSignal('')
  const readRights = () => {
    client.call('GET /v2/classes').then((classes) => {
      rights.value = rightsText(classes.find((it) => nameKey(it.name) === nameKey(name))?.students ?? [])
    }, notifyError)
  }
  useEffect(readRights, [])
  const showLinks = (made: readonly ClassLink[]) => {
    close()
    links.value = made
    readRights()
  }
  return (
    <>
      <div class="labs-head">
        <h2>
          <a href="#/classes">Classes</a> / <bdi>{ownName}</bdi>
        </h2>
        {ids.length > 0 && <Presence all={all} />}
        <span class="spacer" />
        {ids.length > 0 && (
          <>
            <button type="button" onClick={() => ask('links')}>
              New links
            </button>
            <button type="button" onClick={() => ask('reset')}>
              Reset all
            </button>
            <button type="button" class="is-danger" onClick={() => ask('delete')}>
              Delete class
            </button>
            <button
              type="button"
              class="is-main"
              onClick={() => {
                isAdding.value = true
              }}
            >
              <Icon name="plus" /> Add students
            </button>
          </>
        )}
      </div>
      {ids.length > 0 && <p class="muted class-rights">{rights.value}</p>}
      {all.isLoaded.value && ids.length === 0 && <p class="muted">There is no such class.</p>}
      <ul class="cards wall">
        {ids.map((id) => (
          <StudentCard key={id} {...{ id, all, ask }} />
        ))}
      </ul>
      {asked.value !== undefined && (
        <ClassDialog
          {...asked.value}
          className={ownName}
          count={ids.length}
          onLinks={showLinks}
          onDeleted={() => {
            location.hash = '#/classes'
          }}
          onClose={close}
        />
      )}
      {isAdding.value && <ClassForm className={ownName} onMade={(_, made) => showLinks(made)} onClose={close} />}
      {links.value.length > 0 && (
        <LinksDialog
          className={ownName}
          links={links.value}
          onClose={() => {
            links.value = []
          }}
        />
      )}
    </>
  )
}

const studentOf = (lab: LabProject): string => lab.class?.student ?? lab.name

/** How many of the students have their labs open. */
const Presence = ({ all }: { all: ClassLabs }) => (
  <span class="muted" role="status">
    {countPresent(all.labs.values())}
  </span>
)

/** The lab of a student. */
function StudentCard({ id, all, ask }: { id: string; all: ClassLabs; ask: Ask }) {
  const lab = all.labs.get(id)
  const map = all.maps.get(id)
  if (lab === undefined) return null
  const student = studentOf(lab)
  const { score } = lab
  const presence = presenceOf(lab)
  return (
    <li class="card">
      <div class="thumbnail">
        <MapPicture map={map} hasStates />
      </div>
      <a class="card-name" href={labPath(lab.name)}>
        <bdi>{student}</bdi>
      </a>
      <p class={presence === 'there' ? '' : 'muted'}>
        <span class={`dot is-${presence === 'there' ? 'started' : presence}`} /> {presenceText(lab)}
      </p>
      {map !== undefined && <p class="muted">{runningText(map)}</p>}
      {score !== undefined && (
        <p>
          {score.points} of {counted(score.of, 'point')}
        </p>
      )}
      <LastEvent all={all} id={id} changedAt={lab.changed_at} />
      <div class="card-actions">
        <button
          type="button"
          class="is-quiet"
          aria-label={`Reset the lab of ${student}`}
          onClick={() => ask('reset', student)}
        >
          Reset
        </button>
        <button
          type="button"
          class="is-quiet"
          aria-label={`New link for ${student}`}
          onClick={() => ask('links', student)}
        >
          New link
        </button>
      </div>
    </li>
  )
}

function LastEvent({ all, id, changedAt }: { all: ClassLabs; id: string; changedAt: string | undefined }) {
  const event = all.events.get(id)
  const at = event?.at ?? changedAt
  return (
    <p class="muted last-event">
      {at !== undefined &&
        `${event?.text ?? 'Changed'}, ${new Date(at).toLocaleTimeString([], { timeStyle: 'short' })}`}
    </p>
  )
}

function runningText({ nodes }: LabMap): string {
  // As on the card of the lab and in commands: switches and the like are segments.
  const machines = nodes.filter(({ node_type }) => !isSegmentKind(node_type))
  return `${machines.filter(({ status }) => status === 'started').length} of ${machines.length} running`
}
