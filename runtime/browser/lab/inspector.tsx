import type { LabWindow } from '../editing/lab-window.ts'
import { Icon } from '../parts/icon.tsx'
import { Loaded } from '../parts/loaded.tsx'
import { mayEdit } from '../state/session.ts'
import { LabPanel } from './lab-panel.tsx'
import { NodePanel } from './node-panel.tsx'
import { Tool } from './toolbar.tsx'

const linkPanel = () => import('./on-demand.ts').then((it) => it.LinkPanel)
const drawingPanel = () => import('./on-demand.ts').then((it) => it.DrawingPanel)

/** What is selected: a node, a link, a drawing, several of them, or the lab itself. */
export function Inspector({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const [first, ...others] = editor.selection.value
  const { nodes, links, drawings } = editor.store
  if (first !== undefined && others.length === 0) {
    const node = nodes.get(first)
    if (node !== undefined) return <NodePanel key={first} node={node} window={lab} />
    const link = links.get(first)
    if (link !== undefined) return <Loaded key={first} load={linkPanel} props={{ link, window: lab }} />
    const drawing = drawings.get(first)
    if (drawing !== undefined) return <Loaded key={first} load={drawingPanel} props={{ drawing, window: lab }} />
  }
  return editor.selection.value.size > 1 ? <ManyPanel window={lab} /> : <LabPanel window={lab} />
}

/** As people count: PC2 is before PC10. */
const names = new Intl.Collator(undefined, { numeric: true })

function ManyPanel({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const nodes = editor.selectedNodes.sort((a, b) => names.compare(a.name, b.name))
  const links = editor.selectedLinks
  const ids = nodes.map((it) => it.node_id)
  return (
    <aside class="inspector" aria-label="Selection">
      <h2>
        {[count(nodes.length, 'node'), count(links.length, 'link'), count(editor.selectedDrawings.length, 'drawing')]
          .filter((it) => it !== '')
          .join(', ')}{' '}
        selected
      </h2>
      {mayEdit() && (
        <div class="row">
          <button type="button" disabled={ids.length === 0} onClick={() => void editor.act('start', ids)}>
            <Icon name="play" /> Start
          </button>
          <button type="button" disabled={ids.length === 0} onClick={() => void editor.act('stop', ids)}>
            <Icon name="stop" /> Stop
          </button>
          <button type="button" disabled={ids.length === 0} onClick={() => lab.openConsoles(ids)}>
            <Icon name="console" /> Consoles
          </button>
          <button type="button" class="is-danger" onClick={() => void editor.removeSelected()}>
            <Icon name="trash" /> Delete
          </button>
        </div>
      )}
      {mayEdit() && nodes.length > 1 && (
        <div class="row">
          <Tool id="row" icon="row" window={lab} />
          <Tool id="column" icon="column" window={lab} />
          <Tool id="distribute" icon="spread" window={lab} />
          <Tool id="arrange" icon="arrange" window={lab} />
        </div>
      )}
      <ul class="plain">
        {nodes.map(({ node_id, name, status }) => (
          <li key={node_id}>
            <button type="button" class="is-quiet" onClick={() => editor.select([node_id])}>
              <span class={`dot is-${status}`} /> <bdi>{name}</bdi>
            </button>
          </li>
        ))}
      </ul>
    </aside>
  )
}

const count = (number: number, noun: string): string =>
  number === 0 ? '' : `${number} ${noun}${number === 1 ? '' : 's'}`
