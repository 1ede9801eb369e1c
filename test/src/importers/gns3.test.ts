import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { importLabFile } from '../../../src/importers/formats.ts'
import { importedFixture } from './imported-fixture.ts'

test.each([
  {
    file: '01-two-pcs.gns3',
    nodes: 'PC1 pc, PC2 pc',
    links: 'PC1 -- PC2',
    images: '',
    leftOut: '',
  },
  {
    file: '02-switch.gns3',
    nodes: 'PC1 pc, PC2 pc, PC3 pc',
    links: 'Switch1 switch: PC1 at 0, PC2 at 1, PC3 at 2',
    images: '',
    leftOut: '',
  },
  {
    file: '03-vlans.gns3',
    nodes: 'PC1 pc, PC2 pc',
    links: 'SW1 switch: PC1 at 0, SW2:3 at 3; SW2 switch: PC2 at 0',
    images: '',
    leftOut: '',
  },
  {
    file: '04-qinq.gns3',
    nodes: '',
    links: 'A switch: B:1 at 1; B switch: ',
    images: '',
    leftOut: '',
  },
  {
    file: '05-hub.gns3',
    nodes: 'PC1 pc, PC2 pc',
    links: 'Hub1 hub: PC1 at 0, PC2 at 2',
    images: '',
    leftOut: '',
  },
  {
    file: '06-qemu.gns3',
    nodes: 'R1 machine, R2 machine',
    links: 'R1:0 -- R2:1',
    images: 'router.qcow2 (0123456789abcdef0123456789abcdef)',
    leftOut: '',
  },
  {
    file: '07-wan.gns3',
    nodes: 'PC1 pc, PC2 pc',
    links: 'PC1 -- PC2 delay=50ms jitter=10ms loss=5% corrupt=1% drop_every=100 bpf=icmp',
    images: '',
    leftOut: '',
  },
  {
    file: '08-suspended.gns3',
    nodes: 'PC1 pc, PC2 pc',
    links: 'PC1 -- PC2 down=true',
    images: '',
    leftOut: '',
  },
  {
    file: '09-nat.gns3',
    nodes: 'PC1 pc',
    links: 'NAT1 nat: PC1 at 0',
    images: '',
    leftOut: '',
  },
  {
    file: '10-cloud.gns3',
    nodes: 'PC1 pc, PC2 pc, PC3 pc',
    links: 'Cloud1 cloud: PC1; Cloud1-eth1 cloud: PC2',
    images: '',
    leftOut: 'topology.links[2].nodes[1]',
  },
  {
    file: '11-iou.gns3',
    nodes: 'R1 iou, R2 iou',
    links: 'R1:0/1 -- R2:0/1; R1:2/0 -- R2:1/0',
    images: 'i86bi-l3.bin (ffffffffffffffffffffffffffffffff)',
    leftOut: '',
  },
  {
    file: '12-dynamips.gns3',
    nodes: 'R1 dynamips',
    links: '',
    images: 'c7200.image',
    leftOut: 'topology.nodes[0].properties.midplane',
  },
  {
    file: '13-docker.gns3',
    nodes: 'web container, PC1 pc, PC2 pc',
    links: 'web:eth0 -- PC1',
    images: 'nginx_latest.tar',
    leftOut: 'topology.nodes[0].properties.image',
  },
  {
    file: '14-virtualbox.gns3',
    nodes: 'fw hypervisor, PC1 pc',
    links: 'fw:1 -- PC1',
    images: '',
    leftOut: '',
  },
  {
    file: '15-drawings.gns3',
    nodes: 'PC1 pc',
    links: '',
    images: '',
    leftOut: 'topology.drawings, auto_start, scene_width',
  },
  {
    file: '16-names.gns3',
    nodes: 'PC 1 pc, R-1-a pc',
    links: '',
    images: '',
    leftOut: 'topology.nodes[1].name',
  },
  {
    file: '17-unused.gns3',
    nodes: 'PC1 pc',
    links: '',
    images: '',
    leftOut: 'topology.nodes[0].node_type',
  },
  {
    file: '18-port-names.gns3',
    nodes: 'A machine, PC1 pc',
    links: 'A:3 -- PC1',
    images: 'a.qcow2',
    leftOut: 'topology.nodes[0].port_name_format, topology.nodes[0].first_port_name',
  },
  {
    file: '19-vnc.gns3',
    nodes: 'desk machine, PC1 pc',
    links: 'desk:0 -- PC1',
    images: 'desk.qcow2',
    leftOut: '',
  },
  {
    file: '20-frame-relay.gns3',
    cannotRun: 'FR1',
    nodes: 'FR1 iou, R1 iou',
    links: 'FR1:0/0 -- R1:0/0',
    images: 'l3.bin',
    leftOut: '',
  },
  {
    file: '21-containers.gns3',
    cannotRun: 'box',
    nodes: 'r1 container, web 1 container, firefox container, box machine',
    links: 'r1:eth0 -- web 1:eth0; r1:eth2 -- firefox:eth0; r1:eth1 -- box:eth0',
    images: 'frrouting_frr_v8.4.0.tar, nginx_latest.tar, gns3_webterm_latest.tar',
    leftOut: [
      'topology.nodes[0].properties.image',
      'topology.nodes[1].console_type',
      ...['extra_hosts', 'extra_volumes', 'environment', 'image'].map((key) => `topology.nodes[1].properties.${key}`),
      ...['topology.nodes[2].console_type', 'topology.nodes[2].properties.image'],
    ].join(', '),
  },
])('$file', async ({ file, ...expected }) => {
  expect(await importedFixture(`gns3/${file}`)).toEqual(expected)
})

