import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { LabTemplate } from '../../../src/client/patchbay.ts'
import { Drawings } from '../drawings/drawing-shape.tsx'
import { drawables } from '../drawings/shape.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { centreOf, onMap, type Point, pathOf, tile, zoomed } from '../map/geometry.ts'
import { mayEdit } from '../state/session.ts'
import { Gestures } from './gestures.ts'
import { JobLine } from './job-line.tsx'
import { Minimap } from './minimap.tsx'
import { Shapes } from './shapes.tsx'

/** The media type of what is dragged from the palette: the id of a template, or the kind of a drawing. */
export const templateMedia = 'application/x-patchbay-template'
/** What takes the space bar itself. */
const pressedBySpace = 'button, a, summary, input, textarea, select, dialog, .console, [role="tab"]'
/** Distance of the dots of the background, pixels of the map. */
const grid = 20

/** The map of a lab. */
export function Canvas({ window: lab }: { window: LabWindow }) {
  const { editor, view } = lab
  const { store } = editor
  const element = useRef<SVGSVGElement>(null)
  const gestures = useRef<Gestures>(undefined)
  gestures.current ??= new Gestures(lab)
  const { marquee, pointer, hovered, isSpaceHeld } = gestures.current
  const isOver = useSignal(false)

  const inWindow = ({ clientX, clientY }: { clientX: number; clientY: number }): Point => {
    const box = element.current?.getBoundingClientRect()
    return { x: clientX - (box?.left ?? 0), y: clientY - (box?.top ?? 0) }
  }

  const isRead = store.project.value !== undefined
  /** Before the map has its size it does not show the whole lab, so that most of what it drew would be drawn again. */
  const isMeasured = useSignal(isRead)
  useEffect(() => {
    const svg = element.current
    if (svg === null || !isRead) return
    const measure = new ResizeObserver(() => {
      if (svg.clientWidth === 0) return
      lab.resize(svg.clientWidth, svg.clientHeight)
      isMeasured.value = true
    })
    measure.observe(svg)
    return () => measure.disconnect()
  }, [isRead])
  useEffect(() => {
    const svg = element.current
    if (svg === null) return
    // Added here, as a passive listener could not keep the wheel from scrolling the page.
    const onWheel = (event: WheelEvent) => {
      event.preventDefault()
      const { at, scale } = view.value
      if (event.ctrlKey || event.metaKey)
        view.value = zoomed(view.value, Math.exp(-event.deltaY / 300), inWindow(event))
      else {
        const [dx, dy] = event.shiftKey && event.deltaX === 0 ? [event.deltaY, 0] : [event.deltaX, event.deltaY]
        view.value = { scale, at: { x: at.x + dx / scale, y: at.y + dy / scale } }
      }
    }
    svg.addEventListener('wheel', onWheel, { passive: false })
    return () => svg.removeEventListener('wheel', onWheel)
  }, [])

  useEffect(() => {
    const hold = (event: KeyboardEvent) => {
      const { type, key, target } = event
      const hasOwnUse = target instanceof Element && target.closest(pressedBySpace) !== null
      isSpaceHeld.value = type === 'keydown' && key === ' ' && !hasOwnUse
    }
    const release = () => {
      isSpaceHeld.value = false
    }
    addEventListener('keydown', hold)
    addEventListener('keyup', hold)
    addEventListener('blur', release)
    return () => {
      removeEventListener('keydown', hold)
      removeEventListener('keyup', hold)
      removeEventListener('blur', release)
    }
  }, [])

  const transform = useComputed(() => `scale(${view.value.scale}) translate(${-view.value.at.x} ${-view.value.at.y})`)
  const background = useComputed(() => {
    const { at, scale } = view.value
    return `translate(${-at.x * scale} ${-at.y * scale}) scale(${scale})`
  })
  const drop = (event: DragEvent) => {
    isOver.value = false
    const id = event.dataTransfer?.getData(templateMedia)
    const point = onMap(view.value, inWindow(event))
    const drawn = drawables.find(({ kind }) => kind === id)
    const template = editor.templates.value.find((known: LabTemplate) => known.template_id === id)
    if (drawn === undefined && template === undefined) return
    event.preventDefault()
    if (drawn !== undefined) void lab.draw(drawn.kind, point)
    else if (template !== undefined) void editor.add(template, point)
  }
  const gesture = gestures.current
  const isEmpty = isRead && store.nodes.ids.value.length + store.drawings.ids.value.length === 0
  return (
    <div
      class={`canvas${isOver.value ? ' is-over' : ''}${lab.newLink.value === undefined ? '' : ' is-linking'}${isSpaceHeld.value ? ' is-movable' : ''}`}
    >
      <svg
        ref={element}
        role="application"
        aria-label="Map of the lab. Tab goes through nodes and links, F6 to the settings of the selected one; ? shows the keys."
        onPointerDown={(event) => gesture.down(event, inWindow(event))}
        onPointerMove={(event) => gesture.move(event, inWindow(event))}
        onPointerUp={(event) => gesture.up(event, inWindow(event))}
        onPointerCancel={() => gesture.cancel()}
        onPointerLeave={() => gesture.leave()}
        onDblClick={(event) => gesture.doubleClick(event)}
        onFocusIn={(event) => gesture.focus(event)}
        onContextMenu={(event) => gesture.contextMenu(event, inWindow(event))}
        onDragOver={(event) => {
          if (!mayEdit() || event.dataTransfer?.types.includes(templateMedia) !== true) return
          event.preventDefault()
          isOver.value = true
        }}
        onDragLeave={() => {
          isOver.value = false
        }}
        onDrop={drop}
      >
        <defs>
          <pattern id="grid" width={grid} height={grid} patternUnits="userSpaceOnUse" patternTransform={background}>
            <circle class="grid-dot" cx="1" cy="1" r="1" />
          </pattern>
        </defs>
        <rect class="background" width="100%" height="100%" fill="url(#grid)" />
        <g transform={transform}>
          <Drawings window={lab} />
          {isMeasured.value && <Shapes window={lab} />}
          <Handles window={lab} hovered={hovered.value} />
          <NewLink window={lab} pointer={pointer.value} />
          {marquee.value !== undefined && <rect class="marquee" {...marquee.value} />}
        </g>
      </svg>
      <Minimap window={lab} />
      <JobLine store={store} />
      <VlanLegend window={lab} />
      {isEmpty && (
        <div class="empty-map">
          <h2>An empty lab</h2>
          {mayEdit() ? (
            <>
              <p class="for-wide">
                Drag nodes from the left onto the map, then draw links from the dots at their edges.
              </p>
              <p class="for-narrow">
                Tap nodes above to add them. Select one, and draw links from the dots at its edges.
              </p>
            </>
          ) : (
            <p>There are no nodes in this lab yet.</p>
          )}
        </div>
      )}
    </div>
  )
}

