import { signal } from '@preact/signals'
import { type Shape, shapeOf, sizeOf, withSize } from '../drawings/shape.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { objectAt } from '../editing/panes.ts'
import {
  type Box,
  boxBetween,
  centreOf,
  contains,
  onMap,
  type Point,
  snapped,
  touches,
  zoomed,
} from '../map/geometry.ts'
import { mayEdit } from '../state/session.ts'

/** Movement below this is a click, pixels of the window. */
const clickDistance = 4
/** Grid on which dragged nodes stay, pixels of the map. */
const grid = 10

/** What the pointer is doing. Coordinates are those of the window, except where a comment says otherwise. */
type Gesture =
  | { readonly kind: 'pan'; last: Point; readonly start: Point; readonly opensMenu: boolean }
  | { readonly kind: 'marquee'; readonly from: Point; readonly before: ReadonlySet<string> }
  | {
      readonly kind: 'move'
      readonly from: Point
      readonly positions: ReadonlyMap<string, Point>
      readonly wasSelected: boolean
      readonly id: string
      isMoving: boolean
    }
  | { readonly kind: 'link'; readonly start: Point }
  /** A corner of a drawing is pulled; `fixed` is the opposite one, on the map. */
  | { readonly kind: 'resize'; readonly id: string; readonly shape: Shape; readonly fixed: Point }
  | { readonly kind: 'pinch'; distance: number; middle: Point }

/** Turns what the pointer does on the map into selections and edits. */
export class Gestures {
  /** The rectangle that selects, on the map. */
  readonly marquee = signal<Box | undefined>(undefined)
  /** Where the pointer is, on the map, while a link is drawn. */
  readonly pointer = signal<Point | undefined>(undefined)
  /** The node below the pointer. */
  readonly hovered = signal<string | undefined>(undefined)
  /** Whether the space bar is held down: a drag then moves the map. */
  readonly isSpaceHeld = signal(false)
  readonly #window: LabWindow
  readonly #touches = new Map<number, Point>()
  #gesture: Gesture | undefined
  /** Whether the focus comes by the pointer: it then selects nothing. */
  #isPressed = false

  constructor(window: LabWindow) {
    this.#window = window
  }

