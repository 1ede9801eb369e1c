import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { inventoryOf } from '../../../../src/labs/export/inventory.ts'
import { inventoryTexts } from '../../../../src/labs/export/inventory-text.ts'
import type { LabLink } from '../../../../src/model/lab/link.ts'
import type { LabNode } from '../../../../src/model/lab/node.ts'

const node = (name: string, node_type: string, more: object = {}): LabNode =>
  ({
    ...{ node_id: name, name, node_type, labels: {}, properties: {} },
    ...{ console: 5000, console_host: '127.0.0.1', console_type: 'telnet', ...more },
  }) as LabNode
const link = (a: string, port: number) =>
  ({
    nodes: [
      { node_id: a, adapter_number: 0, port_number: 0 },
      { node_id: 'net', adapter_number: 0, port_number: port },
    ],
  }) as LabLink

const nat = node('net', 'nat', {
  console_type: 'none',
  properties: {
    management: true,
    guests: [
      { port_number: 3, name: 'web-1', address: '172.20.20.11' },
      { port_number: 4, name: 'R10', address: '172.20.20.12' },
    ],
    port_forwards: [
      { protocol: 'tcp', host_port: 8022, guest_port: 22, guest_address: '172.20.20.11' },
      { protocol: 'tcp', host_port: 8080, guest_port: 80, guest_address: '172.20.20.11' },
    ],
  },
})
const lab = inventoryOf({
  name: 'wan',
  nodes: [
    node('R10', 'machine-emulator'),
    nat,
    node('web 1', 'container', { labels: { group: "DMZ; {{ lookup('pipe', 'id') }}" } }),
    node('PC1', 'pc', { console: 5001 }),
  ],
  links: [link('web 1', 3), link('R10', 4)],
})

test('an inventory has the nodes with their addresses, forwarded ports and consoles', () => {
  expect(lab.hosts.map(({ name, host_name, address }) => [name, host_name, address])).toEqual([
    ['PC1', 'PC1', null],
    ['R10', 'R10', '172.20.20.12'],
    ['web 1', 'web-1', '172.20.20.11'],
  ])
  expect(lab.hosts[2]).toMatchObject({
    groups: ['container', 'dmz_lookup_pipe_id_'],
    forwards: [
      { protocol: 'tcp', host_address: '127.0.0.1', host_port: 8022, guest_port: 22 },
      { protocol: 'tcp', host_address: '127.0.0.1', host_port: 8080, guest_port: 80 },
    ],
    console: { type: 'telnet', host: '127.0.0.1', port: 5000 },
  })
})

test('each format has what its program reads', () => {
  expect(parse(inventoryTexts.ansible(lab))).toEqual({
    all: {
      hosts: {
        R10: {
          ansible_host: '172.20.20.12',
          patchbay_kind: 'machine-emulator',
          patchbay_address: '172.20.20.12',
          patchbay_console_host: '127.0.0.1',
          patchbay_console_port: 5000,
        },
        'web-1': expect.objectContaining({ ansible_host: '127.0.0.1', ansible_port: 8022 }),
      },
      children: {
        container: { hosts: { 'web-1': {} } },
        dmz_lookup_pipe_id_: { hosts: { 'web-1': {} } },
        machine_emulator: { hosts: { R10: {} } },
      },
    },
  })
  expect(parse(inventoryTexts.nornir(lab))).toMatchObject({ R10: { hostname: '172.20.20.12', port: 22 } })
  expect(parse(inventoryTexts.pyats(lab))).toMatchObject({
    testbed: { name: 'wan' },
    devices: { PC1: { connections: { console: { protocol: 'telnet', ip: '127.0.0.1', port: 5001 } } } },
  })
  expect(inventoryTexts.ssh(lab)).toContain(
    'Host web-1 web-1.wan\n  HostName 127.0.0.1\n  Port 8022\n  HostKeyAlias web-1.wan\n',
  )
  expect(inventoryTexts.hosts(lab)).toBe('172.20.20.12 R10 R10.internal\n172.20.20.11 web-1 web-1.internal\n')
})

test('an address is one of IPv4 or IPv6, and not a word of hexadecimal digits', () => {
  const at = (host: string) =>
    inventoryOf({ name: 'lab', nodes: [node('R1', 'pc', { console_host: host })], links: [] }).hosts[0]?.console?.host
  expect(['10.0.0.1', '::1', 'fd00::5', 'cafe'].map(at)).toEqual(['10.0.0.1', '::1', 'fd00::5', undefined])
})

test('a label is not a group that Ansible has itself', () => {
  const groups = ['all', 'Ungrouped', 'DMZ'].map(
    (group) =>
      inventoryOf({ name: 'lab', nodes: [node('R1', 'pc', { labels: { group } })], links: [] }).hosts[0]?.groups,
  )
  expect(groups).toEqual([['pc'], ['pc'], ['pc', 'dmz']])
})

test('what pyATS evaluates is in no testbed', () => {
  const markup = "%CALLABLE{os.system('id')} %ENV{HOME} %{testbed.name}"
  const text = inventoryTexts.pyats(inventoryOf({ name: markup, nodes: [node(markup, markup)], links: [] }))
  expect(text).not.toContain('%')
  expect(parse(text)).toMatchObject({ testbed: { name: 'CALLABLE-os-system-id-ENV-HOME-testbed-name' } })
})

test('texts of a stranger are in no line of another program', () => {
  const evil = 'x\n  ProxyCommand touch /tmp/owned {{ 1 + 1 }}'
  const hostile = inventoryOf({
    name: evil,
    nodes: [
      node(evil, evil, { console_host: evil, labels: { group: evil } }),
      node('net', 'nat', {
        properties: {
          guests: [{ port_number: 0, name: evil, address: '10.0.0.5' }],
          port_forwards: [
            { protocol: 'tcp', host_address: evil, host_port: 1, guest_port: 22, guest_address: '10.0.0.5' },
          ],
        },
      }),
    ],
    links: [link(evil, 0)],
  })
  expect(hostile.hosts[0]).toMatchObject({ address: '10.0.0.5', forwards: [], console: null })
  for (const text of [inventoryTexts.ssh(hostile), inventoryTexts.hosts(hostile), inventoryTexts.ansible(hostile)]) {
    expect(text).not.toMatch(/^\s*ProxyCommand/m)
    expect(text).not.toContain('{{')
  }
})
