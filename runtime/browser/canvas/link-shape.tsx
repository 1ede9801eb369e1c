import { type ReadonlySignal, useComputed } from '@preact/signals'
import type { LabLink } from '../../../src/client/patchbay.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { shortImpairment } from '../links/impairment.ts'
import { verdictOf } from '../links/verdict.ts'
import { along, type Line, labelPoints, lineBetween, type Point, pathOf, type Strand } from '../map/geometry.ts'
import { badgeWidth, hasPortRoom } from '../map/labels.ts'
import { Label, useOthers } from '../map/map-label.tsx'
import { portName } from '../map/ports.ts'
import { portLabel, vlanOfLink } from '../map/vlans.ts'

interface LinkProps {
  readonly id: string
  readonly window: LabWindow
}

/** Distance of names from the middle of the line: above the badge, pixels of the map. */
const aboveBadge = 18
const alone: Strand = { index: 0, count: 1 }

/** A link on the map: its line by its verdict, the names of its ports, and its impairment. */
export function LinkShape({ id, window: lab }: LinkProps) {
  const { editor } = lab
  const { nodes, links } = editor.store
  const row = links.row(id)
  const ends = row?.peek().nodes
  const [from, to] = [ends?.[0]?.node_id ?? '', ends?.[1]?.node_id ?? '']
  const line = useComputed(() =>
    lineBetween(
      editor.moves.positionOf(from).value,
      editor.moves.positionOf(to).value,
      lab.strands.value.get(id) ?? alone,
    ),
  )
  const data = useComputed(() => pathOf(line.value))
  const labels = useComputed(() => (ends ?? []).map((end) => portLabel(nodes.get(end.node_id), end)))
  const showsPorts = useComputed(() => {
    const longest = Math.max(...labels.value.map(({ length }) => length))
    return hasPortRoom(line.value, row === undefined ? '' : stateOf(row.value), longest)
  })
  // The selection of other things does not render this link again.
  const { value: isSelected } = useComputed(() => editor.selection.value.has(id))
  const others = useOthers(id, editor.store)
  if (row === undefined || ends?.[0] === undefined || ends[1] === undefined) return null
  const link = row.value
  const [a, b] = [nodes.get(from), nodes.get(to)]
  const { grade, sentence } = verdictOf(link)
  const state = stateOf(link)
  const flows = lab.region.value === undefined ? flowsOf(link) : []
  const title =
    `Link ${a?.name} ${portName(a, ends[0])} to ${b?.name} ${portName(b, ends[1])}: ${sentence} ${state}`.trimEnd()
  return (
    <g
      class={`link is-${grade}${link.suspend ? ' is-suspended' : ''}${isSelected ? ' is-selected' : ''}${vlanClass(link, lab)}`}
      data-link={id}
      role="button"
      tabindex={0}
      aria-pressed={isSelected}
      aria-label={title}
    >
      <path class="reach" d={data} />
      <path class="line" d={data} />
      {flows.map((way) => (
        <path key={way} class={`flow is-${way}`} d={data} />
      ))}
      {state !== '' && <Badge line={line} text={state} />}
      {others !== '' && <Label kind="others" text={others} at={() => aboveMiddle(line.value)} />}
      {(lab.hasPortNames.value || isSelected) && showsPorts.value && (
        <>
          <Label kind="port" text={labels.value[0] ?? ''} at={() => labelPoints(line.value, labels.value)[0]} />
          <Label kind="port" text={labels.value[1] ?? ''} at={() => labelPoints(line.value, labels.value)[1]} />
        </>
      )}
    </g>
  )
}

/** The colour of its VLAN, when the map shows these. */
function vlanClass(link: LabLink, { vlanColours, editor }: LabWindow): string {
  if (vlanColours.value === undefined) return ''
  const vlan = vlanOfLink(link, (id) => editor.store.nodes.get(id))
  if (vlan === undefined) return ''
  return vlan === 'trunk' ? ' is-trunk' : ` is-vlan is-colour-${vlanColours.value.get(vlan) ?? 0}`
}

/** The directions in which frames passed at the last reading. The map of a large lab does not show them. */
function flowsOf(link: LabLink): ('ab' | 'ba')[] {
  if (verdictOf(link).grade !== 'good') return []
  return (['ab', 'ba'] as const).filter((way) => (link[`traffic_${way}`]?.frames_per_s ?? 0) > 0)
}

/** What its badge says; empty: it has none. */
const stateOf = (link: LabLink): string => (link.suspend ? 'suspended' : shortImpairment(link))

function aboveMiddle(line: Line): Point {
  const { x, y } = along(line, 0.5)
  return { x, y: y - aboveBadge }
}

function Badge({ line, text }: { line: ReadonlySignal<Line>; text: string }) {
  const transform = useComputed(() => {
    const { x, y } = along(line.value, 0.5)
    return `translate(${x} ${y})`
  })
  const width = badgeWidth(text)
  return (
    <g class="badge" transform={transform}>
      <rect x={-width / 2} y={-10} width={width} height={20} rx="10" />
      <text>{text}</text>
    </g>
  )
}
