import { forceCollide, forceLink, forceManyBody, forceX, forceY, type SimulationNodeDatum } from 'd3-force'

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
/** What is left of the speed of a node after a step. */
const left = 0.6
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
  const moved = nodes.map(({ isFixed, ...node }, index) => ({
    ...node,
    index,
    vx: 0,
    vy: 0,
    ...(isFixed === true && { fx: node.x, fy: node.y }),
  }))
  simulate(moved, [
    forceLink<Moved, { source: number; target: number }>(known).distance(length),
    forceManyBody<Moved>().strength(-900),
    forceCollide<Moved>(space),
    forceX<Moved>(x).strength(0.05),
    forceY<Moved>(y).strength(0.05),
  ])
  return new Map(
    moved.flatMap(({ id, x, y }, index) =>
      nodes[index]?.isFixed === true ? [] : [[id, { x: onGrid(x), y: onGrid(y) }] as const],
    ),
  )
}

type Moved = SimulationNodeDatum & { x: number; y: number; vx: number; vy: number }
interface Force {
  (alpha: number): void
  initialize?(nodes: Moved[], random: () => number): void
}

/** Moves nodes by forces until they have cooled down, as the simulation of d3-force does: without its timer and its events. */
function simulate(nodes: Moved[], forces: readonly Force[]): void {
  const steps = Math.max(least, Math.min(most, Math.round(stepsOfAll / nodes.length)))
  const random = sameNumbers()
  for (const force of forces) force.initialize?.(nodes, random)
  let alpha = 1
  for (let count = 0; count < steps; count++) {
    alpha *= coldness ** (1 / steps)
    for (const force of forces) force(alpha)
    for (const node of nodes) {
      node.vx = node.fx == null ? node.vx * left : 0
      node.vy = node.fy == null ? node.vy * left : 0
      node.x = node.fx ?? node.x + node.vx
      node.y = node.fy ?? node.y + node.vy
    }
  }
}

/** Numbers from 0 to 1, the same ones each time: they part nodes at one point (a linear congruential generator). */
function sameNumbers(): () => number {
  let state = 1
  return () => {
    state = (1664525 * state + 1013904223) % 2 ** 32
    return state / 2 ** 32
  }
}

const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length)
const onGrid = (value: number): number => Math.round(value / grid) * grid
