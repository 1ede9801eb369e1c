import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { importLabFile } from '../../../src/importers/formats.ts'
import { importedFixture } from './imported-fixture.ts'

test.each([
  {
    file: '01-two-routers.yaml',
    nodes: 'R1 machine, R2 machine',
    links: 'R1:GigabitEthernet0/0 -- R2:GigabitEthernet0/0',
    images: 'iosv.qcow2',
    leftOut: '',
  },
  {
    file: '02-switch.yaml',
    nodes: 'a machine, b machine',
    links: 'sw switch: a:eth0 at 0, b:eth0 at 3',
    images: 'alpine.qcow2',
    leftOut: '',
  },
  {
    file: '03-nat.yaml',
    nodes: 'host machine',
    links: 'internet nat: host:ens2',
    images: 'ubuntu.qcow2',
    leftOut: '',
  },
  {
    file: '04-bridge.yaml',
    nodes: 'csr machine',
    links: 'ext cloud: csr:GigabitEthernet1',
    images: 'csr1000v-170302.qcow2',
    leftOut: 'nodes[0].configuration',
  },
  {
    file: '05-iol.yaml',
    nodes: 'r1 iou, sw1 iou',
    links: 'r1:e0/0 -- sw1:e1/0',
    images: 'iol-xe-17-15-01.bin, ioll2-xe.bin',
    leftOut: '',
  },
  {
    file: '06-wan.yaml',
    nodes: 'left machine, right machine',
    links: 'left:GigabitEthernet1 -- right:GigabitEthernet1 delay=40ms jitter=5ms rate=10mbit loss=0.5%',
    images: 'cat8000v.qcow2',
    leftOut: 'links[0].conditioning.limit',
  },
  {
    file: '07-conditioning-off.yaml',
    nodes: 'a machine, b machine',
    links: 'a:eth0 -- b:eth0; a:eth1 -- b:eth1 corrupt=1% duplicate=2% reorder=4%',
    images: 'alpine.qcow2',
    leftOut: 'links[0].conditioning, links[1].conditioning.jitter',
  },
  {
    file: '08-nexus.yaml',
    nodes: 'n9k-1 machine, n9k-2 machine',
    links: 'n9k-1:Ethernet1/1 -- n9k-2:Ethernet1/1; n9k-1:Ethernet1/2 -- n9k-2:Ethernet1/2',
    images: 'nxosv9000.qcow2',
    leftOut: '',
  },
  {
    file: '09-xr.yaml',
    nodes: 'xr machine, xr-old machine',
    links: 'xr:GigabitEthernet0/0/0/0 -- xr-old:GigabitEthernet0/0/0/0',
    images: 'iosxrv9000.qcow2, iosxrv.qcow2',
    leftOut: '',
  },
  {
    file: '10-asa.yaml',
    nodes: 'fw machine, server machine',
    links: 'fw:GigabitEthernet0/0 -- server:eth0',
    images: 'asav.qcow2, server.qcow2',
    leftOut: '',
  },
  {
    file: '11-lan.yaml',
    nodes: 'pc1 machine, pc2 machine, pc3 machine',
    links: 'sw-1 switch: pc1:eth0 at 0, pc2:eth0 at 1, sw-2:7 at 7; sw-2 switch: pc3:eth0 at 0',
    images: 'desktop.qcow2',
    leftOut: '',
  },
  {
    file: '21-containers.yaml',
    cannotRun: 'browser',
    nodes: 'r1 container, web container, browser machine',
    links: 'r1:eth1 -- web:eth0; r1:eth2 -- browser:eth0',
    images: 'frr-10-2-1-r1.tar.gz, nginx.tar.gz',
    leftOut: 'nodes[1].configuration[0], nodes[1].configuration[1]',
  },
  {
    file: '12-containers.yaml',
    nodes: 'web container, tools container',
    links: 'web:eth0 -- tools:eth0',
    images: 'nginx.tar.gz, net-tools.tar.gz',
    leftOut: '',
  },
  {
    file: '13-unknown.yaml',
    cannotRun: 'box',
    nodes: 'box machine, a machine',
    links: 'box:eth2 -- a:eth0',
    images: 'alpine.qcow2',
    leftOut: '',
  },
  {
    file: '14-annotations.yaml',
    nodes: 'a machine, b machine',
    links: 'a:eth0 -- b:eth0',
    images: 'alpine.qcow2',
    leftOut: 'annotations',
  },
  {
    file: '15-old-version.yaml',
    nodes: 'r1 machine, r2 machine',
    links: 'r1:GigabitEthernet0/0 -- r2:GigabitEthernet0/0',
    images: 'iosv.qcow2',
    leftOut: '',
  },
  {
    file: '16-same-names.yaml',
    nodes: 'Router machine, router2 machine, R-1- core machine',
    links: 'Router:eth0 -- router2:eth0',
    images: 'alpine.qcow2',
    leftOut: 'nodes[1].label, nodes[2].label',
  },
  {
    file: '17-tags.yaml',
    nodes: 'a machine',
    links: '',
    images: 'alpine.qcow2',
    leftOut: 'nodes[0].data_volume',
  },
  {
    file: '18-two-links.yaml',
    nodes: 's1 machine, s2 machine',
    links: 's1:GigabitEthernet0/0 -- s2:GigabitEthernet0/0; s1:GigabitEthernet0/1 -- s2:GigabitEthernet0/1',
    images: 'iosvl2.qcow2',
    leftOut: '',
  },
  {
    file: '19-ubuntu.yaml',
    nodes: 'vm machine',
    links: 'sw switch: vm:ens3 at 0',
    images: 'ubuntu.qcow2',
    leftOut: '',
  },
  {
    file: '20-sdwan.yaml',
    nodes: 'edge-1 machine, edge-2 machine',
    links: 'mpls switch: edge-1:GigabitEthernet1 at 0, edge-2:GigabitEthernet1 at 1; inet nat: edge-1:GigabitEthernet2',
    images: 'cat-sdwan-edge.qcow2',
    leftOut: '',
  },
])('$file', async ({ file, ...expected }) => {
  expect(await importedFixture(`cml/${file}`)).toEqual(expected)
})

