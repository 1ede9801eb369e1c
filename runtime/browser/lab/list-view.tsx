import { consoleKindOf } from '../console/console-kind.ts'
import { nameOfDrawing } from '../drawings/drawing-shape.tsx'
import type { LabWindow } from '../editing/lab-window.ts'
import { middleOf, objectAt } from '../editing/panes.ts'
import { shortImpairment } from '../links/impairment.ts'
import { verdictOf } from '../links/verdict.ts'
import { linksAt, portName } from '../map/ports.ts'
import { Icon } from '../parts/icon.tsx'
import { ResourceTable } from '../parts/resource-table.tsx'
import { stateName, stateWord } from '../state/node-phase.ts'
import { mayEdit } from '../state/session.ts'

/** The lab as tables: the same as the map, for small screens and for screen readers. */
export function ListView({ window: lab }: { window: LabWindow }) {
  const { editor, dock } = lab
  const { store, selection } = editor
  const nodes = store.nodes.values().toSorted((a, b) => a.name.localeCompare(b.name, 'en', { numeric: true }))
  const links = store.links.values()
  const drawings = store.drawings.values()
  return (
    <div
      class="list"
      role="group"
      aria-label="The lab as a list"
      onContextMenu={(event) => {
        const row = event.target instanceof Element ? event.target.closest('tr') : null
        const found = objectAt(row?.querySelector('td button') ?? null)
        if (found === undefined) return
        event.preventDefault()
        lab.openMenu({ subject: found.subject, at: { x: event.clientX, y: event.clientY } }, found.id)
      }}
    >
      <ResourceTable caption="Nodes" columns={['Name', 'State', 'Kind', 'Links']} hasActions>
        {nodes.map((node) => {
          const { node_id, name, status, status_reason, node_type } = node
          const isOn = status === 'started'
          const state = stateName(node, store.phases.value)
          return (
            <tr key={node_id} class={selection.value.has(node_id) ? 'is-selected' : ''}>
              <td>
                <button
                  type="button"
                  class="is-quiet"
                  data-node={node_id}
                  // A link that is being drawn ends at the node, as on the map.
                  onClick={({ currentTarget, altKey }) =>
                    lab.newLink.value === undefined
                      ? editor.select([node_id])
                      : lab.connectTo(node_id, middleOf(currentTarget), altKey)
                  }
                >
                  <bdi>{name}</bdi>
                </button>
              </td>
              <td class="is-word" title={status_reason ?? undefined}>
                <span class={`dot is-${state}`} /> {stateWord(state)}
                {status_reason !== null && <Icon name="warning" />}
              </td>
              <td class="is-word">{editor.kindOf(node)?.title ?? node_type}</td>
              <td class="is-word">{linksAt(links, node_id).length}</td>
              <td class="actions">
                {mayEdit() && (
                  <button
                    type="button"
                    aria-label={`${isOn ? 'Stop' : 'Start'} ${name}`}
                    onClick={() => void editor.jobs.act(isOn ? 'stop' : 'start', [node_id])}
                  >
                    <Icon name={isOn ? 'stop' : 'play'} />
                  </button>
                )}
                {mayEdit() && consoleKindOf(node) !== undefined && (
                  <button type="button" aria-label={`Console of ${name}`} onClick={() => dock.open(node_id)}>
                    <Icon name="console" />
                  </button>
                )}
              </td>
            </tr>
          )
        })}
      </ResourceTable>
      <ResourceTable caption="Links" columns={['From', 'To', 'State', 'Impairment']}>
        {links.map((link) => {
          const [a, b] = link.nodes.map((end) => {
            const node = store.nodes.get(end.node_id)
            return (
              <span key={end.node_id}>
                <bdi>{node?.name}</bdi> {portName(node, end)}
              </span>
            )
          })
          const { grade, sentence } = verdictOf(link)
          return (
            <tr key={link.link_id} class={selection.value.has(link.link_id) ? 'is-selected' : ''}>
              <td>
                <button
                  type="button"
                  class="is-quiet"
                  data-link={link.link_id}
                  onClick={() => editor.select([link.link_id])}
                >
                  {a}
                </button>
              </td>
              <td>{b}</td>
              <td>
                <span class={`verdict is-${grade}`} /> {sentence}
              </td>
              <td>{shortImpairment(link)}</td>
            </tr>
          )
        })}
      </ResourceTable>
      {drawings.length > 0 && (
        <ResourceTable caption="Drawings" columns={['Drawing', 'Place']}>
          {drawings.map((drawing) => (
            <tr key={drawing.drawing_id} class={selection.value.has(drawing.drawing_id) ? 'is-selected' : ''}>
              <td>
                <button
                  type="button"
                  class="is-quiet"
                  data-drawing={drawing.drawing_id}
                  onClick={() => editor.select([drawing.drawing_id])}
                >
                  <bdi>{nameOfDrawing(drawing)}</bdi>
                </button>
              </td>
              <td>
                {drawing.x}, {drawing.y}
              </td>
            </tr>
          ))}
        </ResourceTable>
      )}
    </div>
  )
}