  down(event: PointerEvent, at: Point): void {
    const { editor, view, newLink } = this.#window
    const { node, link, handle, drawing, corner } = targetOf(event)
    const svg = event.currentTarget as Element
    this.#isPressed = true
    if (event.pointerType === 'touch' && this.#touch(event, at)) return
    const isPan = event.button === 1 || event.button === 2 || event.altKey || this.isSpaceHeld.value
    // Not for a node or a link: they would get no focus and no double click.
    if (isPan || handle !== undefined || corner !== undefined || (node ?? link ?? drawing) === undefined)
      svg.setPointerCapture(event.pointerId)
    // On some systems the menu comes with the press, and the drag of the right button would move the map below it.
    if (newLink.value !== undefined && event.button === 0 && (node !== undefined || !isPan)) {
      // A link that the keyboard or a menu began ends at the node that is clicked.
      if (node === undefined) newLink.value = undefined
      else this.#connect(node, event)
    } else if (isPan) this.#gesture = { kind: 'pan', last: at, start: at, opensMenu: event.button === 2 }
    else if (handle !== undefined) {
      this.#window.connectFrom(handle)
      this.pointer.value = onMap(view.value, at)
      this.#gesture = { kind: 'link', start: at }
    } else if (corner !== undefined) this.#gesture = this.#resizeAt(corner)
    else if (node !== undefined || drawing !== undefined) {
      const id = node ?? drawing ?? ''
      void editor.moves.endNudge()
      const wasSelected = editor.selection.value.has(id)
      if (event.shiftKey || event.ctrlKey) editor.toggle(id)
      else if (!wasSelected) editor.select([id])
      const positions = new Map(mayEdit() ? editor.movable.map((it) => [it, editor.moves.positionOf(it).value]) : [])
      this.#gesture = { kind: 'move', from: at, positions, wasSelected, id, isMoving: false }
    } else if (link !== undefined) {
      if (event.shiftKey || event.ctrlKey) editor.toggle(link)
      else editor.select([link])
    } else if (event.pointerType === 'touch') this.#gesture = { kind: 'pan', last: at, start: at, opensMenu: false }
    else {
      const before = event.shiftKey ? editor.selection.value : new Set<string>()
      this.#gesture = { kind: 'marquee', from: onMap(view.value, at), before }
    }
  }

  move(event: PointerEvent, at: Point): void {
    const { editor, view, newLink } = this.#window
    const gesture = this.#gesture
    if (newLink.value !== undefined && newLink.value.to === undefined) this.pointer.value = onMap(view.value, at)
    if (event.pointerType === 'mouse' && gesture === undefined) this.hovered.value = targetOf(event).node
    if (gesture === undefined) return
    // It was released outside of the map.
    if (event.pointerType === 'mouse' && event.buttons === 0) return this.up(event, at)
    switch (gesture.kind) {
      case 'pan': {
        if (gesture.opensMenu && distanceOf(at, gesture.start) < clickDistance) return
        const { at: old, scale } = view.value
        view.value = {
          scale,
          at: { x: old.x - (at.x - gesture.last.x) / scale, y: old.y - (at.y - gesture.last.y) / scale },
        }
        gesture.last = at
        return
      }
      case 'marquee': {
        const box = boxBetween(gesture.from, onMap(view.value, at))
        this.marquee.value = box
        const inside = editor.store.nodes.values().filter((it) => touches(it, box))
        const drawn = editor.store.drawings.values().filter((it) => contains(box, { ...it, ...sizeOf(it.svg) }))
        editor.select([...gesture.before, ...inside.map((it) => it.node_id), ...drawn.map((it) => it.drawing_id)])
        return
      }
      case 'move': {
        const [dx, dy] = [at.x - gesture.from.x, at.y - gesture.from.y]
        if (!gesture.isMoving && Math.hypot(dx, dy) < clickDistance) return
        if (!gesture.isMoving) (event.currentTarget as Element).setPointerCapture(event.pointerId)
        gesture.isMoving = true
        this.hovered.value = undefined
        const { scale } = view.value
        const positions = [...gesture.positions].map(([id, { x, y }]) => {
          const position = { x: x + dx / scale, y: y + dy / scale }
          return [id, event.altKey ? position : snapped(position, grid)] as const
        })
        return editor.moves.drag(new Map(positions))
      }
      case 'resize': {
        const { id, shape, fixed } = gesture
        const point = onMap(view.value, at)
        const box = boxBetween(fixed, event.altKey ? point : snapped(point, grid))
        const next = withSize(shape, box)
        // A side has a least length, a text its own proportions: the opposite corner stays.
        const x = box.x < fixed.x ? fixed.x - next.width : fixed.x
        const y = box.y < fixed.y ? fixed.y - next.height : fixed.y
        editor.resized.value = { id, shape: next, x, y }
        return
      }
      case 'pinch':
        return this.#pinch(event, at, gesture)
    }
  }

  up(event: PointerEvent, at: Point): void {
    const { editor } = this.#window
    const gesture = this.#gesture
    this.#touches.delete(event.pointerId)
    this.#gesture = undefined
    this.#isPressed = false
    this.marquee.value = undefined
    if (gesture?.kind === 'pan') {
      if (gesture.opensMenu && distanceOf(at, gesture.start) < clickDistance) this.#openMenu(event, at)
    } else if (gesture?.kind === 'link') {
      // The pointer is captured: what is below it is asked of the document.
      const below = document.elementFromPoint(event.clientX, event.clientY)
      const node = below?.closest<SVGElement>('[data-node]')?.dataset.node
      const isClick = distanceOf(at, gesture.start) < clickDistance
      // After a click on a dot the link goes on to the next click.
      if (isClick) return
      if (node === undefined) this.#window.newLink.value = undefined
      else this.#connect(node, event)
    } else if (gesture?.kind === 'move') {
      if (gesture.isMoving) void editor.moves.drop()
      else if (!event.shiftKey && !event.ctrlKey && gesture.wasSelected) editor.select([gesture.id])
    } else if (gesture?.kind === 'resize') void editor.endResize()
    else if (gesture?.kind === 'marquee') {
      const end = onMap(this.#window.view.value, at)
      const isClick = Math.hypot(end.x - gesture.from.x, end.y - gesture.from.y) < clickDistance
      // A drag over a drawing draws the rectangle that selects, so that nodes on it can be selected. A click selects the drawing.
      const below = editor.store.drawings
        .values()
        .findLast((it) => contains({ ...it, ...sizeOf(it.svg) }, { ...end, width: 0, height: 0 }))
      if (isClick && gesture.before.size === 0) editor.select(below === undefined ? [] : [below.drawing_id])
    }
  }

  cancel(): void {
    if (this.#gesture?.kind === 'move') this.#window.editor.moves.cancelDrag()
    this.#window.editor.resized.value = undefined
    this.#gesture = undefined
    this.#isPressed = false
    this.#touches.clear()
    this.marquee.value = undefined
  }

  leave(): void {
    this.hovered.value = undefined
  }

  doubleClick(event: MouseEvent): void {
    const { node, link, drawing } = targetOf(event)
    if (!mayEdit()) return
    if (drawing !== undefined) this.#window.focusOn('drawing-text')
    else if (node !== undefined) this.#window.openConsoles([node])
    else if (link !== undefined) this.#window.dock.open(link)
  }

  /** A long press of a finger. The mouse opens the menu when its button is released, and keys by their command. */
  contextMenu(event: MouseEvent, at: Point): void {
    event.preventDefault()
    if (!(event instanceof PointerEvent) || event.pointerType !== 'touch') return
    this.cancel()
    this.#openMenu(event, at)
  }

  #openMenu(event: MouseEvent, at: Point): void {
    // The pointer may be captured by the map: what is below it is asked of the document.
    const found = objectAt(document.elementFromPoint(event.clientX, event.clientY))
    const on = onMap(this.#window.view.value, at)
    this.#window.openMenu(
      { subject: found?.subject ?? 'map', at: { x: event.clientX, y: event.clientY }, on },
      found?.id,
    )
  }

  /** The keyboard goes from node to node: what has the focus is selected. */
  focus(event: FocusEvent): void {
    if (this.#isPressed) return
    const { node, link, drawing } = targetOf(event)
    const { editor, newLink } = this.#window
    const id = node ?? link ?? drawing
    if (id === undefined) return
    if (newLink.value === undefined) editor.select([id])
    else if (node !== undefined) this.pointer.value = centreOf(editor.moves.positionOf(node).value)
  }

  /** Begins to pull a corner of the selected drawing, such as `ne`. */
  #resizeAt(corner: string): Gesture | undefined {
    const [drawing] = this.#window.editor.selectedDrawings
    const shape = drawing && shapeOf(drawing.svg)
    if (drawing === undefined || shape === undefined) return undefined
    const fixed = {
      x: drawing.x + (corner.includes('w') ? shape.width : 0),
      y: drawing.y + (corner.includes('n') ? shape.height : 0),
    }
    return { kind: 'resize', id: drawing.drawing_id, shape, fixed }
  }

  /** Ends the link that is being drawn at a node; with Alt by the first free ports. */
  #connect(node: string, { clientX, clientY, altKey }: PointerEvent): void {
    // The line stays at the node while its ports are chosen.
    this.pointer.value = centreOf(this.#window.editor.moves.positionOf(node).value)
    this.#window.connectTo(node, { x: clientX, y: clientY }, altKey)
  }

  /** The second finger zooms. */
  #touch(event: PointerEvent, at: Point): boolean {
    this.#touches.set(event.pointerId, at)
    const [a, b, ...more] = [...this.#touches.values()]
    if (a === undefined || b === undefined || more.length > 0) return false
    if (this.#gesture?.kind === 'move') this.#window.editor.moves.cancelDrag()
    this.#gesture = { kind: 'pinch', distance: Math.hypot(a.x - b.x, a.y - b.y), middle: middleOf(a, b) }
    return true
  }

  #pinch(event: PointerEvent, at: Point, gesture: Extract<Gesture, { kind: 'pinch' }>): void {
    this.#touches.set(event.pointerId, at)
    const [a, b] = [...this.#touches.values()]
    if (a === undefined || b === undefined) return
    const [distance, middle] = [Math.hypot(a.x - b.x, a.y - b.y), middleOf(a, b)]
    const { view } = this.#window
    const { at: old, scale } = view.value
    const moved = {
      x: old.x - (middle.x - gesture.middle.x) / scale,
      y: old.y - (middle.y - gesture.middle.y) / scale,
    }
    view.value = zoomed({ scale, at: moved }, distance / gesture.distance, middle)
    gesture.distance = distance
    gesture.middle = middle
  }
}

const middleOf = (a: Point, b: Point): Point => ({ x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 })

const distanceOf = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y)

const targets = ['node', 'link', 'handle', 'drawing', 'corner'] as const

/** What an event on the map is about. */
function targetOf({ target }: Event): { readonly [K in (typeof targets)[number]]?: string } {
  const element = target instanceof Element ? target : null
  const found = targets.map((name) => [name, element?.closest<SVGElement>(`[data-${name}]`)?.dataset[name]] as const)
  return Object.fromEntries(found.filter(([, id]) => id !== undefined))
}
