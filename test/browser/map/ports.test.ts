import { expect, test } from 'vitest'
import { endsFor, freePorts, portName } from '../../../runtime/browser/map/ports.ts'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'

const port = (adapter_number: number, link_type: 'ethernet' | 'serial' = 'ethernet') => ({
  ...{ name: `Ethernet${adapter_number}`, short_name: `e${adapter_number}`, adapter_number, port_number: 0, link_type },
  data_link_types: {},
})
const node = (node_id: string, ports: LabNode['ports']) => ({ node_id, name: node_id, ports }) as LabNode
const end = (node_id: string, adapter_number: number) => ({ node_id, adapter_number, port_number: 0 })
const link = (a: ReturnType<typeof end>, b: ReturnType<typeof end>) => ({ nodes: [a, b] }) as LabLink

test('a new link takes the first free ports', () => {
  const [a, b] = [node('A', [port(0), port(1)]), node('B', [port(0)])]
  expect(endsFor(a, b, [])).toEqual({ ends: [end('A', 0), end('B', 0)] })
  const links = [link(end('A', 0), end('C', 0))]
  expect(freePorts(a, links).map(({ name }) => name)).toEqual(['Ethernet1'])
  expect(endsFor(a, b, links)).toEqual({ ends: [end('A', 1), end('B', 0)] })
})

test('a link is of one kind of line, and says when there is none', () => {
  const [a, b] = [node('A', [port(0, 'serial'), port(1)]), node('B', [port(0)])]
  expect(endsFor(a, b, [])).toEqual({ ends: [end('A', 1), end('B', 0)] })
  expect(endsFor(a, b, [], a.ports[0])).toMatchObject({
    reason: expect.stringContaining('no free ports of the same line type'),
  })
  expect(endsFor(a, b, [link(end('B', 0), end('C', 0))])).toMatchObject({
    reason: expect.stringContaining('B has no free port'),
  })
  expect(endsFor(a, a, [])).toHaveProperty('reason')
})

test('a port has the name that its node gives, or its numbers', () => {
  expect(portName(node('A', [port(0)]), end('A', 0))).toBe('Ethernet0')
  expect(portName(undefined, end('A', 3))).toBe('3/0')
})
