import { useComputed } from '@preact/signals'
import type { LabWindow } from '../editing/lab-window.ts'
import { boxOf, centreOf } from '../map/geometry.ts'

/** Number of nodes from which on there is a small map of the whole lab. */
const manyNodes = 50
const [width, height] = [180, 120]

/** The whole lab as dots, with what is in sight; a press moves the map there. The keys of the map do the same. */
export function Minimap({ window: lab }: { window: LabWindow }) {
  const { store } = lab.editor
  const positions = useComputed(() => store.nodes.values())
  const box = useComputed(() => boxOf(positions.value) ?? { x: 0, y: 0, width: 1, height: 1 })
  const dots = useComputed(() =>
    positions.value
      .map(centreOf)
      .map(({ x, y }) => `M${Math.round(x)} ${Math.round(y)}h0`)
      .join(''),
  )
  const scale = useComputed(() => Math.max(box.value.width / width, box.value.height / height))
  const frame = useComputed(() => {
    const { at, scale: zoom } = lab.view.value
    return `M${at.x} ${at.y}h${lab.size.value.width / zoom}v${lab.size.value.height / zoom}H${at.x}z`
  })
  if (positions.value.length < manyNodes) return null
  const { x, y } = box.value
  const [shownWidth, shownHeight] = [width * scale.value, height * scale.value]
  const move = (event: PointerEvent) => {
    const svg = event.currentTarget as SVGSVGElement
    if (event.type === 'pointerdown') svg.setPointerCapture(event.pointerId)
    if (event.buttons === 0) return
    const shown = svg.getBoundingClientRect()
    // A small window shows it smaller.
    const unit = shownWidth / shown.width
    lab.centre({ x: x + (event.clientX - shown.left) * unit, y: y + (event.clientY - shown.top) * unit })
  }
  return (
    <svg
      class="minimap"
      aria-hidden="true"
      width={width}
      height={height}
      viewBox={`${x} ${y} ${shownWidth} ${shownHeight}`}
      preserveAspectRatio="xMinYMin"
      onPointerDown={move}
      onPointerMove={move}
    >
      <path class="minimap-nodes" d={dots} />
      <path class="minimap-view" d={frame} />
    </svg>
  )
}