const lab = (nodes: string, links = '[]') => `lab: { title: x }\nnodes: ${nodes}\nlinks: ${links}\n`
const node = (id: string, more = '') =>
  `{ id: ${id}, label: ${id}, node_definition: alpine, interfaces: [{ id: i0, label: eth0, slot: 0, type: physical }]${more} }`

test.each([
  [lab('[{ id: a }]'), '2:9: nodes[0].node_definition: is missing, expected a string'],
  ['lab: a lab file\nnodes: {}\n', '1:1: this is already a lab file'],
])('%j is refused: %s', (text, message) => {
  expect(() => importLabFile({ text })).toThrow(expect.objectContaining({ status: 400, message }))
})

test.each([
  [lab(`[${node('a')}, ${node('a')}]`), 'nodes[1].id: is not imported: two nodes have the id "a"'],
  [
    lab(`[${node('a')}]`, '[{ n1: a, i1: i0, n2: b, i2: i0 }]'),
    'links[0].n2: is not imported: there is no node with the id "b"',
  ],
  [
    lab(`[${node('a')}]`, '[{ n1: a, i1: i1, n2: a, i2: i0 }]'),
    'links[0].i1: is not imported: the node "a" has no physical interface "i1"',
  ],
  [
    lab(`[${node('a')}, ${node('b')}]`, '[{ n1: a, i1: i0, n2: b, i2: i0, conditioning: { latency: slow } }]'),
    'links[0].conditioning.latency: is not imported: expected a number, got "slow"',
  ],
  [
    lab(`[${node('a')}, ${node('b')}]`, '[{ n1: a, i1: i0, n2: b, i2: i0, conditioning: { latency: 99999999 } }]'),
    'links[0]: delay: is not imported: expected delay, jitter of at most 32767ms',
  ],
  [
    lab('[{ id: a, label: a, node_definition: server, configuration: [{ name: ../x, content: y }] }]'),
    'nodes[0].configuration[0].name: is not imported: expected the name of a file, got "../x"',
  ],
])('of %j all but one thing is taken over, which is listed: %s', (text, line) => {
  const { file, leftOut } = importLabFile({ text })
  expect(Object.keys(file.nodes)[0]).toBe('a')
  expect(leftOut.map(({ path, message }) => `${path}: ${message}`)).toContain(line)
})

test('a container has the files of its configuration where its image reads them', () => {
  const text = readFileSync(join(import.meta.dirname, '../../fixtures/labs/cml/21-containers.yaml'), 'utf8')
  const { file, leftOut } = importLabFile({ text })
  expect(file.nodes).toMatchObject({
    r1: {
      kind: 'container',
      image: 'frr-10-2-1-r1.tar.gz',
      symbol: 'router',
      ram: 256,
      adapters: 3,
      files: [
        { path: '/config/node.cfg', text: 'hostname r1\n' },
        { path: '/config/boot.sh', text: 'ip address add dev eth1 10.0.0.1/24\n' },
        { path: '/config/protocols', text: 'ospfd' },
      ],
      exec: '/bin/bash /config/boot.sh',
      sysctls: 'net.ipv4.ip_forward=1',
      capabilities: ['SYS_ADMIN'],
    },
    web: { kind: 'container', image: 'nginx.tar.gz', environment: 'A=1' },
  })
  expect(leftOut.map(({ message }) => message)).toEqual([
    '"wrong" is not imported: expected NAME=value',
    'the file "mounts" is not imported: a container has no place for it',
  ])
})

test('the configuration of IOSv is ios_config.txt on a disk, which the machine reads at its first boot', () => {
  const text = lab('[{ id: a, label: a, node_definition: iosvl2, configuration: "hostname a\\nend\\n" }]')
  const { file, leftOut } = importLabFile({ text })
  expect(file.nodes.a).toMatchObject({
    day0: { medium: 'disk', label: 'disk0', files: { 'ios_config.txt': { text: 'hostname a\nend\n' } } },
    hdb_disk_interface: 'virtio',
  })
  expect(leftOut).toEqual([])
})

test('of long notes the beginning is taken over, and the list says so', () => {
  const text = `lab: { title: x, notes: "${'n'.repeat(5000)}" }\nnodes: [${node('a')}]\n`
  const { file, leftOut } = importLabFile({ text })
  expect(file.about).toBe('n'.repeat(4096))
  expect(leftOut).toMatchObject([
    {
      path: 'lab.notes',
      message: 'only the first 4096 characters are imported: "about" of a lab file is limited to that',
    },
  ])
})
