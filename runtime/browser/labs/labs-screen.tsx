import { type Signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useMemo, useRef } from 'preact/hooks'
import { type LabProject, PatchbayError } from '../../../src/client/patchbay.ts'
import type { ImportOptions } from '../importing/file-import.ts'
import { counted } from '../parts/counted.ts'
import { useFileDrop } from '../parts/file-drop.ts'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { SearchField } from '../parts/search-field.tsx'
import { ServiceHeader } from '../parts/service-header.tsx'
import { timePattern, timeText } from '../parts/time-text.ts'
import { client } from '../state/client.ts'
import { notifyError } from '../state/notices.ts'
import { labPath } from '../state/route.ts'
import { hasAllLabs, isOnWall, mayEdit, mayMakeLabs } from '../state/session.ts'
import { stored } from '../state/stored.ts'
import type { OpenDialog } from './lab-dialog.tsx'
import { LabList } from './lab-list.ts'
import { inOrder, type LabOrder, orders } from './lab-order.ts'
import { linksLine } from './links-line.ts'

/** Time between two readings of the states of links, ms: the feed of all labs does not have them. */
const detailsMs = 30_000

const gallery = () => import('./on-demand.ts').then((module) => module.Gallery)

const importHint =
  'Drop files here to import them: lab files, archives (.gns3project), labs of containerlab, GNS3 and CML, appliances (.gns3a).'

const order = stored('order-of-labs', orders)
const orderTexts: Readonly<Record<LabOrder, string>> = {
  name: 'By name',
  changed: 'By last change',
  running: 'Running first',
}

const labSelection = () => import('./on-demand.ts').then((module) => module.LabSelection)
const classesLine = () => import('./on-demand.ts').then((module) => module.ClassesLine)
const labDialog = () => import('./on-demand.ts').then((module) => module.LabDialog)
const labThumbnail = () => import('./on-demand.ts').then((module) => module.LabThumbnail)
const importDialog = () => import('./on-demand.ts').then((module) => module.ImportDialog)

/** All labs. */
export function LabsScreen() {
  const list = useMemo(() => new LabList(client), [])
  const dialog = useSignal<OpenDialog | undefined>(undefined)
  const words = useSignal('')
  const file = useRef<HTMLInputElement>(null)
  useEffect(() => {
    document.title = 'Patchbay'
    const over = new AbortController()
    void list.follow(over.signal)
    const timer = setInterval(() => {
      if (!document.hidden) void list.readLinks()
    }, detailsMs)
    return () => {
      clearInterval(timer)
      over.abort()
    }
  }, [])
  // The ids as a text, which stays equal when a lab changes: only its card is rendered again then.
  const shown = useComputed(() => {
    const wanted = words.value.trim().toLowerCase()
    const labs = list.labs
      .values()
      .filter((lab) => lab.name.toLowerCase().includes(wanted) && (wanted !== '' || !isOnWall(lab)))
    return inOrder(labs, order.value)
      .map((lab) => lab.project_id)
      .join(' ')
  })
  const ids = shown.value.split(' ').filter(Boolean)
  const total = list.labs.ids.value.length
  /** Ids of the labs that are selected. */
  const chosen = useSignal<ReadonlySet<string>>(new Set())
  const newLab = (
    <button
      type="button"
      class="is-main"
      onClick={() => {
        dialog.value = { kind: 'new' }
      }}
    >
      <Icon name="plus" /> New lab
    </button>
  )
  const close = () => {
    dialog.value = undefined
  }
  const given = useSignal<readonly File[]>([])
  const options = useRef<ImportOptions>({})
  const importFiles = (files: readonly File[], about: ImportOptions = {}) => {
    // While files are imported, a drop is ignored: it would replace them.
    if (given.value.length > 0) return
    options.current = about
    given.value = files
  }
  const { isOver, handlers } = useFileDrop((files) => importFiles(files))
  return (
    <div class="labs">
      <ServiceHeader />
      {/* The button below does the same as a drop. */}
      <main class={isOver.value ? 'is-over' : undefined} {...handlers}>
        <div class="labs-head">
          <h2>Labs</h2>
          {total > 5 && <SearchField label="Search labs" words={words} />}
          {total > 1 && (
            <select
              aria-label="Order of the labs"
              value={order.value}
              onChange={(event) => {
                order.value = event.currentTarget.value as LabOrder
              }}
            >
              {orders.map((it) => (
                <option key={it} value={it}>
                  {orderTexts[it]}
                </option>
              ))}
            </select>
          )}
          <span class="spacer" />
          {mayMakeLabs() && (
            <>
              <input
                ref={file}
                type="file"
                hidden
                multiple
                onChange={(event) => {
                  importFiles([...(event.currentTarget.files ?? [])])
                  event.currentTarget.value = ''
                }}
              />
              <button type="button" title={importHint} onClick={() => file.current?.click()}>
                Import …
              </button>
              {newLab}
            </>
          )}
        </div>
        {list.isLoaded.value && total === 0 && (
          <div class="empty">
            <h3>No labs yet</h3>
            <p>A lab is a set of nodes – simulated PCs, switches, routers, machines – and the links between them.</p>
            {mayMakeLabs() && (
              <>
                {newLab}
                <p>Or begin with one of these:</p>
                <Loaded
                  load={gallery}
                  props={{ onChoose: (example, imagesFrom) => importFiles([example], { imagesFrom }) }}
                />
                <p>
                  Coming from GNS3, containerlab, CML? Drop the file here, or{' '}
                  <button type="button" title={importHint} onClick={() => file.current?.click()}>
                    Choose a file
                  </button>
                </p>
              </>
            )}
          </div>
        )}
        {chosen.value.size > 0 && <Loaded load={labSelection} props={{ list, shown: ids, chosen }} />}
        <ul class="cards">
          {ids.map((id) => (
            <Card key={id} {...{ id, list, dialog, chosen }} />
          ))}
        </ul>
        {words.value.trim() === '' && list.labs.values().some(isOnWall) && (
          <Loaded load={classesLine} props={{ list }} />
        )}
      </main>
      {given.value.length > 0 && (
        <Loaded
          load={importDialog}
          props={{
            files: given.value,
            options: options.current,
            onClose: () => {
              given.value = []
            },
          }}
        />
      )}
      {dialog.value !== undefined && (
        <Loaded
          load={labDialog}
          props={{
            open: dialog.value,
            list,
            onExample: (example, about) => {
              close()
              importFiles([example], about)
            },
            onClose: close,
          }}
        />
      )}
    </div>
  )
}

