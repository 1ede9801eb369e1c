import { useEffect, useLayoutEffect, useMemo } from 'preact/hooks'
import { Canvas } from '../canvas/canvas.tsx'
import { SymbolDefinitions } from '../canvas/symbols.tsx'
import { Dock } from '../console/dock.ts'
import { commandOf, isCharacterKey, isEnabled, isTaken } from '../editing/commands.ts'
import { LabEditor } from '../editing/lab-editor.ts'
import { LabWindow } from '../editing/lab-window.ts'
import { showSelection } from '../editing/own-presence.ts'
import { middleOf } from '../editing/panes.ts'
import { Ended } from '../parts/ended.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { characterKeys } from '../state/character-keys.ts'
import { client } from '../state/client.ts'
import { LiveLab } from '../state/live-lab.ts'
import { notify } from '../state/notices.ts'
import { mayEdit } from '../state/session.ts'
import { Inspector } from './inspector.tsx'
import { Palette } from './palette.tsx'
import { Tool, Toolbar } from './toolbar.tsx'

const dockView = () => import('./on-demand.ts').then((module) => module.DockView)
const listView = () => import('./on-demand.ts').then((module) => module.ListView)
const tasksPane = () => import('./on-demand.ts').then((module) => module.TasksPane)
const linkPorts = () => import('./on-demand.ts').then((module) => module.LinkPorts)
const openDialog = () => import('./on-demand.ts').then((module) => module.OpenDialog)
const uploadDialog = () => import('./on-demand.ts').then((module) => module.UploadDialog)
const contextMenu = () => import('./on-demand.ts').then((module) => module.ContextMenu)

/** Follows a lab while the component is shown. */
function useLab(name: string): { live: LiveLab; window: LabWindow } {
  const lab = useMemo(() => {
    const live = new LiveLab(client, name, notify)
    return { live, window: new LabWindow(new LabEditor(client, live.store, name), new Dock()) }
  }, [name])
  useEffect(() => {
    const over = new AbortController()
    void lab.live.follow(over.signal)
    const endPresence = showSelection(client, lab.window.editor)
    const endEdits = lab.window.editor.history.follow(lab.live.store)
    return () => {
      endPresence()
      endEdits()
      over.abort()
      if (lab.window.hasUnsaved)
        notify('warning', `${name} has configurations that are not saved: the page keeps them until it is closed.`)
    }
  }, [lab])
  return lab
}

/** One lab: the palette, the map, what is selected, and the consoles. */
export function LabScreen({ name }: { name: string }) {
  const { live, window: lab } = useLab(name)
  const { store } = lab.editor
  const title = store.project.value?.name
  useEffect(() => {
    document.title = title === undefined ? 'Patchbay' : `${title} – Patchbay`
  }, [title])
  useEffect(() => {
    // The browser asks before it leaves a page with edits that the service does not have yet.
    const onLeave = (event: BeforeUnloadEvent) => {
      if (lab.editor.hasUnsent) event.preventDefault()
    }
    addEventListener('beforeunload', onLeave)
    return () => removeEventListener('beforeunload', onLeave)
  }, [lab])
  // With what it draws: keys that are pressed as soon as a node is there are not lost.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => press(event, lab)
    addEventListener('keydown', onKey)
    return () => removeEventListener('keydown', onKey)
  }, [lab])
  const connection = live.connection.value
  const isLive = connection.state === 'live'
  useEffect(() => {
    if (isLive && lab.editor.templates.value.length === 0) void lab.editor.prepare()
  }, [lab, isLive])
  const end = store.end.value
  if (connection.state === 'gone') return <Ended text={connection.message} />
  if (end !== undefined) return <Ended text={`This lab was ${end}.`} />
  return (
    <div class="lab">
      <SymbolDefinitions />
      <Toolbar window={lab} connection={connection} />
      <main class={mayEdit() ? 'workspace' : 'workspace is-read-only'}>
        {mayEdit() && <Palette window={lab} />}
        <div class={lab.isShowingTasks.value ? 'stage has-tasks' : 'stage'}>
          {lab.isList.value ? <Loaded key="list" load={listView} props={{ window: lab }} /> : <Canvas window={lab} />}
          {!lab.isList.value && (
            <div class="zoom" role="group" aria-label="Zoom">
              <Tool id="zoom-out" icon="minus" window={lab} />
              <Tool id="fit" icon="fit" window={lab} />
              <Tool id="zoom-in" icon="plus" window={lab} />
              {mayEdit() && <Tool id="arrange" icon="arrange" window={lab} />}
            </div>
          )}
          <NewLinkParts window={lab} />
          {lab.menu.value !== undefined && <Loaded load={contextMenu} props={{ window: lab, menu: lab.menu.value }} />}
          {lab.isShowingTasks.value && <Loaded key="tasks" load={tasksPane} props={{ window: lab }} />}
          {/* The key keeps it when the map becomes a list: consoles and packets go on. */}
          {lab.dock.tabs.value.length > 0 && <Loaded key="dock" load={dockView} props={{ dock: lab.dock, store }} />}
        </div>
        <Inspector window={lab} />
      </main>
      {lab.editor.jobs.missing.value.length > 0 && (
        <Loaded load={uploadDialog} props={{ editor: lab.editor, missing: lab.editor.jobs.missing.value }} />
      )}
      {lab.dialog.value !== undefined && <Loaded load={openDialog} props={{ window: lab, name: lab.dialog.value }} />}
    </div>
  )
}

/** What to do with a link that is being drawn: where it goes, and by which ports. */
function NewLinkParts({ window: lab }: { window: LabWindow }) {
  const { nodes } = lab.editor.store
  const link = lab.newLink.value
  if (link === undefined) return null
  const { from, port, to } = link
  if (to !== undefined) return <Loaded load={linkPorts} props={{ window: lab, link }} />
  return (
    <p class="link-hint" role="status">
      Link from <bdi>{nodes.get(from)?.name}</bdi>
      {port && ` ${port.name}`}: click the other node, or press Tab and Enter. Escape cancels.
    </p>
  )
}

/** A key that no field and no console takes. */
function press(event: KeyboardEvent, lab: LabWindow): void {
  // A dialog whose focused part has just gone leaves the focus at the document.
  if (event.defaultPrevented || lab.dialog.value !== undefined || document.querySelector('dialog[open]') !== null)
    return
  // The list of ports, which has the focus as soon as it is there.
  if (lab.menu.value !== undefined || lab.newLink.value?.to !== undefined) return
  const target = event.target instanceof Element ? event.target : undefined
  if (isTaken(event, (part) => target?.closest(part) != null)) return
  const node = target?.closest<SVGElement>('[data-node]')?.dataset.node
  if (event.key === 'Enter' && lab.newLink.value !== undefined && node !== undefined) {
    event.preventDefault()
    lab.connectTo(node, middleOf(target ?? null), event.altKey)
    // Keys are for the node that has the focus.
    return lab.editor.select([node])
  }
  // Enter and the space bar press a button that has the focus.
  if ((event.key === 'Enter' || event.key === ' ') && target?.closest('button, a') != null) return
  if (characterKeys.value === 'off' && isCharacterKey(event)) return
  const command = commandOf(event)
  if (command === undefined || !isEnabled(command, lab)) return
  event.preventDefault()
  command.run(lab)
}
