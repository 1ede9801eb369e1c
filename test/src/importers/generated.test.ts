import fc from 'fast-check'
import { expect, test } from 'vitest'
import { importLabFile } from '../../../src/importers/formats.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { labFileText } from '../../../src/labfile/text.ts'
import { filesOf } from '../../support/named-files.ts'

/** Texts that people write, and those at which readers of YAML, lab files and names of devices stumble. */
const open = '$'.concat('{')
const awkward = fc.constantFrom(
  ...[`${open}X:=y}`, `${open}X}`, open, '$$', ':/symbols/nat.svg', 'yes', 'no', '1e3', '0x10', '1:20', '~', '', ' '],
  ...[
    'a-name-that-is-longer-than-fifteen',
    'é',
    '𝔘',
    '\u2028',
    '\u0085',
    '\u202e',
    '\ufeff',
    '- a',
    '? b',
    'a: b',
    '#c',
  ],
  ...[
    '11111111-1111-4111-8111-111111111111',
    '__proto__',
    'constructor',
    'x'.repeat(300),
    'n\n'.repeat(2500),
    '\t',
    '-1',
  ],
)
const text = fc.oneof(
  { weight: 3, arbitrary: fc.stringMatching(/^[A-Za-z][A-Za-z0-9-]{0,9}$/) },
  awkward,
  fc.string({ maxLength: 20 }),
)
const number = fc.oneof(
  fc.integer({ min: -1, max: 5000 }),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
  fc.constantFrom(1e-7, 1e21),
)
const anything = fc.oneof(text, number, fc.constantFrom(null, true, [], {}, ['x'], { a: 1 }))
/** A member that is usually of its type. */
const usually = (arbitrary: fc.Arbitrary<unknown>) => fc.oneof({ weight: 12, arbitrary }, anything)
const some = (members: Record<string, fc.Arbitrary<unknown>>, required: string[] = []) =>
  fc.record(
    Object.fromEntries(Object.entries(members).map(([key, it]) => [key, required.includes(key) ? it : usually(it)])),
    { requiredKeys: required },
  )
const few = <T>(arbitrary: fc.Arbitrary<T>) => fc.array(arbitrary, { maxLength: 4 })

const names = ['a', 'b', 'c', 'host', 'br', '__proto__', '11111111-1111-4111-8111-111111111111', 'x y']
const kinds = [
  'linux',
  'nokia_srsim',
  'nokia_srlinux',
  'cisco_iol',
  'arista_veos',
  'cisco_vios',
  'bridge',
  'host',
  'juniper_vmx',
  'new_kind',
]
const ports = [
  'eth0',
  'eth1',
  'eth2',
  'e1-1',
  'e2-1',
  'net1',
  '1/1/c1/1',
  '2/1/c1/1',
  'Ethernet1/1',
  'e1/1',
  'e0/2',
  'ge-0/0/0',
  'Gi1',
]
const name = fc.constantFrom(...names)
const endpoint = fc.oneof(
  { weight: 6, arbitrary: fc.tuple(name, fc.constantFrom(...ports)).map((it) => it.join(':')) },
  fc.tuple(fc.constantFrom('host', 'macvlan', 'mgmt-net', 'dummy'), text).map((it) => it.join(':')),
  text,
)
const end = some({ node: name, interface: fc.constantFrom(...ports), ipv4: text })
const containerlab = some(
  {
    name: text,
    prefix: text,
    topology: some(
      {
        defaults: some({ kind: fc.constantFrom(...kinds), image: text, group: text }),
        kinds: fc.dictionary(
          fc.constantFrom(...kinds),
          some({ image: text, memory: text, labels: fc.dictionary(text, anything) }),
        ),
        groups: fc.dictionary(text, some({ cpu: number })),
        nodes: fc.dictionary(
          name,
          some(
            {
              ...{
                kind: fc.constantFrom(...kinds),
                image: text,
                group: text,
                memory: text,
                cpu: number,
                env: fc.object(),
              },
              ...{ exec: few(text), labels: fc.dictionary(text, text), 'wait-for': few(name), 'startup-delay': number },
              ...{
                'startup-config': text,
                stages: fc.dictionary(text, some({ 'wait-for': few(some({ node: name })) })),
              },
            },
            ['kind'],
          ),
          { minKeys: 1 },
        ),
        links: few(
          fc.oneof(
            { weight: 4, arbitrary: fc.record({ endpoints: few(endpoint) }) },
            some({
              type: fc.constantFrom(
                'veth',
                'host',
                'macvlan',
                'mgmt-net',
                'vxlan',
                'vxlan-stitch',
                'veth-stitch',
                'dummy',
                'new',
              ),
              endpoint: end,
              endpoints: fc.array(end, { minLength: 2, maxLength: 2 }),
              'host-interface': text,
            }),
          ),
        ),
      },
      ['nodes'],
    ),
  },
  ['topology'],
)

