import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { containerlabOf, type ExportedFile } from '../../../src/exporters/containerlab.ts'
import { importLabFile } from '../../../src/importers/formats.ts'
import type { Desired } from '../../../src/labfile/desired.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { labFileText } from '../../../src/labfile/text.ts'

const exported = async (text: string) => {
  const { text: topology, ...more } = containerlabOf(await readLabFile(text))
  return { topology: parse(topology), text: topology, ...more }
}

const withoutVariables = (text: string) => text.replaceAll('${', () => '$${')

/** A topology with the files beside it, imported as a lab file. */
async function imported(text: string, files: readonly ExportedFile[]): Promise<Desired> {
  const beside = (path: string) =>
    files
      .filter((file) => file.path === path)
      .map(({ mode }) => ({ path, isText: true, isProgram: (Number.parseInt(mode, 8) & 0o111) !== 0 }))
  const { file, leftOut } = importLabFile({ text, filesAt: beside })
  expect(leftOut.filter(({ effect }) => effect === 'left-out')).toEqual([])
  return readLabFile(labFileText(file), {
    files: Object.fromEntries(files.map((it) => [`./${it.path}`, it.text])),
  })
}

/** What a lab is, in the words that do not depend on how a file writes it. */
const meaning = ({ lab, management, nodes, links }: Desired) => ({
  lab,
  management,
  nodes: nodes.map(({ name, kind, properties, settings: { x, y }, labels, after, management: own }) => ({
    ...{ name, kind, properties, x, y, labels, after, address: own?.address },
  })),
  links: links.map(({ ends }) =>
    ends.map(({ node, adapter_number, port }) => ({ node, adapter_number, type: port?.type })),
  ),
})

const lab = `
lab: branch
management: { network: 10.9.0.0/24 }
nodes:
  r1:
    kind: container
    image: quay.io_frrouting_frr_10.1.1.tar
    symbol: router
    adapters: 2
    at: [10, -20]
    labels: { site: north }
    management: { address: 10.9.0.11, ports: ["2211:22", "0.0.0.0:8053:53/udp"] }
    files:
      - { path: /etc/frr/daemons, text: "zebra=yes\\n" }
      - { path: /opt/daemons, text: "other\\n" }
      - { path: /setup.sh, text: "exit\\n", mode: "0755" }
    sysctls: net.ipv4.ip_forward=1
    capabilities: [SYS_ADMIN]
    consoles: [{ name: vtysh, exec: vtysh }, { name: shell, exec: /bin/sh }]
    exec: |-
      ip address add 10.0.1.1/24 dev eth1
      sh -c 'echo "$HOME $\${X:-y}" > /tmp/home'
  h1:
    kind: container
    image: alpine_latest.tar
    adapters: 1
    command: sleep infinity
    entrypoint: /sbin/tini --
    environment: |-
      TZ=UTC
      EMPTY=
    user: "1000:50"
    ram: 64
    cpus: 0.5
    shm: 128
    after: [r1]
  alone: { kind: container, image: busybox.tar, adapters: 1, management: false }
segments:
  sw: { kind: switch, members: [{ end: h1, trunk: true }, { end: r1:eth2, trunk: true }] }
links:
  - [r1:eth1, alone]
`

test('an import of the export makes the same lab', async () => {
  const desired = await readLabFile(lab)
  const { text, files, leftOut } = containerlabOf(desired)
  expect(leftOut).toEqual([
    'The image busybox.tar, which Docker must have under this name.',
    'The bridge sw, which the host must have under this name.',
  ])
  const again = await imported(text, files)
  const loopback = (it: Desired) =>
    JSON.parse(JSON.stringify(meaning(it)).replaceAll('"host_address":"127.0.0.1",', ''))
  expect(loopback(again)).toEqual(loopback(desired))
  expect(containerlabOf(again).text).toBe(text)
})

