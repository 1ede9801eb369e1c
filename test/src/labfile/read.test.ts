import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { RE2JS } from 're2js'
import { describe, expect, test } from 'vitest'
import type { DesiredLink } from '../../../src/labfile/desired.ts'
import { linkIdOf, nodeIdOf, projectIdOf } from '../../../src/labfile/ids.ts'
import { LabFileError } from '../../../src/labfile/lab-file-error.ts'
import { type LabFileOptions, readLabFile } from '../../../src/labfile/read.ts'
import { filesOf } from '../../support/named-files.ts'
import { example, exampleFiles } from './example.ts'

/** The lines of the messages about a file. */
async function faultsOf(
  text: string,
  options?: LabFileOptions & { files?: Record<string, string> },
): Promise<string[]> {
  const error = await readLabFile(text, options).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error === undefined) return []
  expect(error).toBeInstanceOf(LabFileError)
  return (error as LabFileError).message.split('\n')
}

const nodesIn = async (nodes: string, rest = '') => {
  const { nodes: found } = await readLabFile(`lab: x\nnodes:\n${nodes.replace(/^/gm, '  ')}\n${rest}`)
  return Object.fromEntries(found.map((node) => [node.name, node]))
}
const faultsIn = (nodes: string, rest = '') => faultsOf(`lab: x\nnodes:\n${nodes.replace(/^/gm, '  ')}\n${rest}`)

const endsOf = ({ ends }: DesiredLink) =>
  ends.map(({ node, adapter_number, port_number = '*' }) => `${node}:${adapter_number}/${port_number}`).join(' ')

test('half a surrogate pair is reported with its position', async () => {
  const why = '\\ud800 is half of a surrogate pair, which UTF-8 does not have: leave it out, or write both halves'
  expect(await faultsIn('"P\\ud800": { kind: pc }')).toEqual([expect.stringContaining(why)])
  const [fault] = await faultsIn('PC1: { kind: pc, config: { text: "\\ud800" } }')
  expect(fault).toContain(`3:36: nodes.PC1.config.text: ${why}`)
  const { PC1 } = await nodesIn('PC1: { kind: pc, config: { text: "\\ud83d\\ude00" } }')
  expect(Object.values(PC1?.configs ?? {})).toMatchObject([{ text: '😀' }])
})

test('files of a container have their texts in the lab file or beside it', async () => {
  const file = (files: string) =>
    `lab: x\nnodes:\n  R1:\n    kind: container\n    image: frr.tar\n    files: ${files}\n`
  const text = file(
    '[{ path: /etc/frr/frr.conf, file: ./r1/frr.conf }, { path: /run.sh, text: "ls\\n", mode: "0755" }]',
  )
  expect(filesOf(text).map(({ path }) => path)).toEqual(['./r1/frr.conf'])
  const { nodes } = await readLabFile(text, { files: { './r1/frr.conf': 'router bgp 1\n' } })
  expect(nodes[0]?.properties.files).toEqual([
    { path: '/etc/frr/frr.conf', text: 'router bgp 1\n' },
    { path: '/run.sh', text: 'ls\n', mode: '0755' },
  ])
  expect(await faultsOf(text)).toEqual([
    '6:13: nodes.R1.files[0]: the content of the file "./r1/frr.conf" was not sent with the lab file',
  ])
  expect(await faultsOf(file('[{ path: /a }, { path: /b, text: "", file: b }]'))).toEqual([
    '6:13: nodes.R1.files[0]: "/a" needs a text or a file; write one of them',
    '6:27: nodes.R1.files[1]: "/b" needs a text or a file; write one of them',
  ])
})

describe('the example', () => {
  test('is that of the document', async () => {
    const page = await readFile(join(import.meta.dirname, '../../../docs/lab-file.md'), 'utf8')
    expect(page).toContain(`\`\`\`yaml\n${example}\`\`\``)
  })

  test('has 12 nodes, 3 segments, their members and the links', async () => {
    const { lab, nodes, links, starting, checks } = await readLabFile(example, { files: exampleFiles })
    expect(lab).toBe('wan-edge')
    expect(nodes.map(({ name }) => name)).toEqual([
      ...['PC1', 'PC2', 'PC3', 'PC4', 'R1', 'R2', 'R3', 'R4', 'CE1', 'CE2', 'FW', 'MON', 'lan1', 'lan2', 'inet'],
    ])
    expect(links.map(endsOf)).toEqual([
      ...['PC1:0/0 lan1:0/*', 'PC2:0/0 lan1:0/*', 'R1:0/0 lan1:0/*'],
      ...['PC3:0/0 lan2:0/*', 'PC4:0/0 lan2:0/*', 'R2:0/0 lan2:0/*', 'FW:1/0 inet:0/*'],
      ...['R1:1/0 R3:0/0', 'R2:1/0 R4:0/0', 'R3:1/0 R4:1/0', 'R3:2/0 FW:0/0', 'CE1:1/0 CE2:1/0', 'CE1:0/0 R1:2/0'],
      ...['CE2:0/0 R2:2/0', 'MON:0/0 R4:2/0'],
    ])
    expect(links.map(({ link_type }) => link_type).filter((type) => type === 'serial')).toHaveLength(1)
    expect(starting).toEqual({ at_once: 4, load_below: 85, give_up: 'stop' })
    expect(checks.map(({ name, within_s }) => [name, within_s])).toEqual([
      ['PC1 pings PC3', 60],
      ['CE1: show ip ospf neighbor', 90],
      ['core is ok', 30],
    ])
  })

  test('names the files whose contents are needed, each with its place', () => {
    expect(filesOf(example)).toMatchObject([
      { path: './r1.yaml', at: { line: 24, path: 'nodes.R1.day0.files.user-data' } },
      { path: './r2.yaml' },
      { path: './ce1.cfg', at: { line: 28, column: 92, path: 'nodes.CE1.config' } },
      { path: './ce2.cfg' },
    ])
  })

  test('is refused without the contents, with the file and the place of each', async () => {
    const { './ce1.cfg': _, ...others } = exampleFiles
    expect(await faultsOf(example, { files: others })).toEqual([
      '28:92: nodes.CE1.config: the content of the file "./ce1.cfg" was not sent with the lab file',
    ])
  })
})

