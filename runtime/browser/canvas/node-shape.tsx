import { useComputed } from '@preact/signals'
import type { LabNode } from '../../../src/client/patchbay.ts'
import { plainReason } from '../editing/job-text.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { type Point, tile } from '../map/geometry.ts'
import { shortened } from '../map/labels.ts'
import { Label, maxName, useOthers } from '../map/map-label.tsx'
import { stateWord } from '../state/node-phase.ts'
import { isBuiltIn, symbolUrl } from './symbols.tsx'

const aboveTile: Point = { x: tile / 2, y: -8 }

/** A node on the map: its symbol, its state and its name. */
export function NodeShape({ id, window: lab }: { id: string; window: LabWindow }) {
  const { editor } = lab
  const row = editor.store.nodes.row(id)
  const position = editor.moves.positionOf(id)
  // The attribute follows the signal: a move renders nothing else again.
  const transform = useComputed(() => `translate(${position.value.x} ${position.value.y})`)
  // The selection of other things does not render this node again.
  const { value: isSelected } = useComputed(() => editor.selection.value.has(id))
  const others = useOthers(id, editor.store)
  const { value: phase } = useComputed(() => editor.store.phases.value.get(id))
  if (row === undefined) return null
  const node = row.value
  const { value: nameSize } = lab.nameSize
  return (
    <g
      class={`node is-${phase ?? node.status}${isSelected ? ' is-selected' : ''}${node.status_reason === null ? '' : ' has-trouble'}`}
      transform={transform}
      data-node={id}
      role="button"
      tabindex={0}
      aria-pressed={isSelected}
      aria-label={labelOf(node, phase ?? node.status)}
    >
      {(node.status_reason !== null || phase !== undefined) && (
        <title>{node.status_reason === null ? phase : plainReason(node.status_reason)}</title>
      )}
      <rect class="tile" width={tile} height={tile} rx="12" />
      {nodeSymbol(editor.symbolOf(node))}
      <circle class="status" cx={tile - 5} cy={5} r="6.500" />
      {(nameSize !== undefined || isSelected) && (
        <text class={`name is-${nameSize?.size ?? 'larger'}`} x={tile / 2} y={tile + 9}>
          {shortened(node.name, nameSize?.most ?? maxName)}
        </text>
      )}
      {others !== '' && <Label kind="others" text={others} at={() => aboveTile} />}
    </g>
  )
}

const [inset, symbolSize] = [10, tile - 20]
/** By a transform: a symbol with a size of its own would be a window of the map, with a clip, for each node. */
const symbolTransform = `translate(${inset} ${inset}) scale(${symbolSize / 60})`

function nodeSymbol(name: string) {
  return isBuiltIn(name) ? (
    <use class="symbol" href={`#symbol-${name}`} transform={symbolTransform} />
  ) : (
    <image href={symbolUrl(name)} x={inset} y={inset} width={symbolSize} height={symbolSize} />
  )
}

const labelOf = ({ name, node_type, status_reason }: LabNode, state: string): string =>
  `${name}, ${node_type}, ${stateWord(state)}${status_reason === null ? '' : `: ${status_reason}`}`
