import type { Point } from '../map/geometry.ts'

/** What can be selected, as shapes on the map and rows of the list name it. */
const objects = ['node', 'link', 'drawing'] as const
const controls = ['button', 'input', 'select', 'textarea'].map((it) => `${it}:not(:disabled)`).join(', ')

/**
 * Moves the focus to the first control at the right side; from there back to what is selected on the map. By Tab alone the way from a
 * node or a link to its settings goes through others, which would be selected.
 */
export function turnPane(selected: string | undefined): void {
  const side = document.querySelector('.inspector')
  const isThere = side?.contains(document.activeElement) === true
  const wanted = isThere ? shapeOf(selected) : side?.querySelector<HTMLElement>(`${controls}, summary`)
  wanted?.focus()
}

/** The node, link or drawing whose shape has an element. */
export function objectAt(element: Element | null): { subject: (typeof objects)[number]; id: string } | undefined {
  for (const subject of objects) {
    const id = element?.closest<HTMLElement | SVGElement>(`[data-${subject}]`)?.dataset[subject]
    if (id !== undefined) return { subject, id }
  }
  return undefined
}

/** Moves the focus to a node on the map, or in the list, when it is drawn. */
export function focusOnShape(id: string | undefined): void {
  requestAnimationFrame(() => shapeOf(id)?.focus())
}

/** The middle of an element in the window. */
export function middleOf(element: Element | null): Point {
  const { left, top, width, height } = element?.getBoundingClientRect() ?? new DOMRect()
  return { x: left + width / 2, y: top + height / 2 }
}

/** The shape of a node, a link or a drawing, or its row in the list; without one, the first that the keyboard reaches. */
function shapeOf(id = ''): HTMLElement | SVGElement | null {
  const name = CSS.escape(id)
  const shape = objects.map((it) => `:is(button, [role="button"])[data-${it}="${name}"]`).join()
  return document.querySelector<HTMLElement>(shape) ?? document.querySelector('.canvas [role="button"], .list button')
}