describe('nodes', () => {
  test('take over templates: their own keys win, labels and files of day0 merge', async () => {
    const { R1, R2 } = await nodesIn(
      `R1: { is: small, ram: 512, labels: { site: b }, day0: { files: { b: { text: two } } } }
R2: { is: base }`,
      `templates:
  base: { kind: machine, image: a.img, ram: 128, cpus: 2, labels: { site: a, rack: 7 }, day0: { label: cidata, files: { a: { text: one } } } }
  small: { is: base, ram: 64 }`,
    )
    expect(R1).toMatchObject({
      kind: 'machine-emulator',
      properties: { hda_disk_image: 'a.img', ram: 512, cpus: 2 },
      labels: { site: 'b', rack: '7' },
      day0: { label: 'cidata', files: { a: { text: 'one' }, b: { text: 'two' } } },
    })
    expect(R2?.properties.ram).toBe(128)
  })

  test.each([
    ['R: { is: d }', 'inherits from itself: d, e, d'],
    ['R: { is: five }', 'more than 4 templates inherit from one another: five, four, three, two, one'],
    ['R: { is: fiv }', 'there is no template "fiv"; did you mean "five"?'],
  ])('%s is refused: %s', async (node, message) => {
    const templates = `templates:
  d: { is: e, kind: pc }
  e: { is: d }
  one: { kind: pc }
  two: { is: one }
  three: { is: two }
  four: { is: three }
  five: { is: four }`
    expect((await faultsIn(node, templates)).join()).toContain(message)
  })

  test('a fault of a template is reported once, where it is written', async () => {
    const templates = 'templates:\n  r: { kind: machine, ram: lots }'
    expect(await faultsIn('A: { is: r }\nB: { is: r }', templates)).toEqual([
      '6:28: templates.r.ram: expected an integer from 1 to 16777216, got "lots"',
    ])
    expect(await faultsIn('A: { kind: pc }', templates)).toHaveLength(1)
    // The kind may be in the template that is not there.
    expect(await faultsIn('A: { is: q }', 'templates:\n  r: { kind: pc }')).toHaveLength(1)
  })

  test('image is the setting of its kind; its digest is apart', async () => {
    const sha = 'AB'.repeat(32)
    const { M, I, D } = await nodesIn(`M: { kind: machine, image: "a.qcow2@sha256:${sha}" }
I: { kind: iou, image: b.bin }
D: { kind: dynamips, platform: c7200, image: c@d.image }`)
    expect([M?.properties, M?.imageDigest]).toEqual([
      { hda_disk_image: 'a.qcow2' },
      { algorithm: 'sha256', hex: sha.toLowerCase() },
    ])
    expect(I?.properties).toEqual({ path: 'b.bin' })
    expect(D?.properties).toEqual({ platform: 'c7200', image: 'c@d.image' })
  })

  test('configurations are apart from the properties, with their digests', async () => {
    const { P, I } = await nodesIn(`P: { kind: pc, startup_script: ip dhcp }
I: { kind: iou, image: i, config: { text: a, private: { text: b } } }`)
    expect(P).toMatchObject({ properties: {}, configs: { startup: { text: 'ip dhcp' } } })
    expect(I?.configs).toMatchObject({
      startup: { text: 'a', digest: 'ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb' },
      private: { text: 'b' },
    })
  })

  test('names of ports are a pattern or a list', async () => {
    const { A, B } = await nodesIn(
      `A: { kind: machine, adapters: 3, ports: "Gi0/{1-}" }
B: { kind: machine, adapters: 3, ports: [mgmt, "xe-0/0/0:1"], custom_adapters: [{ adapter_number: 1, mac_address: "00:00:00:00:00:01" }] }`,
      'links: [[A:Gi0/3, "B:xe-0/0/0:1"], ["A:1", B:mgmt]]',
    )
    expect(A?.settings).toEqual({ port_name_format: 'Gi0/{port1}' })
    expect(B?.settings.custom_adapters).toEqual([
      { adapter_number: 0, port_name: 'mgmt' },
      { adapter_number: 1, port_name: 'xe-0/0/0:1', mac_address: '00:00:00:00:00:01' },
    ])
  })

  test('ready is one condition of all', async () => {
    const { A } = await nodesIn(
      'A: { kind: machine, ready: [{ console: "login:", within: 5m }, { tcp: 22 }, { after: 1500ms, within: 2m }] }',
    )
    expect(A?.ready).toEqual({ console: 'login:', tcp: 22, seconds: 1.5, within_s: 300 })
  })

  test.each([
    ['A: { kind: qemu }', 'A.kind: unknown kind "qemu"; did you mean "machine-emulator"?'],
    ['A: { kind: nat }', 'A.kind: a nat is a segment; write it under `segments`'],
    ['A: {}', 'A: the kind is missing'],
    ['A: { is: pc }', 'A.is: there is no template "pc"; it is a kind: write kind: pc'],
    ['A: { kind: pc, imgae: x }', 'A: unknown key "imgae"'],
    ['A: { kind: pc, image: x }', 'a node of kind pc has no "image"'],
    ['A: { kind: iou }', 'A: "image" is missing'],
    ['A: { kind: machine, ram: 2GB }', 'write 2, without a unit (Memory, MB)'],
    ['A: { kind: machine, image: "a@md5:zz" }', 'the md5 digest of an image has 32 hexadecimal digits, got "zz"'],
    ['A: { kind: machine, image: a, hda_disk_image: a }', 'hda_disk_image and image are the same setting'],
    ['A: { kind: machine, day0: { files: { a: { text: b } } } }', '"label" is missing'],
    ['A: { kind: machine, cdrom_image: x, day0: { label: c, files: {} } }', 'need the same drive'],
    ['A: { kind: machine, day0: { label: c, files: { ../a: b } } }', 'expected the name of a file'],
    ['A: { kind: machine, ports: "eth{1}" }', 'write {0} once, or {1-} to count from 1: eth{1-}'],
    ['A: { kind: machine, ports: [a, A] }', 'two ports have the name "A"'],
    ['A: { kind: iou, image: i, ports: "e{0}" }', 'the ports of a node of kind iou have fixed names'],
    ['A: { kind: iou, image: i, ethernet_adapters: 9, serial_adapters: 9 }', 'expected at most 16 in all, got 9 and 9'],
    ['A: { kind: dynamips, platform: c3725, image: i, slot3: NM-4T }', 'A.slot3: slot3: a c3725 has 3 slots'],
    ['A: { kind: iou, image: i, config: { text: "" } }', 'cannot have an empty configuration'],
    ['A: { kind: pc, config: { text: a, private: { text: b } } }', 'a node of kind pc has no private configuration'],
    ['A: { kind: pc, ready: { console: "(" } }', 'not a regular expression'],
    ['A: { kind: pc, ready: { console: "(?=x)" } }', '"(?=" cannot be used here'],
    ['A: { kind: pc, ready: { within: 5 } }', 'expected a time such as 20ms, 5s or 2m, got 5; write 5s'],
    [
      'A: { kind: machine, console_type: vnc, ready: { console: x } }',
      'console needs a text console; console_type is vnc',
    ],
    ['A: { kind: pc, console: 5001 }\nB: { kind: pc, console: 5001 }', '"A" already has the console port 5001'],
    ['A: { kind: pc, after: [B] }', 'there is no node "B"'],
    ['A: { kind: pc, after: [a] }', '"A" cannot start after itself'],
    ['A: { kind: pc, after: [B] }\nB: { kind: pc, start: false }', '"B" will not be started'],
    [
      'A: { kind: pc, after: [B] }\nB: { kind: pc, after: [C] }\nC: { kind: pc, after: [A] }',
      'A after B after C after A',
    ],
    ['A: { kind: pc, was: B }\nB: { kind: pc }', '"B" is also a name in the file'],
    ['A: { kind: pc }\na: { kind: pc }', 'the name "a" is taken by "A": names are not case-sensitive'],
    ['A/B: { kind: pc }', '"A/B" is not a valid node name'],
    ['4d5e5b1a-0000-4000-8000-000000000000: { kind: pc }', 'looks like an id (UUID)'],
    ['A: pc', 'a node is a map, such as { kind: pc }'],
  ])('%s is refused: %s', async (node, message) => {
    expect((await faultsIn(node)).join('\n')).toContain(message)
  })
})

