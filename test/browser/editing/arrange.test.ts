import { expect, test } from 'vitest'
import { aligned, distributed } from '../../../runtime/browser/editing/align.ts'
import { linksBetween, matches } from '../../../runtime/browser/editing/bulk-links.ts'
import type { LabNode } from '../../../src/client/patchbay.ts'
import { arranged } from '../../../src/labfile/arrange.ts'

const places = new Map([
  ['a', { x: 0, y: 10 }],
  ['b', { x: 300, y: 50 }],
  ['c', { x: 100, y: 0 }],
])

test('nodes are put into a row or a column, and apart', () => {
  expect([...aligned(places, 'y').values()].map(({ x, y }) => [x, y])).toEqual([
    ...[
      [0, 20],
      [300, 20],
      [100, 20],
    ],
  ])
  expect([...aligned(places, 'x').values()].every(({ x }) => x === 133)).toBe(true)
  expect(distributed(places).get('c')).toEqual({ x: 150, y: 0 })
  expect(distributed(places).get('b')).toEqual({ x: 300, y: 50 })
})

test('an arranged lab has its nodes apart, and the same places each time', () => {
  const nodes = Array.from({ length: 12 }, (_, index) => ({ id: `n${index}`, x: 0, y: 0 }))
  const links = nodes.slice(1).map(({ id }) => ['n0', id] as const)
  const found = arranged(nodes, links)
  expect(found).toEqual(arranged(nodes, links))
  const all = [...found.values()]
  for (const a of all) for (const b of all) if (a !== b) expect(Math.hypot(a.x - b.x, a.y - b.y)).toBeGreaterThan(80)
  expect(arranged([], [])).toEqual(new Map())
})

const node = (name: string, count: number): LabNode => {
  const ports = Array.from({ length: count }, (_, port_number) => ({
    adapter_number: 0,
    port_number,
    link_type: 'ethernet',
  }))
  return { node_id: name, name, ports } as unknown as LabNode
}

test('patterns link each node with each other one, as long as there are ports', () => {
  const nodes = [node('leaf1', 3), node('leaf2', 1), node('Spine1', 8), node('spine2', 8)]
  const { ends, reasons } = linksBetween(nodes, [], ['leaf*', 'spine?'])
  expect(ends.map((it) => it.map((end) => `${end.node_id}:${end.port_number}`).join(' '))).toEqual([
    ...['leaf1:0 Spine1:0', 'leaf1:1 spine2:0', 'leaf2:0 Spine1:1'],
  ])
  expect(reasons).toEqual(['leaf2 has no free port: delete one of its links first.'])
  expect(linksBetween(nodes, [], ['leaf*', 'leaf*']).ends).toHaveLength(1)
  expect([matches('a.b', 'a.b'), matches('aXb', 'a.b'), matches('[x]', '[x]'), matches('x', '')]).toEqual([
    ...[true, false, true, false],
  ])
})
