import { expect, test } from 'vitest'
import { movedPorts, relinked } from '../../../runtime/browser/editing/replace-node.ts'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'

const port = (adapter_number: number, link_type = 'ethernet', name = `${link_type}-${adapter_number}-`) => ({
  ...{ adapter_number, port_number: 0, link_type, name, short_name: name },
})
const named = (...names: string[]) => names.map((name, index) => port(index, 'ethernet', name))
const node = (node_id: string, ...ports: object[]) => ({ node_id, ports }) as unknown as LabNode
const link = (link_id: string, ...ends: [string, number][]) =>
  ({
    link_id,
    link_type: 'ethernet',
    nodes: ends.map(([node_id, adapter_number]) => ({ node_id, adapter_number, port_number: 0 })),
  }) as unknown as LabLink

test('the links of a replaced node go to the first ports of the new one, in the order of the old ports', () => {
  const old = node('old', port(0), port(1), port(2))
  const links = [link('c', ['old', 2], ['x', 0]), link('a', ['y', 1], ['old', 0])]
  const moved = relinked(old, node('new', port(5, 'serial'), port(6), port(7)), links)
  expect(
    moved.map(({ link: { link_id }, ends }) => [link_id, ends.map((end) => `${end.node_id}:${end.adapter_number}`)]),
  ).toEqual([
    ['a', ['y:1', 'new:6']],
    ['c', ['new:7', 'x:0']],
  ])
})

test('links for which there are no ports are left out, and one between two ports of the node needs both', () => {
  const old = node('old', port(0), port(1), port(2))
  const links = [link('a', ['old', 0], ['old', 1]), link('b', ['old', 2], ['x', 0])]
  const moved = relinked(old, node('new', port(0)), links)
  expect(moved.map(({ link: { link_id } }) => link_id)).toEqual(['b'])
})

test.for([
  ['the same names, in any order', ['eth1', 'eth2'], ['eth2', 'lo', 'eth1'], ['eth1', 'eth2'], []],
  ['the same numbers', ['eth1', 'eth2'], ['Ethernet0', 'Ethernet1', 'Ethernet2'], ['Ethernet1', 'Ethernet2'], []],
  ['numbers of a slot', ['Gi0/1'], ['Ethernet0/0', 'Ethernet0/1'], ['Ethernet0/1'], []],
  [
    'the order, where it does not have all numbers, which is said',
    ['eth1', 'eth2'],
    ['Ethernet0', 'Ethernet1'],
    ['Ethernet0', 'Ethernet1'],
    ['eth1 is now Ethernet0', 'eth2 is now Ethernet1'],
  ],
] as const)('links go to the ports of %s', ([, before, after, wanted, said]) => {
  const [old, by] = [node('old', ...named(...before)), node('new', ...named(...after))]
  const links = before.map((name, index) => link(name, ['old', index], [`x${index}`, 0]))
  const moved = relinked(old, by, links)
  expect(moved.map(({ ends: [end] }) => by.ports[end.adapter_number]?.name)).toEqual(wanted)
  expect(movedPorts(old, by, moved)).toEqual(said)
})
