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
    nodes: 'PC1 pc, PC2 pc',
    links: '',
    images: '',
    leftOut: 'topology.nodes[0].node_type',
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
    nodes: 'R1 iou',
    links: '',
    images: 'l3.bin',
    leftOut: 'topology.nodes[0].node_type',
  },
])('$file', async ({ file, ...expected }) => {
  expect(await importedFixture(`gns3/${file}`)).toEqual(expected)
})

test('the startup script of a pc is the file that the project has', () => {
  const id = '00000000-0000-4000-8000-000000000001'
  const nodes = [{ node_id: id, name: 'PC1', node_type: 'vpcs', properties: { startup_script_path: 'startup.vpc' } }]
  const text = JSON.stringify({ name: 'x', revision: 9, topology: { nodes, links: [], drawings: [] } })
  const path = `project-files/vpcs/${id}/startup.vpc`
  expect(importLabFile({ text, hasFile: (it) => it === path }).file.nodes).toEqual({
    PC1: { kind: 'pc', config: `./${path}` },
  })
  expect(importLabFile({ text }).leftOut).toMatchObject([{ message: `is not taken over: there is no file ${path}` }])
})

const node = { node_id: 'a', name: 'A', node_type: 'vpcs' }
test.each([
  [{ revision: 5 }, 'revision: expected 8 or 9: open and save the project with release 2.2'],
  [{ nodes: [node, node] }, 'topology.nodes[1].node_id: there are two nodes of this id'],
  [{ links: [{ nodes: [] }] }, 'topology.links[0].nodes: expected two ends'],
  [
    { links: [{ nodes: [{ node_id: 'b' }, { node_id: 'a' }] }] },
    'topology.links[0].nodes[0].node_id: there is no node "b"',
  ],
  [
    { nodes: [{ ...node, node_type: 'qemu', properties: { ram: 'much' } }] },
    'topology.nodes[0].properties.ram: a machine-emulator does not take "much"',
  ],
])(
  '%j is refused: %s',
  ({
    revision = 9,
    nodes = [node],
    links = [],
  }: { revision?: number; nodes?: unknown[]; links?: unknown[] }, message) => {
    const text = JSON.stringify({ name: 'x', revision, topology: { nodes, links, drawings: [] } })
    expect(() => importLabFile({ text })).toThrow(
      expect.objectContaining({ status: 400, message: expect.stringContaining(message) }),
    )
  },
)
