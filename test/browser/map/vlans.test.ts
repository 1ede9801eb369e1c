import { expect, test } from 'vitest'
import { portLabel, vlanOfLink } from '../../../runtime/browser/map/vlans.ts'
import type { LabLink, LabNode } from '../../../src/client/patchbay.ts'

const port = (port_number: number, type: string, vlan: number) => ({ port_number, type, vlan })
const node = (node_id: string, ports_mapping: unknown[]) =>
  ({
    node_id,
    properties: { ports_mapping },
    ports: [0, 1, 2, 3].map((number) => ({ adapter_number: 0, port_number: number, short_name: `e${number}` })),
  }) as unknown as LabNode
const at = (port_number: number, node_id = 'sw') => ({ node_id, adapter_number: 0, port_number })
const sw = node('sw', [port(0, 'access', 10), port(1, 'dot1q', 1), port(2, 'dot1q', 99), port(3, 'qinq', 20)])

test('the VLAN stands at each port of a switch that has VLANs', () => {
  expect([0, 1, 2, 3].map((number) => portLabel(sw, at(number)))).toEqual([
    'e0 · v10',
    'e1 · trunk',
    'e2 · trunk v99',
    'e3 · qinq 20',
  ])
})

test('a switch whose ports all have the usual VLAN, and other nodes, show ports alone', () => {
  expect(portLabel(node('sw', [port(0, 'access', 1), port(1, 'access', 1)]), at(1))).toBe('e1')
  expect(portLabel(node('cloud', [{ port_number: 0, type: 'ethernet' }]), at(0))).toBe('e0')
  expect(portLabel(undefined, at(3))).toBe('0/3')
})

test('the VLAN of a link is that of its access port', () => {
  const link = (number: number) => ({ nodes: [at(0, 'pc'), at(number)] }) as unknown as LabLink
  const vlans = [0, 1].map((number) => vlanOfLink(link(number), (id) => (id === 'sw' ? sw : undefined)))
  expect(vlans).toEqual([10, 'trunk'])
  expect(vlanOfLink(link(0), () => undefined)).toBeUndefined()
})
