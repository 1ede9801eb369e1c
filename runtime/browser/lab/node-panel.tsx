import type { ComponentChildren } from 'preact'
import type { LabNode } from '../../../src/client/patchbay.ts'
import { consoleKindOf } from '../console/console-kind.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import type { LabNodeAction } from '../editing/node-jobs.ts'
import { focusOnShape } from '../editing/panes.ts'
import { isReplaceable } from '../editing/replaceable.ts'
import type { Schema } from '../forms/fields.ts'
import { SchemaForm } from '../forms/schema-form.tsx'
import { shortImpairment } from '../links/impairment.ts'
import { portTraffic } from '../links/port-traffic.ts'
import { verdictOf } from '../links/verdict.ts'
import { isPort, linksAt, otherEnd, portName } from '../map/ports.ts'
import { Fact } from '../parts/fact.tsx'
import { Icon } from '../parts/icon.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { stateName, stateWord } from '../state/node-phase.ts'
import { mayEdit } from '../state/session.ts'
import { EditableName } from './editable-name.tsx'
import { EventList } from './event-list.tsx'
import { Trouble } from './trouble.tsx'

/** A node: its state, what can be done with it, its ports and its settings. */
export function NodePanel({ node, window: lab }: { node: LabNode; window: LabWindow }) {
  const { editor, dock, wanted } = lab
  const { node_id, status } = node
  const kind = editor.kindOf(node)
  const isLocked = !mayEdit()
  const act = (action: LabNodeAction) => void editor.jobs.act(action, [node_id])
  const isOn = status === 'started'
  const type = editor.templates.value.find(({ template_id, builtin }) => !builtin && template_id === node.template_id)
  const state = stateName(node, editor.store.phases.value)
  return (
    <aside class="inspector" aria-label={`Node ${node.name}`}>
      <h2 class="hidden">{node.name}</h2>
      <EditableName
        name={node.name}
        label="Name of the node"
        isDisabled={isLocked}
        isWanted={wanted.value === 'node-name'}
        onFocused={() => {
          wanted.value = undefined
        }}
        onRename={(name) => editor.change(node_id, { name })}
      />
      <p class="state">
        <span class={`dot is-${state}`} /> {stateWord(state)}
        <span class="muted"> · {kind?.title ?? node.node_type}</span>
        {node.compute_id !== 'local' && <Loaded load={computeName} props={{ id: node.compute_id }} />}
      </p>
      <Trouble node={node} />
      {editor.settings.waiting.value.has(node_id) && (
        <div class="reason is-mild row" role="status">
          <span>New settings take effect at the next start.</span>
          {!isLocked && (
            <button type="button" onClick={() => void editor.jobs.restart([node_id])}>
              <Icon name="reload" /> Restart
            </button>
          )}
        </div>
      )}
      {!isLocked && (
        <div class="row">
          {isOn ? (
            <button type="button" onClick={() => act('stop')}>
              <Icon name="stop" /> Stop
            </button>
          ) : (
            <button type="button" class="is-main" onClick={() => act(status === 'suspended' ? 'resume' : 'start')}>
              <Icon name="play" /> {status === 'suspended' ? 'Resume' : 'Start'}
            </button>
          )}
          {isOn && (
            <button type="button" onClick={() => act('reload')}>
              <Icon name="reload" /> Reload
            </button>
          )}
          {isOn && kind?.can_be_suspended === true && (
            <button type="button" onClick={() => act('suspend')}>
              <Icon name="pause" /> Suspend
            </button>
          )}
          {consoleKindOf(node) !== undefined && (
            <button type="button" onClick={() => dock.open(node_id)}>
              <Icon name="console" /> Console
            </button>
          )}
          {isReplaceable(node) && (
            <button
              type="button"
              onClick={() => {
                lab.dialog.value = 'replace'
              }}
            >
              Replace by …
            </button>
          )}
          <button type="button" class="is-danger" onClick={() => lab.remove()}>
            <Icon name="trash" /> Delete
          </button>
        </div>
      )}
      <Ports node={node} window={lab} />
      {kind !== undefined && Object.keys((kind.settings as Schema).properties ?? {}).length > 0 && (
        <section>
          <h3>Settings</h3>
          <SchemaForm
            schema={kind.settings as Schema}
            parts={kind.form_parts}
            {...(kind.has_images && { imageKind: kind.name })}
            owner={node.name}
            {...(type !== undefined && { nodeType: { name: type.name, settings: type } })}
            values={node.properties}
            isDisabled={isLocked}
            onSave={(properties) => editor.settings.save(node, kind, properties)}
          />
        </section>
      )}
      {kind !== undefined && kind.configs.length > 0 && (
        <Part title="Configuration" window={lab}>
          <Loaded load={configEditor} props={{ node, names: kind.configs, window: lab }} />
        </Part>
      )}
      <Part title="Files" window={lab}>
        <Loaded load={nodeFiles} props={{ node }} />
      </Part>
      {!isLocked && consoleKindOf(node) === 'text' && (
        <Part title="Log" window={lab}>
          <Loaded load={nodeLog} props={{ node }} />
        </Part>
      )}
      <EventList events={editor.store.events.value.filter(({ nodes }) => nodes.includes(node_id))} />
      <details>
        <summary>Details</summary>
        <dl class="facts">
          {node.console !== null && <Fact name="Console" value={`${node.console_type} port ${node.console}`} />}
          <Fact name="Place" value={`${node.x}, ${node.y}`} />
          <Fact name="Id" value={node_id} />
          {node.node_directory !== null && <Fact name="Directory" value={node.node_directory} />}
          {node.command_line !== null && node.command_line !== '' && (
            <Fact name="Command line" value={node.command_line} />
          )}
        </dl>
      </details>
    </aside>
  )
}

