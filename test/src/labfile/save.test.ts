import fc from 'fast-check'
import { expect, test } from 'vitest'
import type { Desired } from '../../../src/labfile/desired.ts'
import { documentOf } from '../../../src/labfile/document.ts'
import { mapPositions } from '../../../src/labfile/map-positions.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { type SaveInputs, savedLab } from '../../../src/labfile/save.ts'
import { labFileText } from '../../../src/labfile/text.ts'

const none: ReadonlySet<string> = new Set()

/** Saves a lab that is as another file says. */
async function save(file: string, lab: string, options: Partial<SaveInputs> = {}, files: Record<string, string> = {}) {
  const [desired, actual] = [await readLabFile(file, { files }), await readLabFile(lab)]
  const changed = new Set(desired.nodes.map(({ name }) => name))
  return savedLab({
    ...{ text: file, desired, actual, changed, configured: none, renamed: new Map() },
    ...options,
  })
}

const lab = (nodes: string, more = ''): string => `lab: a\nnodes:\n${nodes}\n${more}`

test('a position that an apply has chosen is not written, until one of these nodes is moved', async () => {
  const file = lab('  A: { kind: pc }\n  B: { kind: pc } # b')
  const places = mapPositions(await readLabFile(file))
  const [a, b] = ['a', 'b'].map((name) => `[${places.get(name)?.x}, ${places.get(name)?.y}]`)
  expect((await save(file, lab(`  A: { kind: pc, at: ${a} }\n  B: { kind: pc, at: ${b} }`))).text).toBe(file)
  const moved = await save(file, lab(`  A: { kind: pc, at: ${a} }\n  B: { kind: pc, at: [7, 7] }`))
  expect(moved.text).toBe(lab(`  A: { kind: pc, at: ${a} }\n  B: { kind: pc, at: [7, 7] } # b`))
  expect(moved.changes).toEqual([
    { do: 'update', what: 'node', name: 'A', keys: ['at'] },
    { do: 'update', what: 'node', name: 'B', keys: ['at'] },
  ])
})

test('a second save writes no position, whichever nodes were moved, added or removed', async () => {
  const steps = [0, 120, 240, 360, 700]
  const at = fc.tuple(fc.constantFrom(...steps), fc.constantFrom(...steps))
  const names = fc.subarray(['A', 'B', 'C', 'D', 'E'], { minLength: 1 })
  const labAt = (nodes: readonly string[], places: readonly (readonly number[] | undefined)[]) =>
    lab(
      nodes
        .map((name, index) => {
          const place = places[index]
          return `  ${name}: { kind: pc${place === undefined ? '' : `, at: [${place}]`} }`
        })
        .join('\n'),
    )
  const place = fc.array(fc.option(at, { nil: undefined }), { minLength: 5, maxLength: 5 })
  const moved = fc.array(at, { minLength: 5, maxLength: 5 })
  await fc.assert(
    fc.asyncProperty(names, names, place, moved, fc.boolean(), async (before, after, places, positions, all) => {
      const now = labAt(after, positions)
      const saved = await save(labAt(before, places), now, { all })
      expect((await save(saved.text, now, { all })).changes).toEqual([])
    }),
    {
      numRuns: 25,
      // Moving A down moves all others.
      examples: [
        [
          ['A', 'B'],
          ['A', 'B'],
          [[0, 0]],
          [
            [0, 700],
            [0, 120],
          ],
          false,
        ] as never,
      ],
    },
  )
})

test('a value of a template or a variable is written at its node', async () => {
  const machine = (ram: number) => `{ kind: machine, platform: x86_64, image: x.qcow2, ram: ${ram}, at: [1, 1] }`
  const head =
    'lab: a\nvars: { ram: 512 }\ntemplates:\n  m: { kind: machine, platform: x86_64, image: x.qcow2, ram: 512 }\n'
  const file = `${head}nodes:\n  A: { is: m, at: [1, 1] }\n  B: { is: m, ram: "$\{ram}", at: [1, 1] }\n`
  const saved = await save(file, lab(`  A: ${machine(256)}\n  B: ${machine(1024)}`))
  expect(saved.text).toBe(
    `${head}nodes:\n  A: { is: m, at: [1, 1], ram: 256 }\n  B: { is: m, ram: 1024, at: [1, 1] }\n`,
  )
})

