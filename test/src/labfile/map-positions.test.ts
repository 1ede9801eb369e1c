import { expect, test } from 'vitest'
import { arranged } from '../../../src/labfile/arrange.ts'
import { mapPositions } from '../../../src/labfile/map-positions.ts'
import { readLabFile } from '../../../src/labfile/read.ts'

interface Point {
  readonly x: number
  readonly y: number
}
const far = (a: Point, b: Point): number => Math.hypot(a.x - b.x, a.y - b.y)

/** Distances of all pairs. */
const distances = (points: readonly Point[]): number[] =>
  points.flatMap((one, index) => points.slice(index + 1).map((other) => far(one, other)))

/** Two switches, each with its PCs, in an order that mixes them. */
const twoSites = (more = '') => `lab: sites
nodes:
  A1: { kind: pc }
  B1: { kind: pc }
  A2: { kind: pc${more} }
  B2: { kind: pc }
  A3: { kind: pc }
  B3: { kind: pc }
segments:
  SA: { kind: switch, members: [A1, A2, A3] }
  SB: { kind: switch, members: [B1, B2, B3] }
links:
  - [SA:9, SB:9]
`

test('nodes without a position are arranged by their links, as the page arranges them', async () => {
  const file = await readLabFile(twoSites())
  const places = mapPositions(file)
  expect(Math.min(...distances([...places.values()]))).toBeGreaterThan(100)
  const at = (name: string) => places.get(name) ?? { x: Number.NaN, y: 0 }
  for (const site of ['a', 'b'])
    for (const number of [1, 2, 3]) {
      const pc = at(`${site}${number}`)
      expect(far(pc, at(`s${site}`))).toBeLessThan(far(pc, at(site === 'a' ? 'sb' : 'sa')))
    }
  // The same places each time, whatever the order of the links is.
  expect(mapPositions({ nodes: file.nodes, links: file.links.toReversed() })).toEqual(places)
  const pairs = file.links.map(({ ends: [a, b] }) => [a.node.toLowerCase(), b.node.toLowerCase()] as const)
  const again = arranged(
    [...places].map(([id, position]) => ({ id, ...position })),
    pairs,
  )
  const shape = (points: ReadonlyMap<string, Point>) => distances([...points.values()])
  for (const [index, distance] of shape(again).entries())
    expect(Math.abs(distance - (shape(places)[index] ?? 0))).toBeLessThan(60)
})

test('nodes that have a position keep it, and the others cover none of them', async () => {
  const file = await readLabFile(twoSites(', at: [500, 40]'))
  const places = mapPositions(file, new Map([['sa', { x: 300, y: 40 }]]))
  expect([...places.keys()].sort()).toEqual(['a1', 'a3', 'b1', 'b2', 'b3', 'sb'])
  const all = [...places.values(), { x: 500, y: 40 }, { x: 300, y: 40 }]
  expect(Math.min(...distances(all))).toBeGreaterThan(80)
  expect(far(places.get('a1') ?? { x: Number.NaN, y: 0 }, { x: 300, y: 40 })).toBeLessThan(300)
})

test('a lab of thousands of nodes is placed at once', async () => {
  const nodes = Array.from({ length: 3000 }, (_, index) => `  N${index}: { kind: pc }`)
  const file = await readLabFile(`lab: many\nnodes:\n${nodes.join('\n')}\n`)
  expect(new Set([...mapPositions(file).values()].map(({ x, y }) => `${x} ${y}`)).size).toBe(3000)
})