test('a container has its image, settings, files and addresses in the words of containerlab', async () => {
  const { topology, files, text } = await exported(lab)
  expect(topology).toEqual({
    name: 'branch',
    mgmt: { network: 'branch', 'ipv4-subnet': '10.9.0.0/24' },
    topology: {
      nodes: {
        r1: {
          kind: 'linux',
          image: 'quay.io/frrouting/frr:10.1.1',
          binds: [
            'configs/r1/daemons:/etc/frr/daemons',
            'configs/r1/2-daemons:/opt/daemons',
            'configs/r1/setup.sh:/setup.sh',
          ],
          sysctls: { 'net.ipv4.ip_forward': '1' },
          'cap-add': ['SYS_ADMIN'],
          exec: ['ip address add 10.0.1.1/24 dev eth1', `sh -c 'echo "$$HOME $$\{X:-y}" > /tmp/home'`],
          'mgmt-ipv4': '10.9.0.11',
          // Without an address it would be open on all addresses of the host.
          ports: ['127.0.0.1:2211:22', '0.0.0.0:8053:53/udp'],
          labels: { site: 'north', 'graph-posX': '10', 'graph-posY': '-20' },
        },
        h1: {
          kind: 'linux',
          image: 'alpine:latest',
          cmd: 'sleep infinity',
          entrypoint: '/sbin/tini --',
          env: { TZ: 'UTC', EMPTY: '' },
          user: '1000:50',
          memory: '64mb',
          cpu: 0.5,
          'shm-size': '128mb',
          'mgmt-ipv4': expect.stringMatching(/^10\.9\.0\./),
          stages: { create: { 'wait-for': [{ node: 'r1', stage: 'configure' }] } },
        },
        alone: { kind: 'linux', image: 'busybox.tar', 'network-mode': 'none' },
        sw: { kind: 'bridge' },
      },
      links: [
        { endpoints: ['h1:eth1', 'sw:branch-p1'] },
        { endpoints: ['r1:eth2', 'sw:branch-p2'] },
        { endpoints: ['r1:eth1', 'alone:eth0'] },
      ],
    },
  })
  expect(files).toContainEqual({ path: 'configs/r1/setup.sh', text: 'exit\n', mode: '0755' })
  // Readers of YAML 1.1 take it as a number of base 60 without quotes.
  expect(text).toContain('"1000:50"')
})