test('the impairment of a link is written again in the words of its own directions', async () => {
  const nodes = '  A: { kind: pc, at: [0, 0] }\n  B: { kind: pc, at: [0, 0] }'
  const file = lab(nodes, 'links:\n  - { ends: [A, B], delay: 20ms, there: { loss: 1% } } # slow\n')
  const saved = await save(
    file,
    lab(nodes, 'links:\n  - { ends: [B, A], name: core, there: { delay: 5ms }, down: true }\n'),
  )
  expect(saved.text).toBe(
    lab(nodes, 'links:\n  - { ends: [A, B], back: { delay: 5ms }, name: core, down: true } # slow\n'),
  )
  expect(saved.changes).toEqual([
    { do: 'update', what: 'link', name: 'core', keys: ['delay', 'there', 'back', 'name', 'down'] },
  ])
})

test('a configuration that several nodes share gets a file of its own', async () => {
  const place = 'at: [0, 0]'
  const file = lab(
    `  A: { kind: pc, ${place}, config: ./all.cfg }\n  B: { kind: pc, ${place}, config: ./all.cfg }\n  C: { kind: pc, ${place}, config: ./c.cfg }`,
  )
  const now = lab(
    ['A', 'B', 'C'].map((name) => `  ${name}: { kind: pc, ${place}, config: { text: new ${name} } }`).join('\n'),
  )
  const saved = await save(
    file,
    now,
    { configs: true, configured: new Set(['A', 'C']) },
    { './all.cfg': 'x', './c.cfg': 'x' },
  )
  expect(saved.text).toBe(file.replace('./all.cfg', './configs/A.cfg'))
  expect(saved.files).toEqual({ './configs/A.cfg': 'new A', './c.cfg': 'new C' })
})

test('the name of a file of a container stays while its text does, and a new text takes its place', async () => {
  const node = (files: string) => lab(`  A: { kind: container, image: a.tar, files: [${files}], at: [0, 0] }`)
  const file = node('{ path: /a, file: ./a.conf }')
  const beside = { './a.conf': 'old' }
  expect((await save(file, node('{ path: /a, text: old }'), {}, beside)).text).toBe(file)
  expect((await save(file, node('{ path: /a, text: new }'), {}, beside)).text).toBe(node('{ path: /a, text: new }'))
})

test('settings of ports are written where the file has the port: at its member, or in ports', async () => {
  const nodes = '  A: { kind: pc, at: [0, 0] }\n  B: { kind: pc, at: [0, 0] }'
  const place = 'kind: switch, at: [0, 0]'
  const file = lab(
    nodes,
    `segments:\n  s: { ${place}, members: [A], ports: { 7: { vlan: 9 } } } # s\n  t: { ${place} }\nlinks:\n  - [B, s:3]\n  - { name: up, ends: [s:7, t:7] }\n`,
  )
  const now = lab(
    nodes,
    `segments:\n  s: { ${place}, members: [{ end: A, vlan: 5 }, { end: B, port: 3, vlan: 6 }], ports: { 7: { trunk: true } } }\n  t: { ${place}, ports: { 7: { trunk: true } } }\nlinks:\n  - { name: up, ends: [s:7, t:7] }\n`,
  )
  const changed = new Set(['s', 't'])
  const saved = await save(file, now, { changed })
  expect(saved.text).toBe(
    file
      .replace(
        '[A], ports: { 7: { vlan: 9 } } }',
        '[{ end: A, vlan: 5 }], ports: { 7: { trunk: true }, 3: { vlan: 6 } } }',
      )
      .replace(`t: { ${place} }`, `t: { ${place}, ports: { 7: { trunk: true } } }`),
  )
  expect((await save(saved.text, now, { changed })).text).toBe(saved.text)
})

