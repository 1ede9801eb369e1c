import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } from 'd3-force'

/** A point on the map, in its pixels. */
interface Point {
  readonly x: number
  readonly y: number
}

/** A node that is arranged. One that is fixed keeps its position, and the others are placed around it. */
export interface ArrangedNode extends Point {
  readonly id: string
  readonly isFixed?: boolean
}

/** Steps of the simulation: in 300 it cools down. With very many nodes there are fewer, so that it ends soon. */
const [most, least, stepsOfAll] = [300, 30, 60_000]
/** What is left of the heat of the simulation at its end. */
const coldness = 0.001
/** Length of a link, and the space of a node, pixels. */
const [length, space] = [150, 75]
/** Grid of the positions. */
const grid = 10

/** Positions for nodes, by their links. The result depends on the lab only: the simulation starts from its present positions. */
export function arranged(
  nodes: readonly ArrangedNode[],
  links: readonly (readonly [from: string, to: string])[],
): Map<string, Point> {
  const indexes = new Map(nodes.map(({ id }, index) => [id, index]))
  // In one order, whatever that of the links is: sums of fractions depend on it.
  const known = links
    .map(([a, b]) => ({ a: indexes.get(a) ?? -1, b: indexes.get(b) ?? -1 }))
    .map(({ a, b }) => ({ source: Math.min(a, b), target: Math.max(a, b) }))
    .filter(({ source, target }) => source >= 0 && source !== target)
    .sort((a, b) => a.source - b.source || a.target - b.target)
  const [x, y] = [mean(nodes.map((it) => it.x)), mean(nodes.map((it) => it.y))]
  const moved = nodes.map(({ isFixed, ...node }) => ({ ...node, ...(isFixed === true && { fx: node.x, fy: node.y }) }))
  const steps = Math.max(least, Math.min(most, Math.round(stepsOfAll / nodes.length)))
  const simulation = forceSimulation(moved)
    .alphaDecay(1 - coldness ** (1 / steps))
    .force('link', forceLink<(typeof moved)[number], (typeof known)[number]>(known).distance(length))
    .force('apart', forceManyBody().strength(-900))
    .force('space', forceCollide(space))
    .force('x', forceX(x).strength(0.05))
    .force('y', forceY(y).strength(0.05))
    .stop()
  simulation.tick(steps)
  return new Map(
    moved.flatMap(({ id, x, y }, index) =>
      nodes[index]?.isFixed === true ? [] : [[id, { x: onGrid(x), y: onGrid(y) }] as const],
    ),
  )
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
const onGrid = (value: number): number => Math.round(value / grid) * grid
