/** A point on the map, in its pixels. */
export interface Point {
  readonly x: number
  readonly y: number
}

/** A rectangle on the map, from its upper left corner. */
export interface Box extends Point {
  readonly width: number
  readonly height: number
}

/** How the map is seen: `at` is the point at the upper left corner of the window, `scale` 1 is its own size. */
export interface View {
  readonly at: Point
  readonly scale: number
}

/** Side of the tile of a node. A node's own point is its upper left corner. */
export const tile = 64
const gap = 26
const [minScale, maxScale] = [0.1, 4]

export const centreOf = ({ x, y }: Point): Point => ({ x: x + tile / 2, y: y + tile / 2 })

/** The point on the map below a point in the window. */
export const onMap = ({ at, scale }: View, { x, y }: Point): Point => ({ x: at.x + x / scale, y: at.y + y / scale })

/** The view after a zoom by `factor`, with the point below `fixed` (of the window) where it was. */
export function zoomed(view: View, factor: number, fixed: Point): View {
  const scale = Math.min(maxScale, Math.max(minScale, view.scale * factor))
  const below = onMap(view, fixed)
  return { scale, at: { x: below.x - fixed.x / scale, y: below.y - fixed.y / scale } }
}

/** Room that the buttons at the right edge of the map take, pixels. */
const besideButtons = 52

/** The view that shows a box in a window of that size, with a margin, which is less in a small one; never larger than the map itself. */
export function fitted(box: Box, window: { readonly width: number; readonly height: number }): View {
  const margin = Math.min(60, window.width / 15)
  const right = Math.max(margin, besideButtons)
  const scale = Math.max(
    minScale,
    Math.min(1, (window.width - margin - right) / box.width, (window.height - 2 * margin) / box.height),
  )
  return {
    scale,
    at: {
      x: box.x + box.width / 2 - (window.width + margin - right) / scale / 2,
      y: box.y + box.height / 2 - window.height / scale / 2,
    },
  }
}

/** The box around nodes at these points, with their names; undefined without nodes. */
export function boxOf(points: readonly Point[]): Box | undefined {
  if (points.length === 0) return undefined
  const box = boxAround(points)
  return { ...box, height: box.height + 25 }
}

/** The smallest box around the tiles at these points. */
export function boxAround(points: readonly Point[]): Box {
  const [xs, ys] = [points.map(({ x }) => x), points.map(({ y }) => y)]
  const [x, y] = [Math.min(...xs), Math.min(...ys)]
  return { x, y, width: Math.max(...xs) - x + tile, height: Math.max(...ys) - y + tile }
}

/** Whether a box is wholly within another one. */
export const contains = (outer: Box, inner: Box): boolean =>
  outer.x <= inner.x &&
  outer.y <= inner.y &&
  outer.x + outer.width >= inner.x + inner.width &&
  outer.y + outer.height >= inner.y + inner.height

/** The smallest box around boxes; undefined without one. */
export function boxOfAll(boxes: readonly Box[]): Box | undefined {
  if (boxes.length === 0) return undefined
  const [x, y] = [Math.min(...boxes.map((it) => it.x)), Math.min(...boxes.map((it) => it.y))]
  const right = Math.max(...boxes.map((it) => it.x + it.width))
  return { x, y, width: right - x, height: Math.max(...boxes.map((it) => it.y + it.height)) - y }
}

/** Whether two boxes have a part in common. */
export const overlaps = (a: Box, b: Box): boolean =>
  a.x < b.x + b.width && a.x + a.width > b.x && a.y < b.y + b.height && a.y + a.height > b.y

/** The part of the map in a window, and somewhat more: it changes only when a view has moved by a cell. */
export function regionIn(
  { at, scale }: View,
  window: { readonly width: number; readonly height: number },
  cell = 512,
): Box {
  const [left, top] = [Math.floor(at.x / cell) - 1, Math.floor(at.y / cell) - 1]
  const right = Math.ceil((at.x + window.width / scale) / cell) + 1
  const bottom = Math.ceil((at.y + window.height / scale) / cell) + 1
  return { x: left * cell, y: top * cell, width: (right - left) * cell, height: (bottom - top) * cell }
}

/** The box between two corners. */
export const boxBetween = (a: Point, b: Point): Box => ({
  x: Math.min(a.x, b.x),
  y: Math.min(a.y, b.y),
  width: Math.abs(a.x - b.x),
  height: Math.abs(a.y - b.y),
})

/** Whether the tile of a node touches a box. */
export const touches = ({ x, y }: Point, box: Box): boolean => overlaps({ x, y, width: tile, height: tile }, box)

/** Position of a link among those between the same two nodes. */
export interface Strand {
  readonly index: number
  readonly count: number
}

/** The line of a link, from the centre of a node to that of another; several links between two nodes are bowed apart. */
export interface Line {
  readonly from: Point
  readonly to: Point
  /** The control point of its curve (SVG 2, 9.3.7); undefined: it is straight. */
  readonly bend?: Point
}

export function lineBetween(a: Point, b: Point, { index, count }: Strand): Line {
  const [from, to] = [centreOf(a), centreOf(b)]
  const offset = (index - (count - 1) / 2) * gap * 2
  if (offset === 0) return { from, to }
  const [dx, dy] = [to.x - from.x, to.y - from.y]
  const length = Math.hypot(dx, dy) || 1
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 }
  return { from, to, bend: { x: middle.x - (dy / length) * offset, y: middle.y + (dx / length) * offset } }
}

/** The line as the data of an SVG path. */
export const pathOf = ({ from, to, bend }: Line): string =>
  bend === undefined
    ? `M${from.x} ${from.y}L${to.x} ${to.y}`
    : `M${from.x} ${from.y}Q${bend.x} ${bend.y} ${to.x} ${to.y}`

/** The point at a part `t` (0 to 1) of the line. */
export function along({ from, to, bend }: Line, t: number): Point {
  if (bend === undefined) return { x: from.x + (to.x - from.x) * t, y: from.y + (to.y - from.y) * t }
  const [a, b, c] = [(1 - t) ** 2, 2 * t * (1 - t), t ** 2]
  return { x: a * from.x + b * bend.x + c * to.x, y: a * from.y + b * bend.y + c * to.y }
}

/** Half of the width of a character at a port, pixels of the map. */
const halfCharacter = 3
/** Space around a tile that names of ports leave free: half of its width, above it, and below it with its name. */
const reserved = { side: tile / 2 + 14, above: tile / 2 + 12, below: tile / 2 + 38 }

/**
 * The points for the texts at the two ports: beside the tiles and the names below them, or closer on a short line. A text of more characters
 * than `e0` is wider to both sides of its point.
 */
export function labelPoints(line: Line, [first = '', second = '']: readonly string[] = []): readonly [Point, Point] {
  const { from, to, bend } = line
  const part = (end: Point, other: Point, text: string) => {
    const [dx, dy] = [other.x - end.x, other.y - end.y]
    const across = (reserved.side + Math.max(0, text.length - 2) * halfCharacter) / (Math.abs(dx) || 1)
    const down = (dy > 0 ? reserved.below : reserved.above) / (Math.abs(dy) || 1)
    // A bowed line begins twice as steep as it goes on (the derivative of the curve at its end).
    return Math.min(0.4, bend === undefined ? Math.min(across, down) : Math.min(across, down) / 2)
  }
  return [along(line, part(from, bend ?? to, first)), along(line, 1 - part(to, bend ?? from, second))]
}

/** The next point of a grid. */
export const snapped = ({ x, y }: Point, grid: number): Point => ({
  x: Math.round(x / grid) * grid,
  y: Math.round(y / grid) * grid,
})