describe('segments and links', () => {
  const pcs = 'A: { kind: pc }\nB: { kind: pc }\nC: { kind: pc }'
  const linksIn = async (rest: string) =>
    (await readLabFile(`lab: x\nnodes:\n${pcs.replace(/^/gm, '  ')}\n${rest}`)).links

  test('members are linked in their order; tagging is that of their ports', async () => {
    const links = await linksIn(`segments:
  s1:
    kind: switch
    ports: { 7: { trunk: true, vlan: 9 } }
    members: [A, { end: B, port: 3, vlan: 20 }, { end: s2, trunk: true, name: up, delay: 1ms }]
  s2: { kind: switch, members: [{ end: C, qinq: 5, ethertype: 0x88A8 }] }
  h: { kind: hub }
links: [[s1:7, h]]`)
    expect(
      links.map(({ ends, memberOf, name }) => [
        memberOf,
        name,
        ...ends.map(({ node, port_number, port }) => [node, port_number, port]),
      ]),
    ).toEqual([
      ['s1', undefined, ['A', 0, undefined], ['s1', undefined, undefined]],
      ['s1', undefined, ['B', 0, undefined], ['s1', 3, { vlan: 20 }]],
      ['s1', 'up', ['s2', undefined, { type: 'dot1q' }], ['s1', undefined, { type: 'dot1q' }]],
      ['s2', undefined, ['C', 0, undefined], ['s2', undefined, { type: 'qinq', vlan: 5, ethertype: '0x88A8' }]],
      [undefined, undefined, ['s1', 7, undefined], ['h', undefined, undefined]],
    ])
  })

  test('ports and devices of segments are members of ports_mapping', async () => {
    const { nodes } = await readLabFile(`lab: x
nodes: {}
segments:
  s: { kind: switch, ports: { 1: { name: up, trunk: true, vlan: 9 } }, ageing_time: 60 }
  c: { kind: cloud, device: eth1, ports: { 2: { type: tap, interface: tap0 } } }
  n: { kind: nat, subnet: 10.1.0.0/24 }`)
    expect(nodes.map(({ kind, segment, properties }) => ({ kind, segment, properties }))).toEqual([
      {
        kind: 'switch',
        segment: { everyPort: {}, ports: { 1: { name: 'up', type: 'dot1q', vlan: 9 } } },
        properties: { ageing_time: 60 },
      },
      {
        kind: 'cloud',
        segment: {
          everyPort: { type: 'ethernet', interface: 'eth1' },
          ports: { 2: { type: 'tap', interface: 'tap0' } },
        },
        properties: {},
      },
      { kind: 'nat', segment: { everyPort: {}, ports: {} }, properties: { subnet: '10.1.0.0/24' } },
    ])
  })

  test.each([
    ['delay: 20ms', { delay: [20] }, { delay: [20] }],
    ['rate: 1.5gbit, burst: 64kb', { rate: [1_500_000, 64] }, { rate: [1_500_000, 64] }],
    ['rate: 10mbit, longest_wait: 1s', { rate: [10_000, 16, 1000] }, { rate: [10_000, 16, 1000] }],
    [
      'delay: 20ms, jitter: 500us, loss: 1%, there: { delay: 40ms }, back: { loss: 0 }',
      { packet_loss: [1], delay: [40, 0.5] },
      { delay: [20, 0.5] },
    ],
    ['delay: 20ms, jitter: 5ms, back: { delay: 0 }', { delay: [20, 5] }, {}],
    ['drop_every: -1, there: { bpf: "icmp" }', { frequency_drop: [-1], bpf: ['icmp'] }, { frequency_drop: [-1] }],
    ['reorder: 5%, held: 20ms, duplicate: 0', { reorder: [5, 20] }, { reorder: [5, 20] }],
  ])('{ %s } is filters of each direction', async (keys, filters_ab, filters_ba) => {
    const [link] = await linksIn(`links: [{ ends: [A, B], ${keys} }]`)
    expect(link).toMatchObject({ filters_ab, filters_ba })
    expect(Object.keys(link?.filters_ab ?? {})).toEqual(Object.keys(filters_ab))
    expect(Object.keys(link?.filters_ba ?? {})).toEqual(Object.keys(filters_ba))
  })

  test.each([
    ['links: [[A, D]]', 'links[0][1]: there is no node "D"'],
    ['links: [[A:eth1, B]]', 'A has no port "eth1"; it has e0'],
    ['links: [[A, B], [A, C]]', 'A:Ethernet0 is already linked; in line 6'],
    ['links: [[A, A]]', 'cannot be linked to its own port'],
    ['links: [[A, B, C]]', 'expected two ends'],
    ['links: [{ ends: [A, B], delay: 20 }]', 'expected a time such as 20ms, 5s or 2m, or 0, got 20; write 20ms'],
    ['links: [{ ends: [A, B], rate: 10Mbps }]', 'write 10mbit'],
    ['links: [{ ends: [A, B], loss: 0.5 }]', 'write 0.5%'],
    ['links: [{ ends: [A, B], loss: 120% }]', 'expected loss of at most 100%'],
    ['links: [{ ends: [A, B], jitter: 5ms }]', 'jitter needs delay'],
    ['links: [{ ends: [A, B], back: { held: 5ms } }]', 'held needs reorder'],
    ['links: [{ ends: [A, B], name: x }, { ends: [A, C], name: X }]', 'the name "X" is taken by the link in line 6'],
    ['links: [{ ends: [A, B], capture: a/b }]', 'capture: expected true, or the name of a file'],
    ['segments: { a: { kind: switch } }', 'the name "a" is taken by "A"'],
    ['segments: { s: { kind: pc } }', 'a pc is a node; write it under `nodes`'],
    ['segments: { s: { kind: swich } }', 'did you mean "switch"?'],
    ['segments: { s: { kind: switch, members: [A, A] } }', 'A:Ethernet0 is already linked'],
    ['segments: { s: { kind: switch, members: [s] } }', '"s" cannot be linked to itself'],
    ['segments: { s: { kind: hub, members: [{ end: A, vlan: 2 }] } }', 'only a switch has VLANs'],
    ['segments: { s: { kind: switch, members: [{ end: A, vlan: 2, qinq: 3 }] } }', 'qinq cannot be combined with vlan'],
    ['segments: { s: { kind: switch, members: [{ end: A, ethertype: 0x8100 }] } }', 'ethertype needs qinq'],
    ['segments: { s: { kind: switch, members: [{ end: A, port: 1 }, { end: B, port: 1 }] } }', 's:1 is already linked'],
    [
      'segments: { s: { kind: switch, ports: { 1: { vlan: 2 } }, members: [{ end: A, port: 1, vlan: 3 }] } }',
      'also has its VLAN under ports',
    ],
    [
      'segments: { s: { kind: switch, ports: { x: {} } } }',
      '"x" is not a valid key here; expected the number of a port',
    ],
    ['segments: { s: { kind: cloud } }', 'a cloud needs device, or ports'],
    ['segments: { s: { kind: nat, members: [{ end: A, port: 256 }] } }', 'a nat has no port 256; ports are 0 to 255'],
  ])('%s is refused: %s', async (rest, message) => {
    expect((await faultsIn(pcs, rest)).join('\n')).toContain(message)
  })

  test('ethernet and serial ports cannot be linked', async () => {
    const faults = await faultsIn('I: { kind: iou, image: i }\nP: { kind: pc }', 'links: [[I:s2/0, P]]')
    expect(faults).toEqual(['5:9: links[0]: I Serial2/0 is serial, P Ethernet0 is ethernet; both must be the same'])
  })
})