const definitions = [
  'iosv',
  'iosvl2',
  'iol-xe',
  'nxosv9000',
  'ubuntu',
  'unmanaged_switch',
  'external_connector',
  'frr',
  'new',
]
const cml = some(
  {
    lab: some({ title: text, description: text, notes: text, version: text }),
    nodes: fc.uniqueArray(
      some(
        {
          ...{
            id: fc.constantFrom('n0', 'n1', 'n2'),
            label: text,
            node_definition: fc.constantFrom(...definitions),
            x: number,
          },
          ...{ y: number, ram: number, cpus: number, image_definition: text, tags: few(text), data_volume: number },
          configuration: fc.oneof(
            text,
            few(some({ name: fc.oneof(text, fc.constantFrom('node.cfg', 'boot.sh', 'environment')), content: text })),
          ),
          interfaces: few(
            some({
              id: fc.constantFrom('i0', 'i1'),
              slot: fc.nat(9),
              label: text,
              type: fc.constantFrom('physical', 'loopback'),
            }),
          ),
        },
        ['id', 'label', 'node_definition'],
      ),
      { selector: ({ id }) => id, minLength: 1 },
    ),
    links: few(
      some({
        ...{
          n1: fc.constantFrom('n0', 'n1'),
          n2: fc.constantFrom('n1', 'n2'),
          i1: fc.constantFrom('i0', 'i1'),
          i2: fc.constantFrom('i0', 'i1'),
        },
        conditioning: some({ latency: number, jitter: number, loss: number, bandwidth: number, enabled: fc.boolean() }),
      }),
    ),
  },
  ['lab', 'nodes'],
)

const ids = [
  '22222222-2222-4222-8222-222222222222',
  '33333333-3333-4333-8333-333333333333',
  '44444444-4444-4444-8444-444444444444',
]
const types = [
  'vpcs',
  'qemu',
  'iou',
  'dynamips',
  'virtualbox',
  'vmware',
  'ethernet_switch',
  'ethernet_hub',
  'cloud',
  'nat',
  'docker',
  'new',
]
const image = fc.constantFrom('a.qcow2', '/home/me/GNS3/images/QEMU/a.img', 'C:\\Users\\me\\a.bin', '../a', '')
const properties = some({
  ...{
    adapters: fc.nat(12),
    ram: number,
    platform: fc.constantFrom('x86_64', 'c7200', 'c3745', 'arm'),
    console_type: text,
  },
  ...{
    hda_disk_image: image,
    path: image,
    image,
    options: fc.constantFrom('-nographic', '-serial mon:stdio', '-monitor none -m 1', '"'),
  },
  ...{
    ethernet_adapters: fc.nat(20),
    serial_adapters: fc.nat(4),
    slot1: text,
    vmname: text,
    startup_script: text,
    usage: text,
  },
  ...{
    start_command: text,
    environment: text,
    extra_hosts: fc.constantFrom('a:10.0.0.1', 'b:fd00::1\n', 'none', ':', ''),
    extra_volumes: few(text),
    memory: number,
  },
  ports_mapping: few(
    some({
      port_number: fc.nat(9),
      type: fc.constantFrom('access', 'dot1q', 'qinq', 'ethernet'),
      vlan: number,
      interface: text,
    }),
  ),
})
const place = { x: number, y: number }
const gns3 = some(
  {
    ...{
      name: text,
      revision: fc.integer({ min: 5, max: 10 }),
      type: fc.constant('topology'),
      auto_start: fc.boolean(),
    },
    topology: some(
      {
        nodes: fc.uniqueArray(
          some(
            {
              ...{
                node_id: fc.constantFrom(...ids),
                name: text,
                node_type: fc.constantFrom(...types),
                ...place,
                symbol: text,
                properties,
              },
              console_type: text,
              port_name_format: text,
              port_segment_size: number,
              first_port_name: text,
            },
            ['node_id', 'name', 'node_type'],
          ),
          { selector: ({ node_id }) => node_id, minLength: 1 },
        ),
        links: few(
          some({
            nodes: fc.array(
              some({ node_id: fc.constantFrom(...ids), adapter_number: fc.nat(3), port_number: fc.nat(3) }),
              { minLength: 2, maxLength: 2 },
            ),
            suspend: fc.boolean(),
            filters: some({
              bpf: few(text),
              delay: few(number),
              packet_loss: few(number),
              frequency_drop: few(number),
              corrupt: few(number),
            }),
          }),
        ),
        drawings: fc.constant([]),
      },
      ['nodes'],
    ),
  },
  ['type', 'revision', 'topology'],
)