test('members and links are added at the end of their sections', async () => {
  const file = lab('  A: { kind: pc, at: [0, 0] }', 'segments:\n  s: { kind: hub, at: [0, 0], members: [A] }\n')
  const now = lab(
    '  A: { kind: pc, at: [0, 0] }\n  B: { kind: pc, at: [0, 0] }\n  C: { kind: pc, at: [0, 0] }\n  D: { kind: pc, at: [0, 0] }',
    'segments:\n  s: { kind: hub, at: [0, 0], members: [A, B] }\nlinks:\n  - [C, D]\n',
  )
  expect((await save(file, now)).text).toBe(file)
  const saved = await save(file, now, { all: true })
  expect(saved.text).toContain('members: [A, B]')
  expect(saved.text).toContain('\nlinks:\n  - [C, D]\n')
  expect((await save(saved.text, now, { all: true })).text).toBe(saved.text)
})

test('a node that has another name in the lab gets it in all that names it; comments, order and ports stay', async () => {
  const file = `lab: a
templates:
  late: { kind: pc, after: [B] }
vars: { last: "B:0" }
nodes:
  A: { kind: pc } # the first
  B:
    kind: pc # the second
    after: [ A ]
  C: { is: late, after: [a, "B"] }
  D: { is: late }
segments:
  s: { kind: hub, members: [A, { end: "D:0", name: up }] } # a hub
  t: { kind: hub, members: [{ end: s }] }
links:
  - [C, t:3] # to t
  - { ends: ["$\{last}", s:4], delay: 1ms }
checks:
  - { from: A, ping: 10.0.0.1 }
  - { not: { on: B, type: A, expect: B } }
`
  const expected = `lab: a
templates:
  late: { kind: pc, after: [Y] }
vars: { last: "B:0" }
nodes:
  X 1: { kind: pc, was: A } # the first
  Y:
    kind: pc # the second
    after: [ X 1 ]
    was: B
  C: { is: late, after: [X 1, Y] }
  D: { is: late }
segments:
  u: { kind: hub, members: [X 1, { end: "D:0", name: up }], was: s } # a hub
  t: { kind: hub, members: [{ end: u }] }
links:
  - [C, t:3] # to t
  - { ends: [Y, u:4], delay: 1ms }
checks:
  - { from: X 1, ping: 10.0.0.1 }
  - { not: { on: Y, type: A, expect: B } }
`
  const { nodes } = await readLabFile(file)
  const idOf = (name: string) => nodes.find((it) => it.name === name)?.node_id ?? ''
  const names = Object.entries({ A: 'X 1', B: 'Y', s: 'u' })
  const renamed = new Map(names.map(([old, name]) => [old, { name, node_id: idOf(old) }]))
  const saved = await save(file, expected, { renamed, changed: none })
  expect(saved.text).toBe(expected)
  expect(saved.changes).toEqual([
    { do: 'update', what: 'node', name: 'X 1', keys: [], was: 'A' },
    { do: 'update', what: 'node', name: 'Y', keys: [], was: 'B' },
    { do: 'update', what: 'segment', name: 'u', keys: [], was: 's' },
  ])
  // Another name again: the id of the node still follows from its first one.
  const again = await save(saved.text, expected.replaceAll('X 1', 'Z'), {
    renamed: new Map([['X 1', { name: 'Z', node_id: idOf('A') }]]),
    changed: none,
  })
  expect(again.text).toBe(expected.replaceAll('X 1', 'Z'))
})

test('the compute of a node that was moved is written where the file names it: for the lab, or at the node', async () => {
  const computes = ['a', 'b'].map((it) => ({ compute_id: `id-${it}`, name: it }))
  const head = 'lab: a\ncompute: a # the first\ntemplates: { p: { kind: pc, compute: id-b } }\n'
  const nodes = '  A: { kind: pc }\n  B: { kind: pc } # b\n  C: { is: p }\n  D: { kind: pc, compute: b }\n'
  const file = `${head}nodes:\n${nodes}`
  const on = (...at: string[]) =>
    new Map(
      ['A', 'B', 'C', 'D'].map((name, index) => [
        name,
        { compute_id: `id-${at[index]}`, console: null, properties: {} },
      ]),
    )
  const saved = async (...at: string[]) => save(file, file, { records: on(...at), computes, changed: none })
  expect((await saved('a', 'a', 'b', 'b')).text).toBe(file)
  const moved = await saved('b', 'b', 'b', 'a')
  expect(moved.text).toBe(file.replace('compute: a #', 'compute: b #').replace('compute: b }', 'compute: a }'))
  expect(moved.changes).toEqual([
    { do: 'update', what: 'node', name: 'A', keys: ['compute'] },
    { do: 'update', what: 'node', name: 'D', keys: ['compute'] },
  ])
  expect((await saved('a', 'b', 'a', 'b')).text).toBe(
    file.replace('{ kind: pc } # b', '{ kind: pc, compute: b } # b').replace('{ is: p }', '{ is: p, compute: id-a }'),
  )
})