describe('checks', () => {
  const nodes = 'P: { kind: pc, config: { text: "ip 10.0.0.1/24" } }\nQ: { kind: pc }\nI: { kind: iou, image: i }'
  test('are ping, console, link, and not', async () => {
    const { checks } = await readLabFile(`lab: x
nodes:
${nodes.replace(/^/gm, '  ')}
links: [{ ends: [P, Q], name: Core }]
checks:
  - { from: Q, ping: p }
  - { from: P, ping: 2001:db8::1, within: 1m, name: v6 }
  - { on: I, type: "show \${x}", expect: "^FULL" }
  - { link: core, verdict: silent }
  - not: { from: P, ping: 10.0.0.9 }`)
    expect(checks).toMatchObject([
      { check: 'ping', name: 'Q pings p', from: 'Q', address: '10.0.0.1', within_s: 30 },
      { check: 'ping', name: 'v6', address: '2001:db8::1', within_s: 60 },
      { check: 'console', on: 'I', type: `show \${x}`, expect: '^FULL' },
      { check: 'link', link: 'Core', verdict: 'silent' },
      { check: 'not', within_s: 5, of: { check: 'ping', address: '10.0.0.9' } },
    ])
  })

  test.each([
    ['{ from: I, ping: P }', '"I" is not a pc'],
    ['{ from: P, ping: Q }', '"Q" is not a pc with an address in its config; write the address'],
    ['{ from: P, ping: host }', '"host" is neither a node nor an address'],
    ['{ from: P }', '"ping" is missing; this check has from, ping'],
    ['{ from: P, ping: P, expect: x }', 'expect belongs to another type of check'],
    ['{ on: I, type: x, expect: "[" }', 'not a regular expression'],
    ['{ link: core, verdict: ok }', 'there is no link "core"; give a link a name'],
    ['{ name: x }', 'this is not a check'],
    ['{ not: { from: P, ping: P }, within: 5s }', 'not cannot be combined with within'],
    ['{ from: P, ping: P, within: 2h }', 'expected a time from 1s to 1h, got 2h'],
  ])('%s is refused: %s', async (check, message) => {
    expect((await faultsIn(nodes, `checks: [${check}]`)).join('\n')).toContain(message)
  })

  test('have all their faults reported at once, and none that follows from another', async () => {
    const both = [expect.stringContaining('unknown key "pingg"'), expect.stringContaining('there is no node "X"')]
    expect(await faultsIn(nodes, 'checks: [{ from: X, pingg: P }]')).toEqual(expect.arrayContaining(both))
    expect(await faultsIn(nodes, 'checks: [{ from: X, pingg: P }]')).toHaveLength(2)
    expect(await faultsIn(nodes, 'checks: [{ from: X }]')).toEqual([
      expect.stringContaining('"ping" is missing'),
      expect.stringContaining('there is no node "X"'),
    ])
    expect(await faultsIn(nodes, 'checks: [{ lnk: core, verdict: ok }]')).toEqual([
      expect.stringContaining('unknown key "lnk"'),
    ])
  })
})