const oldTypes = [
  'C3600',
  'c7200',
  'VPCSDevice',
  'QemuVM',
  'IOUDevice',
  'VirtualBoxVM',
  'EthernetSwitch',
  'EthernetHub',
  'Cloud',
  'Host',
  'FrameRelaySwitch',
  'ATMSwitch',
  'New',
]
const oldGns3 = some(
  {
    ...{ name: text, type: fc.constant('topology'), version: text, revision: fc.constantFrom(undefined, 1, 2, 3, 4) },
    topology: some(
      {
        nodes: fc.uniqueArray(
          some(
            {
              ...{
                id: fc.integer({ min: 1, max: 3 }),
                type: fc.constantFrom(...oldTypes),
                ...place,
                properties,
                vm_id: fc.constantFrom(...ids),
              },
              ...{ label: some({ text }), default_symbol: text },
              ports: few(
                some({
                  id: fc.nat(4),
                  name: fc.constantFrom('Ethernet0', 'FastEthernet0/1', 'nio_gen_eth:eth0', 'nio_tap:t'),
                  port_number: fc.nat(4),
                  adapter_number: fc.nat(4),
                }),
              ),
            },
            ['id', 'type'],
          ),
          { selector: ({ id }) => id, minLength: 1 },
        ),
        links: few(
          some({
            source_node_id: fc.nat(4),
            source_port_id: fc.nat(4),
            destination_node_id: fc.nat(4),
            destination_port_id: fc.nat(4),
          }),
        ),
        notes: few(fc.object()),
      },
      ['nodes'],
    ),
  },
  ['type', 'revision', 'topology'],
)

/** With a node of which something can always be made. */
function withNode({ topology, ...file }: { topology?: unknown }) {
  const { nodes, ...rest } = (topology ?? {}) as { nodes?: object }
  if (nodes === undefined || Array.isArray(nodes)) return { ...file, ...(topology !== undefined && { topology }) }
  return { ...file, topology: { nodes: { ...nodes, whole: { kind: 'linux' } }, ...rest } }
}

test.each([
  ['containerlab', containerlab],
  ['cml', cml],
  ['gns3', gns3],
  ['gns3', oldGns3],
] as const)(
  'a file in the form of %s becomes a lab file that is valid, whatever its values are (%#)',
  async (format, files) => {
    await fc.assert(
      fc.asyncProperty(files, async (file) => {
        const imported = importLabFile({ text: JSON.stringify(withNode(file as object)), format, hasFile: () => false })
        const lab = labFileText(imported.file)
        expect(filesOf(lab)).toEqual([])
        const { nodes } = await readLabFile(lab)
        expect(nodes).toHaveLength(
          Object.keys(imported.file.nodes).length + Object.keys(imported.file.segments ?? {}).length,
        )
      }),
      { numRuns: 25 },
    )
  },
)
