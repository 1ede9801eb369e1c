import type { Point } from '../map/geometry.ts'

type Positions = ReadonlyMap<string, Point>

/** Puts nodes into a row (`y`) or a column (`x`): their middle stays. */
export function aligned(positions: Positions, axis: 'x' | 'y'): Map<string, Point> {
  const values = [...positions.values()].map((it) => it[axis])
  const middle = Math.round(values.reduce((sum, it) => sum + it, 0) / Math.max(1, values.length))
  return new Map([...positions].map(([id, position]) => [id, { ...position, [axis]: middle }]))
}

/** Puts the same distance between nodes, along the axis on which they are further apart: the outer ones stay. */
export function distributed(positions: Positions): Map<string, Point> {
  const extent = (axis: 'x' | 'y') => {
    const values = [...positions.values()].map((position) => position[axis])
    return Math.max(...values) - Math.min(...values)
  }
  const axis = extent('x') >= extent('y') ? 'x' : 'y'
  const sorted = [...positions].toSorted(([, a], [, b]) => a[axis] - b[axis])
  const first = sorted[0]?.[1][axis] ?? 0
  const step = extent(axis) / Math.max(1, sorted.length - 1)
  return new Map(sorted.map(([id, position], index) => [id, { ...position, [axis]: Math.round(first + index * step) }]))
}