describe('variables', () => {
  test('are replaced, also with their types; text for consoles and configurations stays', async () => {
    const text = `lab: x
vars: { size: 64, site: lab, on: true }
nodes:
  A: { kind: machine, ram: "\${size}", image: "\${site}-\${size}.img", kernel_command_line: "a=$\${site}", linked_clone: "\${on}" }
  B: { kind: pc, config: { text: "echo \${site}" }, ready: { console: "[\${x}]" } }`
    const { nodes } = await readLabFile(text)
    expect(nodes[0]?.properties).toEqual({
      ...{ ram: 64, hda_disk_image: 'lab-64.img', kernel_command_line: `a=\${site}`, linked_clone: true },
    })
    expect([nodes[1]?.configs.startup?.text, nodes[1]?.ready?.console]).toEqual([`echo \${site}`, `[\${x}]`])
    const { nodes: other } = await readLabFile(text, { vars: { size: '128' } })
    expect(other[0]?.properties.ram).toBe(128)
  })

  test.each([
    [`A: { kind: machine, image: "\${imgg}" }`, {}, 'there is no variable "imgg"; did you mean "img"?'],
    [`A: { kind: machine, image: "\${img" }`, {}, 'begins a variable, but "}" is missing'],
    [`A: { kind: machine, image: \${img} }`, {}, `write a value with \${...} in quotes inside { } and [ ]`],
    ['A: { kind: pc }', { imgg: 'x' }, 'the file has no variable "imgg"; did you mean "img"?'],
  ])('%s with %o is refused: %s', async (node, vars, message) => {
    expect((await faultsOf(`lab: x\nvars: { img: a }\nnodes:\n  ${node}`, { vars })).join('\n')).toContain(message)
  })
})