test('a docker node is a container with its command, variables, hosts and the configuration of its interfaces', () => {
  const text = readFileSync(join(import.meta.dirname, '../../fixtures/labs/gns3/21-containers.gns3'), 'utf8')
  const configured = 'project-files/docker/00000000-0000-4000-8000-000000000001/etc/network/interfaces'
  const { file, nodes, leftOut } = importLabFile({ text, hasFile: (path) => path === configured })
  expect(file.nodes).toMatchObject({
    r1: {
      kind: 'container',
      image: 'frrouting_frr_v8.4.0.tar',
      symbol: 'router',
      adapters: 3,
      capabilities: ['SYS_ADMIN'],
      sysctls: 'net.ipv4.ip_forward=1',
      files: [{ path: '/etc/network/interfaces', file: `./${configured}` }],
      exec: expect.stringContaining('ifup -a'),
      at: [100, 0],
    },
    'web 1': {
      kind: 'container',
      image: 'nginx_latest.tar',
      usage: 'port 80',
      ram: 256,
      cpus: 0.5,
      command: "nginx -g 'daemon off;'",
      environment: 'A=1\nB=two words',
      hosts: '10.0.0.9 db\n2001:db8::1 v6',
    },
  })
  expect(file.nodes.firefox).toEqual({ kind: 'container', image: 'gns3_webterm_latest.tar', at: [300, 0] })
  expect(nodes).toMatchObject([
    { name: 'r1', from: 'docker', hint: expect.stringContaining('"patchbay images pull frrouting/frr:v8.4.0"') },
    { name: 'web 1' },
    { name: 'firefox' },
    { name: 'box', cannotRun: 'it names no image' },
  ])
  const ofWeb = leftOut.filter(({ path, effect }) => path.startsWith('topology.nodes[1]') && effect === 'left-out')
  expect(ofWeb.map(({ path, message }) => `${path.replace(/^.*\./, '')}: ${message}`)).toEqual([
    'console_type: is not imported: the console of a container is the terminal of its command, not "http"',
    'extra_hosts: "nothing" is not imported: expected NAME:ADDRESS',
    'extra_volumes: is not imported: a container keeps all that it writes; the content of these directories is not brought',
    'environment: "GNS3_X=1" is not imported: expected NAME=value, without GNS3_',
    'environment: "wrong" is not imported: expected NAME=value, without GNS3_',
  ])
})

