import { arranged } from './arrange.ts'
import type { Desired } from './desired.ts'
import { keyOf } from './names.ts'

/** Distance of nodes on the grid from which an arrangement starts, pixels. */
const gridStep = 120
/** Number of nodes above which they stay on the grid: an arrangement takes too long. */
const mostArranged = 2000

/** A point on the map, in its pixels. */
interface Point {
  readonly x: number
  readonly y: number
}

/**
 * Positions for the nodes without one, by name in lower case: as the page arranges them, by their links, around those that have one. `present`
 * has the positions of the nodes that the lab has already, by the same names.
 */
export function mapPositions(
  { nodes, links }: Pick<Desired, 'nodes' | 'links'>,
  present: ReadonlyMap<string, Point> = new Map(),
): Map<string, Point> {
  const placed = new Map(present)
  for (const { name, settings } of nodes)
    if (settings.x !== undefined || settings.y !== undefined)
      placed.set(keyOf(name), { x: settings.x ?? 0, y: settings.y ?? 0 })
  const without = nodes.map(({ name }) => keyOf(name)).filter((key) => !placed.has(key))
  const onGrid = gridBelow([...placed.values()], without)
  if (without.length === 0 || without.length > mostArranged) return onGrid
  const all = [
    ...[...placed].map(([id, at]) => ({ id, ...at, isFixed: true })),
    ...[...onGrid].map(([id, at]) => ({ id, ...at })),
  ]
  return arranged(
    all,
    links.map(({ ends: [a, b] }) => [keyOf(a.node), keyOf(b.node)] as const),
  )
}

/** Points for nodes on a grid below others, in their order. */
function gridBelow(others: readonly Point[], keys: readonly string[]): Map<string, Point> {
  const columns = Math.max(1, Math.ceil(Math.sqrt(keys.length)))
  const top = others.length === 0 ? 0 : Math.max(...others.map(({ y }) => y)) + gridStep
  return new Map(
    keys.map((key, index) => [
      key,
      { x: gridStep * (index % columns), y: top + gridStep * Math.floor(index / columns) },
    ]),
  )
}
