import type { LabWindow } from '../editing/lab-window.ts'
import { counted } from '../parts/counted.ts'
import { Icon } from '../parts/icon.tsx'
import { stateName } from '../state/node-phase.ts'
import { mayEdit } from '../state/session.ts'
import { Tool } from './toolbar.tsx'
import { Trouble } from './trouble.tsx'

/** As people count: PC2 is before PC10. */
const names = new Intl.Collator(undefined, { numeric: true })

/** Several nodes, links and drawings that are selected. */
export function ManyPanel({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const nodes = editor.selectedNodes.sort((a, b) => names.compare(a.name, b.name))
  const links = editor.selectedLinks
  const ids = nodes.map((it) => it.node_id)
  return (
    <aside class="inspector" aria-label="Selection">
      <h2>
        {[
          [nodes.length, 'node'] as const,
          [links.length, 'link'] as const,
          [editor.selectedDrawings.length, 'drawing'] as const,
        ]
          .flatMap(([number, noun]) => (number === 0 ? [] : counted(number, noun)))
          .join(', ')}{' '}
        selected
      </h2>
      {mayEdit() && (
        <div class="row">
          <button type="button" disabled={ids.length === 0} onClick={() => void editor.jobs.act('start', ids)}>
            <Icon name="play" /> Start
          </button>
          <button type="button" disabled={ids.length === 0} onClick={() => void editor.jobs.act('stop', ids)}>
            <Icon name="stop" /> Stop
          </button>
          <button type="button" disabled={ids.length === 0} onClick={() => lab.openConsoles(ids)}>
            <Icon name="console" /> Consoles
          </button>
          <button type="button" class="is-danger" onClick={() => lab.remove()}>
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
        {nodes.map((node) => (
          <li key={node.node_id}>
            <button type="button" class="is-quiet" onClick={() => editor.select([node.node_id])}>
              <span class={`dot is-${stateName(node, editor.store.phases.value)}`} /> <bdi>{node.name}</bdi>
            </button>
            <Trouble node={node} />
          </li>
        ))}
      </ul>
    </aside>
  )
}