/** What a save brings into a file, in an order that counts for nothing. */
function said({ nodes, links }: Desired): unknown {
  const ofNode = nodes.map(({ name, settings, labels, properties, after, configs }) => ({
    name,
    settings,
    labels,
    properties,
    after,
    configs: Object.entries(configs).map(([config, { text }]) => [config, text]),
  }))
  const ofLink = links.map(({ ends, name, suspend, filters_ab, filters_ba, memberOf }) => ({
    name,
    suspend,
    filters_ab,
    filters_ba,
    memberOf,
    ends: ends.map(({ node, adapter_number }) => [node, adapter_number]),
  }))
  const text = (it: unknown): string => JSON.stringify(it)
  return { nodes: ofNode.sort((a, b) => (a.name < b.name ? -1 : 1)), links: ofLink.map(text).sort() }
}

const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const word = fc.constantFrom('x', 'a b', '#1', '-', 'true', '10', ': ', "it's", 'é')
const impairment = fc.record(
  {
    delay: fc.constantFrom('5ms', '20ms'),
    loss: fc.constantFrom('1%', '0.5%'),
    rate: fc.constantFrom('1mbit', '10mbit'),
  },
  { requiredKeys: [] },
)
const options = fc.record({ down: fc.constant(true), there: impairment, back: impairment }, { requiredKeys: [] })
const pc = fc.record(
  {
    kind: fc.constant('pc'),
    at: fc.tuple(fc.integer({ min: -99, max: 99 }), fc.integer({ min: 0, max: 9 })),
    labels: fc.dictionary(word, word, { maxKeys: 2 }),
    symbol: fc.constantFrom(':/symbols/a.svg', 'b.png'),
    config: fc.record({ text: fc.constantFrom('ip 10.0.0.1/24', 'a\nb\n', '  # x\n\n', 'echo') }),
  },
  { requiredKeys: ['kind', 'at'] },
)
/** A lab with each node, link and member, or without it. */
const anyLab = fc
  .record({
    nodes: fc.tuple(pc, pc, optional(pc), optional(pc), optional(pc)),
    links: fc.tuple(options, optional(options)),
    hub: optional(fc.record({ member: optional(options) })),
  })
  .map(({ nodes, links, hub }) => {
    const there = nodes.flatMap((node, index) => (node === undefined ? [] : [[`N${index}`, node] as const]))
    const has = (name: string) => there.some(([it]) => it === name)
    const [first, second] = links
    return {
      lab: 'a',
      version: 1 as const,
      nodes: Object.fromEntries(there),
      ...(hub !== undefined && {
        segments: {
          s: {
            kind: 'hub',
            at: [0, 0],
            ...(hub.member !== undefined && has('N4') && { members: [{ end: 'N4', ...hub.member }] }),
          },
        },
      }),
      links: [
        { ends: ['N0', 'N1'], ...first },
        ...(second !== undefined && has('N2') && has('N3') ? [{ ends: ['N3', 'N2'], ...second }] : []),
      ],
    }
  })

test('after a save with all, the file describes the lab, and a second save changes nothing', async () => {
  await fc.assert(
    fc.asyncProperty(anyLab, anyLab, async (before, after) => {
      const [file, lab] = [labFileText(before), labFileText(after)]
      const actual = await readLabFile(lab)
      const all = { all: true, configs: true, configured: new Set(Object.keys(before.nodes)) }
      const saved = await save(file, lab, all)
      const now = await readLabFile(saved.text, { files: saved.files })
      const kept = configsOf(now)
      // A configuration that the node has no longer is not taken out of the file.
      for (const [name, text] of configsOf(await readLabFile(file)))
        if (!configsOf(actual).has(name) && name in after.nodes) expect(kept.get(name)).toBe(text)
      expect(said(withoutLost(now, actual))).toEqual(said(actual))
      expect((await save(saved.text, lab, { ...all, configured: none }, saved.files)).text).toBe(saved.text)
    }),
    { numRuns: 40 },
  )
})