/** The colours of the VLANs, where links have them. */
function VlanLegend({ window: { vlanColours } }: { window: LabWindow }) {
  if (vlanColours.value === undefined) return null
  return (
    <ul class="vlan-legend" aria-label="Colours of VLANs">
      {[...vlanColours.value].map(([vlan, colour]) => (
        <li key={vlan}>
          <span class={`is-colour-${colour}`} /> VLAN {vlan}
        </li>
      ))}
      {vlanColours.value.size === 0 && <li class="muted">No switch has VLANs.</li>}
    </ul>
  )
}

/** The scale below which the dots at the edges of a node become smaller with it. */
const leastHandleScale = 0.4
/** The middles of the sides of a tile, `outside` pixels of the map away from it; the last is `below` it. */
const handlePoints = (outside: number, below: number): readonly Point[] => [
  { x: tile / 2, y: -outside },
  { x: tile + outside, y: tile / 2 },
  { x: -outside, y: tile / 2 },
  { x: tile / 2, y: tile + below },
]
/** Room for the name of a node below its tile, pixels of the map. */
const nameHeight = 32
/** Radius of the dots, pixels of the window; a finger needs more. */
const handleRadius = matchMedia('(pointer: coarse)').matches ? 11 : 6

/** The dots at the edges of a node from which links are drawn. */
function Handles({ window: { editor, newLink, view }, hovered }: { window: LabWindow; hovered: string | undefined }) {
  const [selected, ...others] = editor.selectedNodes
  const id = hovered ?? (others.length === 0 ? selected?.node_id : undefined)
  if (!mayEdit() || newLink.value !== undefined || id === undefined || !editor.store.nodes.has(id)) return null
  const { x, y } = editor.moves.positionOf(id).value
  // On a small map they stay as large as a pointer can hit, and leave the tile free.
  const unit = 1 / Math.min(1, Math.max(leastHandleScale, view.value.scale))
  // Where they are large beside the tile, they are beside it and below its name.
  const isLarge = handleRadius * unit > 6
  const outside = isLarge ? handleRadius * unit - 2 : 2
  const below = isLarge ? nameHeight + handleRadius * unit : 2
  return (
    <g class="handles" transform={`translate(${x} ${y})`} data-node={id} style={{ '--unit': `${unit}px` }}>
      {handlePoints(outside, below).map((at, side) => (
        <circle key={side} data-handle={id} cx={at.x} cy={at.y} r={handleRadius} />
      ))}
    </g>
  )
}

/** The link that is being drawn. */
function NewLink({ window: { editor, newLink }, pointer }: { window: LabWindow; pointer: Point | undefined }) {
  const from = newLink.value?.from
  if (from === undefined || pointer === undefined) return null
  return <path class="new-link" d={pathOf({ from: centreOf(editor.moves.positionOf(from).value), to: pointer })} />
}