describe('YAML', () => {
  const pc = 'nodes: { A: { kind: pc } }'
  test.each([
    [`lab: x\n${pc}\n---\nlab: y`, '3:1: a second document begins here'],
    [`lab: x\nlab: y\n${pc}`, '2:1: the key "lab" occurs twice'],
    ['lab: x\nnodes: { A: { kind: pc }, "A": { kind: pc } }', 'the key "A" occurs twice'],
    [`%YAML 1.1\n---\nlab: x\n${pc}`, 'directives (lines that begin with %) are not allowed'],
    [`lab: !!str x\n${pc}`, 'tags (here "tag:yaml.org,2002:str") are not allowed'],
    ['lab: x\nnodes: { A: { <<: { kind: pc } } }', 'the merge key << is not allowed; use `templates` and `is`'],
    ['lab: x\nnodes: { ? [a] : { kind: pc } }', 'a key must be a string'],
    ['lab: x\nnodes: { A: *pc }', 'there is no anchor "pc" before this alias'],
    ['lab: x\nnodes: &n { A: *n }', 'this alias names a value that contains it'],
    [`lab: x\nabout: "a\n${pc}`, 'Missing closing "quote'],
    [`lab: x\n${pc}\nlinks: ${'['.repeat(100)}`, 'maps and lists are nested more than 64 deep'],
    ['- lab', 'a lab file is a map'],
    ['', 'a lab file is a map'],
    [`lab: x\n${pc}\n#${'x'.repeat(1 << 20)}`, 'the file has more than 1 MiB'],
    [`lab: x\n${pc}\nlinkz: []`, '3:1: unknown key "linkz"; did you mean "links"?'],
    [`lab: "a\\u001b[31m"\n${pc}`, 'got "a\\u001b[31m"'],
  ])('%j is refused: %s', async (text, message) => {
    expect((await faultsOf(text)).join('\n')).toContain(message)
  })

  test('anchors and aliases may be used, at most 100 of them', async () => {
    const { nodes } = await readLabFile('lab: x\nnodes: { A: &pc { kind: pc, labels: { a: b } }, B: *pc }')
    expect(nodes.map(({ labels }) => labels)).toEqual([{ a: 'b' }, { a: 'b' }])
    const many = Array.from({ length: 101 }, (_, index) => `N${index}: *pc`)
    expect(await faultsOf(`lab: x\nnodes: { A: &pc { kind: pc }, ${many.join(', ')} }`)).toEqual([
      expect.stringContaining('the file has more than 100 aliases'),
    ])
    const doubled = Array.from({ length: 40 }, (_, index) => `  a${index + 1}: &a${index + 1} [*a${index}, *a${index}]`)
    expect(await faultsOf(`lab: x\nvars:\n  a0: &a0 1\n${doubled.join('\n')}\n${pc}`)).toEqual([
      expect.stringContaining('the file has more than 100 aliases'),
    ])
  })

  test('a file may have a byte order mark, and CR LF', async () => {
    const { lab } = await readLabFile('\ufefflab: x\r\nnodes:\r\n  A: { kind: pc }\r\n')
    expect(lab).toBe('x')
    expect(await faultsOf('\ufefflabb: x\r\nnodes: {}\r\n')).toContain('1:1: unknown key "labb"; did you mean "lab"?')
  })

  test('JSON is a lab file, too', async () => {
    const { nodes } = await readLabFile('{"lab": "x", "nodes": {"A": {"kind": "pc", "at": [1, 2]}}}')
    expect(nodes).toMatchObject([{ name: 'A', settings: { x: 1, y: 2 } }])
  })

  test('all faults are reported at once, at most 20, in the order of the file, and how many are left', async () => {
    const many = (length: number) =>
      faultsIn(Array.from({ length }, (_, index) => `N${index}: { kind: pcc }`).join('\n'))
    const faults = await many(33)
    expect(faults).toHaveLength(21)
    expect(faults[0]).toMatch(/^3:15: nodes\.N0\.kind: unknown kind "pcc"; did you mean "pc"\?$/)
    expect(faults[20]).toBe('and 13 more')
    expect(await many(20)).toHaveLength(20)
    expect((await many(200)).at(-1)).toBe('and 180 more')
    // The reading has ended there.
    expect((await many(300)).at(-1)).toBe('and at least 181 more')
  })
})

