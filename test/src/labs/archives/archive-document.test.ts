import { expect, test } from 'vitest'
import { archivedLab } from '../../../../src/labs/archives/archive-document.ts'

/** The console types that nodes of an archive of GNS3 get, by their names. */
function consolesOf(types: Readonly<Record<string, string>>): Record<string, string> {
  const nodes = Object.entries(types).map(([name, node_type]) => ({
    ...{ node_id: crypto.randomUUID(), name, node_type, compute_id: 'local', console: 5000, console_type: 'telnet' },
    properties: {},
  }))
  const topology = { computes: [], drawings: [], links: [], nodes }
  const document = { name: 'theirs', project_id: crypto.randomUUID(), revision: 9, version: '2.2.59', topology }
  const lab = archivedLab(document, undefined, crypto.randomUUID())
  return Object.fromEntries(lab.nodes.map(({ name, console_type }) => [name, console_type]))
}

test('a node whose kind has no console is read without the console that GNS3 gave it', () => {
  const types = { SW: 'ethernet_switch', Hub: 'ethernet_hub', Cloud: 'cloud', PC: 'vpcs', Box: 'docker' }
  expect(consolesOf(types)).toEqual({ SW: 'none', Hub: 'none', Cloud: 'none', PC: 'telnet', Box: 'telnet' })
})

test('a docker node is a container; the settings that it does not get are named', () => {
  const [web, pc, box] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
  const properties = {
    ...{ image: 'nginx', adapters: 2, environment: 'A=1', start_command: null, mac_address: '02:42:8a:00:00:10' },
    ...{
      extra_volumes: ['/a', '/b'],
      memory: 64,
      usage: 'x'.repeat(70_000),
      console_http_port: 80,
      aux: 5001,
      container_id: 'x',
    },
  }
  const nodes = [
    {
      node_id: web,
      name: 'web',
      node_type: 'docker',
      console_type: 'vnc',
      port_name_format: 'Ethernet{0}',
      properties,
    },
    { node_id: pc, name: 'PC1', node_type: 'vpcs' },
    { node_id: box, name: 'Box', node_type: 'docker', properties: { adapters: 1 } },
  ]
  const link = (adapter: number, other: string) => ({
    link_id: crypto.randomUUID(),
    nodes: [
      { node_id: web, adapter_number: adapter, port_number: 0 },
      { node_id: other, adapter_number: 0, port_number: 0 },
    ],
  })
  const topology = { nodes, links: [link(0, pc), link(1, box)], drawings: [] }
  const document = { name: 'boxes', revision: 9, topology }
  const text = 'iface eth0 inet dhcp\n'
  const lab = archivedLab(document, undefined, crypto.randomUUID(), new Map(), new Map([[web, text]]))
  expect(lab.nodes).toMatchObject([
    {
      node_type: 'container',
      console_type: 'telnet',
      port_name_format: 'eth{0}',
      properties: {
        image: 'nginx_latest.tar',
        adapters: 2,
        environment: 'A=1',
        mac_address: '02:42:8a:00:00:10',
        sysctls: 'net.ipv4.ip_forward=1',
        files: [{ path: '/etc/network/interfaces', text }],
      },
    },
    { node_type: 'pc' },
    { node_type: 'docker', properties: { adapters: 1 } },
  ])
  expect(lab.nodes[0]?.properties).not.toHaveProperty('extra_volumes')
  expect(lab.leftOut.toSorted()).toEqual(['console_type of web', 'extra_volumes of web', 'usage of web'])
})

test('an archive of GNS3 3.0 (revision 10) is read as one of 2.2, and of a newer one it is said', () => {
  const node = { node_id: crypto.randomUUID(), name: 'PC1', node_type: 'vpcs', properties: {} }
  const document = { name: 'new', revision: 10, topology: { nodes: [node], links: [], drawings: [] } }
  const { nodes } = archivedLab(document, undefined, crypto.randomUUID())
  expect(nodes).toMatchObject([{ name: 'PC1', node_type: 'pc' }])
  expect(() => archivedLab({ ...document, revision: 11 }, undefined, crypto.randomUUID())).toThrow(
    'The archive has revision 11, and this service reads revisions up to 10: export it with GNS3 3.0',
  )
})

test('an archive of GNS3 1.x is converted: nodes, links by numbers of ports, and drawings', () => {
  const vm = (id: number, type: string, ports: unknown[], more = {}) => ({
    ...{ id, type, label: { text: `${type}${id}` }, x: id, y: 0, ports, properties: {}, ...more },
  })
  const sameId = { vm_id: crypto.randomUUID() }
  const topology = {
    nodes: [
      vm(1, 'VPCSDevice', [{ id: 1, name: 'Ethernet0', port_number: 0 }], sameId),
      vm(2, 'EthernetSwitch', [{ id: 2, name: '1', port_number: 1, type: 'access', vlan: 5 }], sameId),
      vm(3, 'FrameRelaySwitch', [{ id: 3, name: '1', port_number: 1 }]),
    ],
    links: [{ id: 1, source_node_id: 1, source_port_id: 1, destination_node_id: 2, destination_port_id: 2 }],
    notes: [{ text: '<b> & c', x: 1.5, y: 2, font: 'TypeWriter,12,-1,5,75,0,0,0,0,0', color: '#ff112233' }],
  }
  const document = { name: 'old', type: 'topology', version: '1.3', topology }
  const { nodes, links, drawings } = archivedLab(document, undefined, crypto.randomUUID())
  expect(nodes.map(({ name, node_type }) => `${name} ${node_type}`)).toEqual([
    'VPCSDevice1 pc',
    'EthernetSwitch2 switch',
    'FrameRelaySwitch3 frame_relay_switch',
  ])
  expect(nodes[1]?.properties).toEqual({
    ports_mapping: [{ name: 'Ethernet0', port_number: 0, type: 'access', vlan: 5 }],
  })
  const [pc, bridge] = nodes
  expect(links).toMatchObject([
    {
      nodes: [
        { node_id: pc?.node_id, adapter_number: 0, port_number: 0 },
        { node_id: bridge?.node_id, adapter_number: 0, port_number: 0 },
      ],
    },
  ])
  expect(drawings).toMatchObject([{ x: 2, y: 2, svg: expect.stringContaining('>&lt;b&gt; &amp; c</text>') }])
})

test.each([{}, [], { name: 'x' }, { name: 'x', revision: 9 }, { name: 'x', topology: {} }])(
  'the document %j is refused',
  (document) => {
    expect(() => archivedLab(document, undefined, crypto.randomUUID())).toThrow(
      expect.objectContaining({ status: 400 }),
    )
  },
)