test('the startup script of a pc is the file that the project has', () => {
  const id = '00000000-0000-4000-8000-000000000001'
  const nodes = [{ node_id: id, name: 'PC1', node_type: 'vpcs', properties: { startup_script_path: 'startup.vpc' } }]
  const text = JSON.stringify({ name: 'x', revision: 9, topology: { nodes, links: [], drawings: [] } })
  const path = `project-files/vpcs/${id}/startup.vpc`
  expect(importLabFile({ text, hasFile: (it) => it === path }).file.nodes).toEqual({
    PC1: { kind: 'pc', config: `./${path}` },
  })
  expect(importLabFile({ text }).leftOut).toMatchObject([{ message: `is not imported: there is no file ${path}` }])
})

const node = { node_id: 'a', name: 'A', node_type: 'vpcs' }
const projectOf = ({
  revision = 9,
  nodes = [node],
  links = [],
}: {
  revision?: number
  nodes?: unknown[]
  links?: unknown[]
}) => JSON.stringify({ name: 'x', revision, topology: { nodes, links, drawings: [] } })

test.each([
  [{ revision: 11 }, 'revision: the file has a newer revision than 10: settings of newer revisions are unknown'],
  [{ nodes: [node, node] }, 'topology.nodes[1].node_id: is not imported: two nodes have this id'],
  [{ links: [{ nodes: [] }] }, 'topology.links[0].nodes: is not imported: expected two ends, got 0'],
  [
    { links: [{ nodes: [{ node_id: 'b' }, { node_id: 'a' }] }] },
    'topology.links[0].nodes[0].node_id: is not imported: there is no node "b"',
  ],
  [
    { nodes: [{ ...node, node_type: 'qemu', properties: { ram: 'much' } }] },
    'topology.nodes[0].properties.ram: is not imported: a machine-emulator cannot have "much"',
  ],
  [
    { nodes: [{ ...node, node_type: 'qemu', properties: { hda_disk_image: 'C:\\Users\\me\\images\\QEMU\\r.qcow2' } }] },
    'topology.nodes[0].properties.hda_disk_image: "C:\\\\Users\\\\me\\\\images\\\\QEMU\\\\r.qcow2" is a path of another computer: the image is "r.qcow2" here',
  ],
  [
    { nodes: [{ ...node, node_type: 'qemu', properties: { options: '-serial mon:stdio -m 256 -monitor "none"' } }] },
    'topology.nodes[0].properties.options: "-serial mon:stdio", "-monitor \\"none\\"" is not imported: the console of the node is in its place',
  ],
])('of %j all but one thing is taken over, which is listed: %s', (project, line) => {
  const { file, leftOut } = importLabFile({ text: projectOf(project) })
  expect(Object.keys(file.nodes)).toEqual(['A'])
  expect(leftOut.map(({ path, message }) => `${path}: ${message}`)).toContain(line)
})

test('a project of which no node can be read is refused with the first reason', () => {
  expect(() => importLabFile({ text: projectOf({ nodes: [{ node_type: 'vpcs' }] }) })).toThrow(
    expect.objectContaining({
      status: 400,
      message: expect.stringContaining('topology.nodes[0].node_id: is missing, expected a string'),
    }),
  )
})

test('a project of GNS3 3.0 (revision 10) is read as one of 2.2', () => {
  const nodes = [
    { ...node, symbol: ':/symbols/affinity/circle/blue/vpcs.svg' },
    { node_id: 'n', name: 'NAT1', node_type: 'nat' },
  ]
  const links = [{ nodes: [{ node_id: 'a' }, { node_id: 'n' }] }]
  const { file } = importLabFile({ text: projectOf({ revision: 10, nodes, links }) })
  expect(file).toMatchObject({ nodes: { A: { kind: 'pc' } }, segments: { NAT1: { kind: 'nat' } } })
})

