import { useComputed } from '@preact/signals'
import { commands, isEnabled } from '../editing/commands.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { counted } from '../parts/counted.ts'
import type { IconName } from '../parts/icon.tsx'
import { Icon } from '../parts/icon.tsx'
import { ThemeButton } from '../parts/theme-button.tsx'
import type { LabConnection } from '../state/live-lab.ts'
import { labsPath } from '../state/route.ts'
import { mayEdit } from '../state/session.ts'
import { EditableName } from './editable-name.tsx'

const states: Readonly<Record<LabConnection['state'], string>> = {
  connecting: 'Connecting …',
  live: 'Live',
  lost: 'Connection lost. Trying again …',
  gone: 'Not there',
}

/** The head of a lab: its name, what concerns all of it, and the state of the connection. */
export function Toolbar({ window: lab, connection }: { window: LabWindow; connection: LabConnection }) {
  const { editor, isList, hasLabels } = lab
  const name = editor.store.project.value?.name ?? ''
  const back = labsPath.value === '#/' ? 'All labs' : 'Back to the class'
  return (
    <header class="toolbar">
      <a class="button is-quiet" href={labsPath.value} title={back}>
        <Icon name="back" />
        <span class="hidden">{back}</span>
      </a>
      <h1 class="hidden">{name}</h1>
      <EditableName
        name={name}
        label="Name of the lab"
        isDisabled={!mayEdit()}
        onRename={(wanted) => editor.renameLab(wanted)}
      />
      {mayEdit() && (
        <div class="group">
          <Tool id="undo" icon="undo" window={lab} />
          <Tool id="redo" icon="redo" window={lab} />
        </div>
      )}
      {mayEdit() && (
        <div class="group">
          <Tool id="start-all" icon="play" text="Start all" window={lab} />
          <Tool id="stop-all" icon="stop" text="Stop all" window={lab} />
        </div>
      )}
      {lab.hasTasks.value && (
        <Tool id="tasks" icon="check" text={tasksText(lab)} isOn={lab.isShowingTasks.value} window={lab} />
      )}
      <span class="spacer" />
      <Problems window={lab} />
      <p class={`connection is-${connection.state}`} role="status">
        {states[connection.state]}
      </p>
      <div class="group">
        <Tool id="find" icon="search" window={lab} />
        <Tool id="labels" icon="tag" isOn={hasLabels.value} window={lab} />
        <Tool id="list" icon={isList.value ? 'map' : 'list'} isOn={isList.value} window={lab} />
        <Tool id="keys" icon="keys" window={lab} />
        <ThemeButton />
      </div>
    </header>
  )
}

/** `Tasks 3/5`: the points. */
function tasksText({ editor }: LabWindow): string {
  const { points = 0, of = 0 } = editor.store.project.value?.score ?? {}
  return of === 0 ? 'Tasks' : `Tasks ${points}/${of}`
}

/** How many nodes have a reason for their state, such as a failed start; a press selects them. */
function Problems({ window: { editor } }: { window: LabWindow }) {
  const { value: troubled } = useComputed(() =>
    editor.store.nodes.values().filter((node) => node.status_reason !== null),
  )
  if (troubled.length === 0) return null
  const names = troubled.map(({ name }) => name)
  return (
    <button
      type="button"
      class="is-quiet problems"
      title={`${names.slice(0, mostNames).join(', ')}${names.length > mostNames ? ' ...' : ''}`}
      onClick={() => editor.select(troubled.map(({ node_id }) => node_id))}
    >
      <Icon name="warning" /> {counted(troubled.length, 'problem')}
    </button>
  )
}

/** Most names in the title of the problems. */
const mostNames = 10

interface ToolProps {
  readonly id: string
  readonly icon: IconName
  readonly text?: string
  /** The state of a button that is a switch. */
  readonly isOn?: boolean
  readonly window: LabWindow
}

/** A button for a command. */
export function Tool({ id, icon, text, isOn, window: lab }: ToolProps) {
  const command = commands.find((it) => it.id === id)
  if (command === undefined) return null
  const { title, keys, detail } = command
  const about = detail?.(lab)
  const full = about === undefined ? title : `${title}: ${about}`
  return (
    <button
      type="button"
      class={`tool${text === undefined ? ' is-quiet' : ''}`}
      title={keys?.[0] === undefined ? full : `${full} (${keys[0]})`}
      aria-label={title}
      {...(isOn !== undefined && { 'aria-pressed': isOn })}
      disabled={!isEnabled(command, lab)}
      onClick={() => command.run(lab)}
    >
      <Icon name={icon} />
      {text !== undefined && <span class="tool-text">{text}</span>}
    </button>
  )
}