interface CardProps {
  readonly id: string
  readonly list: LabList
  readonly dialog: Signal<OpenDialog | undefined>
  readonly chosen: Signal<ReadonlySet<string>>
}

/** A lab of the list, and what can be done with it. */
function Card({ id, list, dialog, chosen }: CardProps) {
  const lab = list.labs.get(id)
  if (lab === undefined) return null
  const isChosen = chosen.value.has(id)
  const exportLab = async () => {
    try {
      await list.export(lab)
    } catch (error) {
      // A disk that a running node writes to cannot be copied.
      if (error instanceof PatchbayError && error.code === 'node-running') dialog.value = { kind: 'export', lab }
      else notifyError(error)
    }
  }
  return (
    <li class={isChosen ? 'card is-chosen' : 'card'}>
      <div class="thumbnail">
        <Loaded load={labThumbnail} props={{ lab }} />
      </div>
      <a class="card-name" href={labPath(lab.name)}>
        <bdi>{lab.name}</bdi>
      </a>
      {mayEdit() && list.labs.ids.value.length > 1 && (
        <label class="card-choice">
          <input
            type="checkbox"
            aria-label={`Select ${lab.name}`}
            checked={isChosen}
            onChange={() => {
              chosen.value = new Set(isChosen ? [...chosen.value].filter((it) => it !== id) : [...chosen.value, id])
            }}
          />
        </label>
      )}
      <p class="muted">
        <span class={`dot is-${lab.status === 'opened' ? 'started' : 'stopped'}`} />{' '}
        {lab.status === 'opened' ? 'open' : 'closed'}
        <Counts lab={lab} />
      </p>
      <Origin lab={lab} list={list} />
      <WorstLink lab={lab} />
      {lab.status_reason !== undefined && (
        <p class="reason" dir="auto">
          {lab.status_reason.replace(timePattern, timeText)}
        </p>
      )}
      {mayEdit() && (
        <div class="card-actions">
          {lab.status === 'opened' && (
            <button type="button" class="is-quiet" onClick={() => void list.shut(lab).catch(notifyError)}>
              Close
            </button>
          )}
          {(
            [
              ['rename', 'pencil', 'Rename', true],
              ['duplicate', 'copy', 'Duplicate', mayMakeLabs()],
              // A student keeps the lab of a class.
              ['delete', 'trash', 'Delete', hasAllLabs() || lab.class === undefined],
            ] as const
          ).map(
            ([kind, icon, text, isOffered]) =>
              isOffered && (
                <IconButton
                  key={kind}
                  icon={icon}
                  title={`${text} ${lab.name}`}
                  onClick={() => {
                    dialog.value = { kind, lab }
                  }}
                />
              ),
          )}
          <IconButton icon="download" title={`Export ${lab.name}`} onClick={() => void exportLab()} />
        </div>
      )}
    </li>
  )
}

function Counts({ lab: { status, counts } }: { lab: LabProject }) {
  if (counts === undefined) return null
  const { nodes, segments, links, running } = counts
  // As the commands do: switches and the like are segments, which always pass frames.
  const machines = nodes - segments
  const state = running === undefined ? 'it is not known how many run' : `${running} of ${machines} running`
  return (
    <>
      {' · '}
      {counted(machines, 'node')},{segments > 0 && ` ${counted(segments, 'segment')},`} {counted(links, 'link')}
      {status === 'opened' && machines > 0 && (
        <>
          , <span class="whole">{state}</span>
        </>
      )}
    </>
  )
}

/** When a lab was changed, and where there are several computes, which ones it is on. */
function Origin({ lab: { changed_at, compute_ids = [] }, list }: { lab: LabProject; list: LabList }) {
  const names =
    list.computes.ids.value.length > 1 ? compute_ids.map((id) => list.computes.get(id)?.name ?? id).toSorted() : []
  return (
    <>
      {changed_at !== undefined && (
        <p class="muted">
          changed <time dateTime={changed_at}>{timeText(changed_at)}</time>
        </p>
      )}
      {names.length > 0 && (
        <p class="muted">
          on <bdi>{names.join(', ')}</bdi>
        </p>
      )}
    </>
  )
}

/** The state of the worst link of a lab, or how many pass frames. */
function WorstLink({ lab: { counts } }: { lab: LabProject }) {
  const line = counts && linksLine(counts)
  if (line === undefined) return null
  const { grade, text } = line
  return (
    <p class={grade === 'bad' ? 'verdict-line is-bad' : 'muted'}>
      <span class={`verdict is-${grade}`} /> {text}
    </p>
  )
}