const label = (text: string) => ({ text, x: 1.5, y: -2 })
const oldLink = (id: number, [a, b]: readonly [number, number], [p, q]: readonly [number, number]) => ({
  id,
  source_node_id: a,
  source_port_id: p,
  destination_node_id: b,
  destination_port_id: q,
})
test.each([undefined, 2, 3, 4])('a project of GNS3 1.x (revision %s) is converted', (revision) => {
  const nodes = [
    {
      id: 1,
      type: 'C3600',
      label: label('R1'),
      x: 0.5,
      y: 0,
      ports: [{ id: 1, name: 'FastEthernet0/0' }],
      properties: { name: 'R1', image: 'c3640.bin', slot0: 'NM-1FE-TX' },
    },
    {
      id: 2,
      type: 'VPCSDevice',
      label: label('PC1'),
      x: 1,
      y: 1,
      ports: [{ id: 2, name: 'Ethernet0', port_number: 0 }],
      properties: {},
    },
    {
      id: 3,
      type: 'EthernetSwitch',
      label: label('SW1'),
      x: 2,
      y: 2,
      properties: {},
      ports: [
        { id: 3, port_number: 1, type: 'dot1q', vlan: 1 },
        { id: 4, port_number: 2, type: 'access', vlan: 7 },
      ],
    },
    {
      id: 4,
      type: 'QemuVM',
      label: label('VM'),
      x: 3,
      y: 3,
      ports: [{ id: 5, name: 'Ethernet1' }],
      properties: {
        adapters: 2,
        qemu_path: 'C:\\qemu\\qemu-system-i386w.exe',
        hda_disk_image: '/home/me/GNS3/images/vm.img',
        acpi_shutdown: true,
      },
    },
    {
      id: 5,
      type: 'IOUDevice',
      label: label('I1'),
      x: 4,
      y: 4,
      ports: [{ id: 6, name: 'Ethernet0/1', adapter_number: 0, port_number: 1 }],
      properties: { path: 'l3.bin' },
    },
    {
      id: 6,
      type: 'VirtualBoxVM',
      label: label('VB'),
      x: 5,
      y: 5,
      ports: [{ id: 7, name: 'Ethernet0', adapter_number: 0, port_number: 0 }],
      properties: { vmname: 'vb', adapters: 1 },
    },
    {
      id: 7,
      type: 'Cloud',
      label: label('C1'),
      x: 6,
      y: 6,
      ports: [{ id: 8, name: 'nio_gen_eth:eth1', stub: true }],
      properties: { nios: [] },
    },
    { id: 8, type: 'FrameRelaySwitch', label: label('FR1'), x: 7, y: 7, ports: [{ id: 9, name: '1' }], properties: {} },
  ]
  const links = [
    oldLink(1, [1, 3], [1, 3]),
    oldLink(2, [2, 3], [2, 4]),
    oldLink(3, [4, 5], [5, 6]),
    oldLink(4, [6, 7], [7, 8]),
    oldLink(5, [1, 8], [1, 9]),
  ]
  const text = JSON.stringify({
    name: 'Old',
    type: 'topology',
    ...(revision && { revision }),
    topology: { nodes, links, servers: [] },
  })
  const { file, format, nodes: imported } = importLabFile({ text })
  expect(format).toBe('gns3')
  expect(file.nodes).toMatchObject({
    R1: { kind: 'dynamips', platform: 'c3600', image: 'c3640.bin', at: [1, 0] },
    PC1: { kind: 'pc' },
    VM: { kind: 'machine-emulator', platform: 'i386', image: 'vm.img', adapters: 2, on_close: 'save_vm_state' },
    I1: { kind: 'iou', image: 'l3.bin' },
    VB: { kind: 'hypervisor', vmname: 'vb' },
  })
  expect(file.segments).toMatchObject({
    SW1: {
      kind: 'switch',
      ports: { 0: { trunk: true }, 1: { vlan: 7 } },
      members: [
        { end: 'R1:0/0', port: 0 },
        { end: 'PC1', port: 1 },
      ],
    },
    C1: { kind: 'cloud', device: 'eth1', members: ['VB:0'] },
  })
  expect(file.links).toEqual([['VM:1', 'I1:0/1']])
  expect(imported.find(({ name }) => name === 'FR1')).toMatchObject({
    from: 'frame_relay_switch',
    cannotRun: 'there is no kind "frame_relay_switch" here',
  })
})