const computeName = () => import('./on-demand.ts').then((module) => module.ComputeName)
const configEditor = () => import('./on-demand.ts').then((module) => module.ConfigEditor)
const nodeFiles = () => import('./on-demand.ts').then((module) => module.NodeFiles)
const nodeLog = () => import('./on-demand.ts').then((module) => module.NodeLog)

interface PartProps {
  readonly title: string
  readonly window: LabWindow
  readonly children: ComponentChildren
}

/** A part of the panel that is read when it is opened. It stays open when another node is selected. */
function Part({ title, window: { openParts }, children }: PartProps) {
  const isOpen = openParts.value.has(title)
  return (
    <details
      open={isOpen}
      onToggle={({ currentTarget: { open } }) => {
        if (open === isOpen) return
        const others = [...openParts.value].filter((part) => part !== title)
        openParts.value = new Set(open ? [...others, title] : others)
      }}
    >
      <summary>{title}</summary>
      {isOpen && children}
    </details>
  )
}

function Ports({ node, window: lab }: { node: LabNode; window: LabWindow }) {
  const { editor } = lab
  const { store } = editor
  const links = linksAt(store.links.values(), node.node_id)
  if (node.ports.length === 0) return null
  return (
    <section>
      <h3>Ports</h3>
      <ul class="ports">
        {node.ports.map((port) => {
          const link = links.find(({ nodes }) =>
            nodes.some((linkEnd) => linkEnd.node_id === node.node_id && isPort(port, linkEnd)),
          )
          const end = link && otherEnd(link, node.node_id)
          const peer = end && store.nodes.get(end.node_id)
          return (
            <li key={`${port.adapter_number}/${port.port_number}`}>
              <span class="port-name">{port.name}</span>
              {link === undefined || end === undefined ? (
                mayEdit() && (
                  <button
                    type="button"
                    class="is-quiet"
                    onClick={() => {
                      lab.connectFrom(node.node_id, port)
                      focusOnShape(node.node_id)
                    }}
                  >
                    <Icon name="link" /> Connect
                  </button>
                )
              ) : (
                <button type="button" class="is-quiet peer" onClick={() => editor.select([link.link_id])}>
                  <span class={`verdict is-${verdictOf(link).grade}`} />
                  <span class="peer-name">
                    <bdi>{peer?.name}</bdi> {portName(peer, end)}
                  </span>
                  <span class="muted">{shortImpairment(link)}</span>
                </button>
              )}
              {link !== undefined && (
                <small>
                  {portTraffic(link, node.node_id)
                    .split(' · ')
                    .map((part, index) => [index > 0 && ' · ', <span key={part}>{part}</span>])}
                </small>
              )}
            </li>
          )
        })}
      </ul>
    </section>
  )
}