describe('ids', () => {
  test('are those of their names: the same file is the same lab anywhere', async () => {
    const { project_id, nodes } = await readLabFile('lab: x\nnodes: { R1: { kind: pc } }')
    expect(project_id).toBe(projectIdOf('x'))
    expect(nodes[0]?.node_id).toBe(nodeIdOf('x', 'r1'))
    const [a, b] = [
      { node: 'R1', adapter_number: 0, port_number: 0 },
      { node: 'R2', adapter_number: 1, port_number: 0 },
    ]
    expect(linkIdOf('x', [a, b])).toBe(linkIdOf('x', [b, { ...a, node: 'r1' }]))
    expect(linkIdOf('x', 'Core')).toBe(linkIdOf('x', 'core'))
  })

  test('another name makes another lab', async () => {
    const { lab, project_id } = await readLabFile('lab: x\nnodes: { R1: { kind: pc } }', { name: 'student-7' })
    expect([lab, project_id]).toEqual(['student-7', projectIdOf('student-7')])
    expect(await faultsOf('lab: x\nnodes: {}', { name: 'Student' })).toEqual([
      expect.stringContaining('"Student" is not a valid lab name'),
    ])
  })
})

describe('files', () => {
  test('outside of the directory are refused, unless they are allowed', () => {
    const text = 'lab: x\nnodes:\n  A: { kind: pc, config: ../a.cfg }\n  B: { kind: pc, config: a/../b.cfg }'
    expect(() => filesOf(text)).toThrow(
      '3:26: nodes.A.config: the file "../a.cfg" is not in the directory of the lab file; --allow-outside allows it',
    )
    expect(filesOf(text, { allowOutside: true })).toHaveLength(2)
    expect(() => filesOf('lab: x\nnodes: { A: { kind: pc, config: /etc/passwd } }')).toThrow('/etc/passwd')
  })
})

describe('a regular expression', () => {
  const lacking = [
    ...['(?=a)b', 'a(?!b)', '(?<=a)b', '(?<!a)b', '(a)\\1', '(?<n>a)\\k<n>', '\\u0041', '\\cA', '[]', '[^]', '[a\\b]'],
    ...['\\p{Letter}', '\\p{Script=Greek}', '\\P{ASCII}', 'a{1001}', 'a{2,5000}'],
  ]
  const right = [
    ...[
      'login: $',
      '^R1[>#]',
      '(?:a|b)+?',
      '(?<n>a)',
      '\\bword\\b',
      '\\[ok\\]\\b',
      '\\p{L}\\p{Lu}',
      '\\x41',
      'a{0,1000}',
    ],
    ...['\\\\1', '\\(?=a', '[^\\n]*', '[\\w.-]+', '😀|é', '(?i:full)', '\\d+\\.\\d+', '192\\.0\\.2\\.3 .*Full'],
  ]
  const faults = (source: string) =>
    faultsIn(`A: { kind: pc, ready: { console: ${JSON.stringify(source)} } }`, 'links: []')

  test('that RE2 refuses is a fault with its position', async () => {
    for (const source of lacking) {
      expect(() => RE2JS.compile(source, RE2JS.MULTILINE), source).toThrow()
      expect(await faults(source), source).toEqual([
        expect.stringMatching(/^3:36: nodes\.A\.ready\.console: .* cannot be used here; /),
      ])
    }
  })

  test('that RE2 accepts, too, is valid', async () => {
    for (const source of right) {
      expect(() => RE2JS.compile(source, RE2JS.MULTILINE), source).not.toThrow()
      expect(await faults(source), source).toEqual([])
    }
  })
})