test('what containerlab cannot have is named, in the file, too', async () => {
  const { text, leftOut, topology } = await exported(`
lab: rest
nodes:
  PC1: { kind: pc }
  '{{ x }}': { kind: pc }
  R1: { kind: machine, platform: x86_64, adapters: 2 }
  my host:
    kind: container
    image: alpine_latest.tar
    adapters: 3
    hosts: 10.0.0.1 server
    workdir: /srv
    consoles: [{ name: top, exec: top }]
    exec: echo '{{ x }}'
    files: [{ path: "/a:b", text: x }]
    labels: { graph-icon: host }
    start: false
    after: [PC1]
    ready: { after: 5s }
  b: { kind: container, image: alpine_latest.tar }
segments:
  vlans: { kind: switch, members: [{ end: PC1, vlan: 10 }] }
  inet: { kind: nat, members: [b] }
links:
  - { name: core, ends: ["my host", R1] }
  - { name: slow, ends: ["my host:eth1", R1:e1], delay: 20ms }
checks:
  - { link: core, verdict: ok }
tasks:
  - { name: Look }
`)
  expect(leftOut).toEqual([
    'The pc PC1, with its links.',
    'The pc {{ x }}, with its links.',
    'The machine R1, with its links.',
    'The switch vlans, with its links.',
    'The nat inet, with its links.',
    'The container my host: its name, which is my-host here.',
    'The container my host: hosts, workdir, ready, graph-icon, start, adapters after the last link, consoles, after, the file /a:b, the command "echo \'{{ x }}\'" (it would be a template there).',
    'The checks.',
    'The tasks.',
  ])
  expect(text.match(/^# \* .*$/gm)).toHaveLength(leftOut.length)
  expect(text).not.toContain('{{')
  expect(Object.keys(topology.topology.nodes)).toEqual(['my-host', 'b'])
  expect(topology.topology.links).toBe(undefined)
  const impaired = await exported(
    'lab: a\nnodes: { x: { kind: container, image: a_1.tar }, y: { kind: container, image: a_1.tar } }\n' +
      'links: [{ name: slow, ends: [x, y], delay: 20ms, down: true }]\n',
  )
  expect(impaired.leftOut).toEqual(['name, down, delay of the link x -- y.'])
})

test('what an import would make otherwise is named', async () => {
  const { text, files, leftOut } = await exported(`
lab: a
about: a trial
management: { name: oob, at: [1, 2] }
starting: { give_up: go-on }
nodes:
  r1: { kind: container, image: frrouting_frr_v8.4.0.tar }
  h1:
    kind: container
    image: alpine_latest.tar
    symbol: server
    files:
      - { path: /key, text: x, mode: "0600" }
      - { path: /run, text: x, mode: "700" }
      - { path: /plain, text: x, mode: "644" }
segments:
  sw: { kind: switch, symbol: cloud, members: [{ end: h1, trunk: true }, { end: r1, trunk: true }] }
`)
  expect(leftOut).toEqual([
    'The container r1: consoles, capabilities (an import adds SYS_ADMIN), symbol.',
    'The container h1: the mode of /key (0644 after an import), the mode of /run (0755 after an import).',
    'The switch sw: symbol.',
    'The bridge sw, which the host must have under this name.',
    'name, at of the management network.',
    'What the lab is for.',
    'How the nodes are started.',
  ])
  const again = await imported(text, files)
  expect(again.nodes.find(({ name }) => name === 'r1')).toMatchObject({
    settings: { symbol: 'router' },
    properties: { capabilities: ['SYS_ADMIN'], consoles: [{ name: 'vtysh' }, { name: 'shell' }] },
  })
  expect(again.nodes.find(({ name }) => name === 'h1')?.properties.files).toMatchObject([
    { path: '/key' },
    { path: '/run', mode: '0755' },
    { path: '/plain' },
  ])
})

test('an entry that would be a template is left out by itself, and a file with its bind', async () => {
  const { topology, files, leftOut } = await exported(`
lab: a
nodes:
  n:
    kind: container
    image: alpine_latest.tar
    command: echo {{ x }}
    environment: "A={{x\\nB=2"
    exec: "echo {{x\\nid"
    labels: { "{{y": z, site: north }
    files: [{ path: "/a{{b", text: x }, { path: /c, text: "{{ y }}" }]
`)
  expect(topology.topology.nodes.n).toMatchObject({
    env: { B: '2' },
    exec: ['id'],
    labels: { site: 'north' },
    binds: ['configs/n/c:/c'],
  })
  expect(topology.topology.nodes.n.cmd).toBe(undefined)
  expect(files).toEqual([{ path: 'configs/n/c', text: '{{ y }}', mode: '0644' }])
  const why = '(it would be a template there)'
  expect(leftOut).toEqual([
    `The container n: the file /a{{b ${why}, the command "echo {{x" ${why}, command ${why}, the variable "A" ${why}, the label "{{y" ${why}.`,
  ])
})

test('no text has what containerlab takes for a template', async () => {
  const text = fc.string({ unit: fc.constantFrom('{', '{', 'a', ' ', '}', '$', '"', "'"), minLength: 1, maxLength: 8 })
  const name = text.map((it) => `n${it}`.trim())
  await fc.assert(
    fc.asyncProperty(name, name, text, async (container, pc, value) => {
      fc.pre(container !== pc)
      const safe = withoutVariables
      const fields = {
        ...{ kind: 'container', image: 'a_1.tar', environment: safe(`A=${value}\nB${value}=b`) },
        ...{
          exec: safe(value),
          labels: { [safe(value)]: safe(value) },
          files: [{ path: safe(`/a${value}b`), text: '' }],
        },
      }
      const nodes = { [container]: fields, [pc]: { kind: 'pc' } }
      const desired = await readLabFile(labFileText({ lab: 'a', version: 1, nodes }))
      expect(containerlabOf(desired).text).not.toContain('{{')
    }),
    { numRuns: 100 },
  )
})

test('any command, variable and file of a container comes back as it is', async () => {
  const line = fc.string({ unit: fc.constantFrom('a', ' ', '$', '{', '"', "'", '\\', ';', '#', 'é'), maxLength: 20 })
  const plain = line.filter((it) => !it.includes('{{') && it.trim() !== '')
  await fc.assert(
    fc.asyncProperty(fc.array(plain, { maxLength: 3 }), plain, plain, async (exec, value, content) => {
      const fields = {
        ...{ kind: 'container', image: 'alpine_latest.tar', environment: withoutVariables(`A=${value}`) },
        ...{ exec: withoutVariables(exec.join('\n')), files: [{ path: '/etc/a b', text: content }] },
      }
      const desired = await readLabFile(labFileText({ lab: 'a', version: 1, nodes: { n: fields } }))
      const { text, files } = containerlabOf(desired)
      const again = await imported(text, files)
      const { exec: back, ...properties } = again.nodes[0]?.properties ?? {}
      const { exec: given, ...others } = desired.nodes[0]?.properties ?? {}
      expect(properties).toEqual({ adapters: 1, ...others })
      // A command that needs a shell says so afterwards.
      expect(containerlabOf(again).text).toBe(text)
      expect(String(back ?? '').split('\n')).toHaveLength(String(given ?? '').split('\n').length)
    }),
    { numRuns: 60 },
  )
})