test('with all, objects that the lab lacks are removed with references to them; comments and order of the rest stay', async () => {
  const file = `lab: a
# The nodes
nodes:
  A: { kind: pc, at: [0, 0] } # a
  # of the past
  B:
    kind: pc
    at: [0, 0]
  C: { kind: pc, at: [0, 0], after: [A, B] }
  D: { kind: pc, at: [0, 0] }
segments:
  s: { kind: hub, at: [0, 0], members: [A, { end: B, delay: 5ms }, C] } # s
  t: { kind: hub, at: [0, 0], members: [D] }
links:
  - { name: core, ends: [s:7, t:7] }
checks:
  - { from: A, ping: 10.0.0.1 } # stays
  - { from: B, ping: 10.0.0.1 }
  - { link: core, verdict: ok }
  - not: { from: A, ping: 10.0.0.3 }
`
  const now = lab(
    ['A', 'C', 'D'].map((name) => `  ${name}: { kind: pc, at: [0, 0] }`).join('\n'),
    'segments:\n  s: { kind: hub, at: [0, 0], members: [A, { end: C, port: 2 }] }\n  u: { kind: hub, at: [0, 0], members: [D] }\n',
  )
  const saved = await save(file, now, { all: true })
  expect(saved.text).toBe(`lab: a
# The nodes
nodes:
  A: { kind: pc, at: [0, 0] } # a
  # of the past
  C: { kind: pc, at: [0, 0] }
  D: { kind: pc, at: [0, 0] }
segments:
  s: { kind: hub, at: [0, 0], members: [A, C] } # s
  u: { kind: hub, at: [0, 0], members: [D] }
checks:
  - { from: A, ping: 10.0.0.1 } # stays
  - not: { from: A, ping: 10.0.0.3 }
`)
  expect(saved.changes.filter((it) => it.do === 'delete').map(({ what, name }) => `${what} ${name}`)).toEqual([
    ...['node B', 'segment t', 'link s -- B', 'link core', 'check B pings 10.0.0.1', 'check core is ok'],
  ])
  expect((await save(file, now)).text).not.toContain('u:')
})

test('with all, a capture and the kind of a node are those of the lab, and a check has the new name of its link', async () => {
  const nodes = '  A: { kind: pc, at: [0, 0] }\n  B: { kind: pc, at: [0, 0] }'
  const checks = 'checks:\n  - not: { link: core, verdict: ok }\n'
  const links = (options: string) => `links:\n  - { ends: [A, B]${options} }\n`
  const file = lab(nodes, links(', name: core, capture: true') + checks)
  const idle = lab(nodes, links(', name: edge'))
  expect((await save(file, idle, { all: true })).text).toBe(
    lab(nodes, links(', name: edge') + checks.replace('core', 'edge')),
  )
  const end = (node: string) => ({ node, adapter_number: 0, port_number: 0 })
  const captured = [{ ends: [end('B'), end('A')] as const }]
  expect((await save(file, idle, { all: true, captured })).text).toContain('capture: true')
  const other = 'at: [0, 0], vmname: x'
  const vm = lab(`  A: { kind: hypervisor, ${other} }\n  B: { kind: pc, at: [0, 0] }`)
  const templated = lab('  A: { is: t, at: [0, 0] }\n  B: { kind: pc, at: [0, 0] }', 'templates: { t: { kind: pc } }\n')
  expect((await save(templated, vm, { all: true })).text).toContain('  A: { at: [0, 0], kind: vm, vmname: x }')
})

const configsOf = ({ nodes }: Desired): Map<string, string> =>
  new Map(nodes.flatMap(({ name, configs }) => (configs.startup === undefined ? [] : [[name, configs.startup.text]])))

const withoutLost = (file: Desired, lab: Desired): Desired => ({
  ...file,
  nodes: file.nodes.map((node) => (configsOf(lab).has(node.name) ? node : { ...node, configs: {} })),
})

