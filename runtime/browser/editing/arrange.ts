import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from 'd3-force'
import type { Point } from '../map/geometry.ts'

// Loaded when a lab is arranged first.

/** Steps of the simulation; d3-force cools down in 300. */
const steps = 300
/** Length of a link, and the space of a node, pixels. */
const [length, space] = [150, 75]
/** Grid of the positions. */
const grid = 10

/** Positions for nodes, by their links. The result depends on the lab only: the simulation starts from its present positions. */
export function arranged(
  nodes: readonly ({ readonly id: string } & Point)[],
  links: readonly (readonly [from: string, to: string])[],
): Map<string, Point> {
  const ids = new Set(nodes.map((it) => it.id))
  const known = links.filter(([a, b]) => ids.has(a) && ids.has(b) && a !== b)
  const [x, y] = [mean(nodes.map((it) => it.x)), mean(nodes.map((it) => it.y))]
  const moved = nodes.map(({ id, ...position }) => ({ id, ...position }))
  const simulation = forceSimulation(moved)
    .force(
      'link',
      forceLink<(typeof moved)[number], { source: string; target: string }>(
        known.map(([source, target]) => ({ source, target })),
      )
        .id((it) => it.id)
        .distance(length),
    )
    .force('apart', forceManyBody().strength(-900))
    .force('space', forceCollide(space))
    .force('x', forceX(x).strength(0.05))
    .force('y', forceY(y).strength(0.05))
    .stop()
  simulation.tick(steps)
  return new Map(moved.map((it) => [it.id, { x: onGrid(it.x), y: onGrid(it.y) }]))
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
const onGrid = (value: number): number => Math.round(value / grid) * grid