test('a fault in a link or a segment does not hide the others in it', async () => {
  const file = `lab: a
nodes:
  A: { kind: pc }
  B: { kind: pc }
segments:
  s: { kind: switch, at: [0], members: [{ end: A, delay: 10, loss: 120% }, { end: nobody, rate: 5 }] }
  c: { kind: cloud, device: [] }
links:
  - { ends: [B, nobody], delay: x, jitter: 5ms, there: { rate: 1, loss: 200% }, colour: red }
`
  const error = await readLabFile(file).catch((it: unknown) => it)
  const found = (error as LabFileError).diagnostics.map(({ line, path, message }) => `${line} ${path}: ${message}`)
  expect(found.map((it) => it.replace(/, got .*/, ''))).toEqual([
    expect.stringContaining('6 segments.s.at: expected'),
    expect.stringContaining('6 segments.s.members[0].delay: expected a time'),
    '6 segments.s.members[0].loss: expected loss of at most 100%',
    '6 segments.s.members[1].end: there is no node "nobody"',
    expect.stringContaining('6 segments.s.members[1].rate: expected'),
    expect.stringContaining('7 segments.c.device: expected'),
    '9 links[0].ends[1]: there is no node "nobody"',
    expect.stringContaining('9 links[0].delay: expected'),
    expect.stringContaining('9 links[0].there.rate: expected'),
    '9 links[0].there.loss: expected loss of at most 100%',
    '9 links[0]: unknown key "colour"',
  ])
})

describe('tasks', () => {
  const nodes = 'P: { kind: pc, config: { text: "ip 10.0.0.1/24" } }\nQ: { kind: pc }'
  const checks = 'checks: [{ from: Q, ping: P }, { name: Up, on: Q, type: x, expect: y }]\n'
  const tasksIn = async (tasks: string) => (await readLabFile(file(`${checks}tasks: ${tasks}`))).tasks
  const file = (rest: string) => `lab: x\nnodes:\n${nodes.replace(/^/gm, '  ')}\n${rest}`
  const faultsOfTasks = async (tasks: string) => (await faultsIn(nodes, `${checks}tasks: ${tasks}`)).join('\n')

  test('name checks of the file in any case, and count one point unless they say otherwise', async () => {
    expect(
      await tasksIn('[{ name: Reach P, text: "Make *Q* reach `P`.", checks: [q pings p, up], points: 3 }]'),
    ).toEqual([{ name: 'Reach P', text: 'Make *Q* reach `P`.', checks: ['Q pings P', 'Up'], points: 3 }])
    expect(await tasksIn('[{ name: Read this }]')).toEqual([{ name: 'Read this', text: '', checks: [], points: 1 }])
  })

  test('a file without the section says nothing of tasks; an empty list says that there are none', async () => {
    expect((await readLabFile(file(checks))).tasks).toBeUndefined()
    expect((await readLabFile(file('tasks:'))).tasks).toBeUndefined()
    expect(await tasksIn('[]')).toEqual([])
  })

  test('their text is as it is written: it has no variables', async () => {
    const [task] = (await tasksIn(`[{ name: a, text: "export PS1=$\{x}" }]`)) ?? []
    expect(task?.text).toBe(`export PS1=$\{x}`)
  })

  test.each([
    ['[{ text: x }]', '6:9: tasks[0]: "name" is missing'],
    ['[{ name: a, checks: [Upp] }]', '6:29: tasks[0].checks[0]: there is no check "Upp"; did you mean "Up"?'],
    ['[{ name: a }, { name: A }]', '6:30: tasks[1].name: the name "A" is taken by the task in line 6'],
    ['[{ name: "a\\nb" }]', 'expected a string of 1 to 255 characters, in one line'],
    [`[{ name: ${'n'.repeat(10_000)} }]`, 'expected a string of 1 to 255 characters, in one line'],
    [`[{ name: a, text: ${'x'.repeat(10_001)} }]`, 'tasks[0].text: expected'],
    [
      `[${Array.from({ length: 21 }, (_, index) => `{ name: t${index}, text: ${'x'.repeat(10_000)} }`).join(', ')}]`,
      'the texts of the tasks have 210000 characters; together they have at most 200000',
    ],
    [`[${Array.from({ length: 101 }, (_, index) => `{ name: t${index} }`).join(', ')}]`, 'tasks[0]: expected'],
    ['[{ name: a, points: -1 }]', 'tasks[0].points: expected'],
    ['[{ name: a, solution: x }]', 'unknown key "solution"'],
    ['{ name: a }', 'tasks: expected'],
  ])('%.60s is refused', async (tasks, message) => {
    expect(await faultsOfTasks(tasks)).toContain(message)
  })

  test('a name that two checks have is refused', async () => {
    const twice = 'checks: [{ name: up, from: Q, ping: P }, { name: Up, from: Q, ping: P }]\n'
    expect(await faultsIn(nodes, `${twice}tasks: [{ name: a, checks: [up] }]`)).toEqual([
      '6:29: tasks[0].checks[0]: 2 checks have the name "up"; give each its own name',
    ])
  })

  test('the fault of a check is not reported again at the tasks that name it', async () => {
    expect(
      await faultsIn(nodes, 'checks: [{ name: up, from: X, ping: P }]\ntasks: [{ name: a, checks: [up] }]'),
    ).toEqual([expect.stringContaining('there is no node "X"')])
  })

  test('names in any script are taken as they are', async () => {
    const names = ['تمرين ١', '演習', '<script>']
    const tasks = await tasksIn(JSON.stringify(names.map((name) => ({ name }))))
    expect(tasks?.map(({ name }) => name)).toEqual(names)
    // One that turns the direction of the text after it is not.
    expect(await faultsOfTasks('[{ name: "\\u202eleft" }]')).toContain('in one line, got "\\u202eleft"')
  })
})