test('tasks follow checks that are named after renamed nodes, and lose those that are removed', async () => {
  const file = `lab: a
nodes:
  A: { kind: pc, config: { text: ip 10.0.0.1/24 } }
  B: { kind: pc }
checks:
  - { from: B, ping: A }
  - { name: by name, from: B, ping: A }
tasks:
  - { name: first, checks: [B pings A, by name] }
`
  const { nodes } = await readLabFile(file)
  const renamed = new Map([['A', { name: 'Z', node_id: nodes[0]?.node_id ?? '' }]])
  const expected = file.replaceAll('A:', 'Z:').replaceAll('ping: A', 'ping: Z').replaceAll('pings A', 'pings Z')
  const saved = await save(file, expected, { renamed, changed: none })
  expect(saved.text).toBe(expected.replace('text: ip 10.0.0.1/24 }', 'text: ip 10.0.0.1/24 }, was: A'))
  await readLabFile(saved.text)
})

/** A lab of two machines, of which the first is in a management network. */
const managedLab = (a: string, more: string) =>
  lab(`  A: { kind: machine, platform: x86_64, at: [0, 0], ${a} }\n  B: { kind: pc, at: [0, 90] }`, more)
const network = 'management: { network: 10.0.0.0/24, at: [90, 0] }\n'

test('a management network that the lab has no longer is removed, with what nodes say of it', async () => {
  const file = managedLab('adapters: 2, management: { ports: ["8080:80"] }', `${network}links:\n  - [A, B]\n`)
  const now = managedLab('adapters: 3', 'links:\n  - [A:e1, B]\n')
  const saved = await save(file, now, { all: true })
  expect(saved.text).toBe(managedLab('adapters: 3', 'links:\n  - [A, B]\n'))
  expect(saved.changes).toEqual([
    { do: 'update', what: 'node', name: 'A', keys: ['adapters', 'management'] },
    { do: 'delete', what: 'segment', name: 'management', keys: [] },
  ])
  // Only --all removes what the lab lacks.
  expect((await save(file, now)).text).toBe(file)
})

test('a management network that only the lab has is written as one', async () => {
  const file = managedLab('adapters: 2', '')
  const now = managedLab('adapters: 1, management: { address: 10.0.0.9, ports: ["8080:80"] }', network)
  const saved = await save(file, now, { all: true })
  expect((await save(saved.text, now, { all: true })).changes).toEqual([])
  const [again, wanted] = [await readLabFile(saved.text), await readLabFile(now)]
  expect(again.management).toBe('management')
  expect(again.nodes.map(({ properties }) => properties)).toEqual(wanted.nodes.map(({ properties }) => properties))
})

test('a node that has left the management network says so, and one that is renamed keeps its address', async () => {
  const file = managedLab('adapters: 2', network)
  const left = await save(file, managedLab('adapters: 3, management: false', network), { all: true })
  expect(left.text).toBe(managedLab('adapters: 3, management: false', network))
  const { management } = (await readLabFile(file)).nodes[0] as Desired['nodes'][number]
  const now = managedLab(`adapters: 2, management: ${management?.address}`, network).replace('A:', 'Z:')
  const renamed = await save(file, now, { renamed: new Map([['A', { name: 'Z', node_id: 'other' }]]) })
  expect((await readLabFile(renamed.text)).nodes[0]).toMatchObject({
    name: 'Z',
    management: { address: management?.address },
  })
})

test('the compute of the management network is written in its section', async () => {
  const file = managedLab('adapters: 2, compute: one', network.replace('at:', 'compute: one, at:'))
  const record = { compute_id: 'one', console: null, properties: {} }
  const records = new Map([
    ['A', record],
    ['management', { ...record, compute_id: 'two' }],
  ])
  const now = managedLab('adapters: 2', network.replace('[90, 0]', '[95, 0]'))
  const saved = await save(file, now, { records })
  expect(saved.text).toBe(file.replace('compute: one, at: [90, 0]', 'compute: two, at: [95, 0]'))
  // A lab of several computes has it in its export, too.
  expect(documentOf(await readLabFile(saved.text)).management).toMatchObject({ compute: 'two' })
})
