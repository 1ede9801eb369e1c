import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import type { Desired } from '../../../src/labfile/desired.ts'
import { documentOf } from '../../../src/labfile/document.ts'
import { LabFileError } from '../../../src/labfile/lab-file-error.ts'
import { readLabFile } from '../../../src/labfile/read.ts'
import { labFileText } from '../../../src/labfile/text.ts'
import { escapeUnsafe } from '../../../src/lib/text/escape.ts'
import { filesOf } from '../../support/named-files.ts'
import { example, exampleFiles } from './example.ts'

/** Without the places in the text. */
const placeless = (desired: Desired): unknown =>
  JSON.parse(JSON.stringify(desired, (key, value) => (key === 'at' || key === 'keys' ? undefined : value)))

/** The normal form of a printed normal form. */
async function again(desired: Desired, files: Record<string, string> = {}): Promise<Desired> {
  const text = labFileText(documentOf(desired))
  return readLabFile(text, { files }).catch((error: unknown) => {
    throw new Error(`${String(error)}\n${text}`)
  })
}

const word = fc.string({ unit: 'grapheme', minLength: 1, maxLength: 12 })
const name = word.filter((it) => /^[^:/$]+$/u.test(it) && escapeUnsafe(it) === it && it !== '__proto__')
/** The generated files have no variables. */
const isNoVariable = (it: string): boolean => !it.includes(`$\{`)
const line = fc.string({ unit: 'grapheme', maxLength: 30 }).filter((it) => !/\p{Cc}/u.test(it) && isNoVariable(it))
const text = fc.string({
  unit: fc.constantFrom('a', ' ', '\n', '\r', '\t', '#', ':', '"', "'", '$', '{', '}', '\u2028', 'é'),
  maxLength: 40,
})
const optional = <T>(values: { [K in keyof T]: fc.Arbitrary<T[K]> }) => fc.record(values, { requiredKeys: [] })
const time = fc
  .tuple(fc.integer({ min: 1, max: 30_000 }), fc.constantFrom('us', 'ms'))
  .map(([n, unit]) => `${n}${unit}`)
const share = fc.integer({ min: 1, max: 10_000 }).map((n) => `${n / 100}%`)
const labels = fc.dictionary(
  word.filter((it) => !/\p{Cc}/u.test(it) && it !== '__proto__'),
  line,
  { maxKeys: 3 },
)
const place = fc.tuple(fc.integer({ min: -1000, max: 1000 }), fc.integer({ min: -1000, max: 1000 }))
const both = { at: place, symbol: line, labels, compute: fc.constantFrom('local', 'c 2') }
const ready = fc.oneof(
  fc.record({
    console: fc.constantFrom('login:', '[>#]$', '^a"b\\s'),
    press: text.filter(isNoVariable),
    within: fc.constantFrom('5m', '1500ms'),
  }),
  fc.constant([{ tcp: 22 }, { after: '2s' }]),
)
const node = fc.oneof(
  fc.record({ kind: fc.constant('pc') }).chain((own) =>
    optional({
      ...both,
      config: fc.oneof(fc.record({ text }), fc.constant('./a.cfg')),
      ready,
      start: fc.boolean(),
      ports: fc.constant(['left']),
    }).map((more) => ({ ...more, ...own })),
  ),
  optional({
    ...both,
    image: fc.constantFrom('a b.img', `x@sha256:${'0a'.repeat(32)}`, 'a@b', `$$\{a}`),
    ram: fc.integer({ min: 1, max: 4096 }),
    options: text.filter((it) => !/[\0]|\$\{/.test(it)),
    console_type: fc.constantFrom('telnet', 'none'),
    ports: fc.constantFrom('Gi0/{1-}', 'eth{0}'),
    custom_adapters: fc.constant([{ adapter_number: 0, port_name: 'x', mac_address: '00:00:00:00:00:01' }]),
    day0: fc.record({
      label: fc.constant('cidata'),
      files: fc.constant({ 'user-data': './a.cfg', 'a/b': { text: 'x\r\ny' } }),
    }),
  }).map((more) => ({ ...more, kind: 'machine', adapters: 2 })),
  optional({ ...both, config: fc.record({ text: fc.constant('hostname %h\n'), private: fc.constant('./a.cfg') }) }).map(
    (more) => ({
      ...more,
      ...{ kind: 'iou', image: 'i', ethernet_adapters: 1, serial_adapters: 1 },
    }),
  ),
)
const impairment = optional({
  delay: time,
  loss: share,
  rate: fc.constantFrom('10mbit', '1.5gbit', '64kbit'),
  reorder: share,
  drop_every: fc.constantFrom(-1, 3),
  bpf: fc.constantFrom('icmp', 'tcp\nudp'),
})
const options = fc.tuple(
  impairment,
  optional({ down: fc.boolean(), capture: fc.constantFrom(true, 'a.pcap'), there: impairment, back: impairment }),
)
const tagging = fc.constantFrom(
  {},
  { vlan: 20 },
  { trunk: true },
  { trunk: true, vlan: 9 },
  { qinq: 7, ethertype: '0x9100' },
)

/** Lab files as data; each port is used once at most. */
const files = fc
  .record({
    nodes: fc.uniqueArray(fc.tuple(name, node), { minLength: 1, maxLength: 6, selector: ([it]) => it.toLowerCase() }),
    segments: fc.uniqueArray(fc.tuple(name, fc.constantFrom('switch', 'hub', 'nat', 'cloud'), optional(both)), {
      ...{ maxLength: 3, selector: ([it]: [string, ...unknown[]]) => it.toLowerCase() },
    }),
    links: fc.array(fc.tuple(fc.nat(), fc.nat(), options, tagging), { maxLength: 8 }),
    about: line,
    tasks: fc.uniqueArray(fc.record({ name, text, points: fc.nat(9) }), {
      ...{ maxLength: 3, selector: (task) => task.name.toLowerCase() },
    }),
  })
  .map(({ nodes, segments, links, about, tasks }) => {
    const names = new Set(nodes.map(([it]) => it.toLowerCase()))
    const others = segments.filter(([it]) => !names.has(it.toLowerCase()))
    const free = nodes.flatMap(([it, { kind }]) =>
      kind === 'pc' ? [it] : [`${it}:0/0`, `${it}:${kind === 'iou' ? '0/3' : '1'}`],
    )
    const made: unknown[] = []
    const members = new Map<string, unknown[]>()
    for (const [a, b, [plain, more], tags] of links) {
      const end = free.splice(a % Math.max(1, free.length), 1)[0]
      if (end === undefined) break
      const [segment, kind] = others[b % Math.max(1, others.length)] ?? []
      const given = { ...plain, ...more, name: `link ${made.length + members.size} ${end}` }
      if (segment !== undefined && b % 3 > 0) {
        const member = { end, ...(kind === 'switch' && tags), ...given }
        members.set(segment, [...(members.get(segment) ?? []), b % 2 === 0 ? end : member])
        continue
      }
      const other = free.splice(b % Math.max(1, free.length), 1)[0]
      if (other !== undefined) made.push(b % 2 === 0 ? [end, other] : { ends: [end, other], ...given })
    }
    const named = made.flatMap((link) => (Array.isArray(link) ? [] : [(link as { name: string }).name]))
    return {
      lab: 'x',
      about: about.replaceAll('$', ''),
      nodes: Object.fromEntries(nodes),
      segments: Object.fromEntries(
        others.map(([it, kind, fields]) => [
          it,
          {
            ...fields,
            kind,
            members: members.get(it) ?? [],
            ...(kind === 'cloud' && { device: 'eth1' }),
            ...(kind === 'switch' && { ports: { 900: { trunk: true, name: 'up' } } }),
          },
        ]),
      ),
      links: made,
      starting: { load_below: '80%' },
      checks: named.map((link) => ({ link, verdict: 'ok' })),
      tasks: tasks.map((task) => ({ ...task, checks: named.map((link) => `${link} is ok`) })),
    }
  })

const contents = { './a.cfg': 'x' }

describe('a lab file', () => {
  test('of the example, printed and read again, is the same lab', async () => {
    const desired = await readLabFile(example, { files: exampleFiles })
    expect(placeless(await again(desired, exampleFiles))).toEqual(placeless(desired))
  })

  test('of any kind, printed and read again, is the same lab', async () => {
    await fc.assert(
      fc.asyncProperty(files, async (file) => {
        const desired = await readLabFile(JSON.stringify(file), { files: contents })
        expect(placeless(await again(desired, contents))).toEqual(placeless(desired))
      }),
      { numRuns: 35 },
    )
  })
})

test('a text that begins or ends with blanks is printed with them', () => {
  for (const text of [' \n', '\n', 'a \n', ' a\nb', 'a\n\n', '\t\na', 'a\r\nb'])
    expect(parse(labFileText({ lab: 'x', version: 1, nodes: { A: { config: { text } } } })).nodes.A.config.text).toBe(
      text,
    )
})

describe('hostile text', () => {
  /** Throws nothing but the error with its faults, each with a place in the text. */
  async function survives(source: string): Promise<void> {
    for (const read of [() => readLabFile(source), () => filesOf(source)]) {
      try {
        await read()
      } catch (error) {
        if (!(error instanceof LabFileError)) throw error
        expect(error.diagnostics.length).toBeGreaterThan(0)
        expect(error.diagnostics.length).toBeLessThanOrEqual(20)
        const lines = source.split('\n').length
        for (const { line, column } of error.diagnostics) {
          expect(line).toBeGreaterThanOrEqual(1)
          expect(line).toBeLessThanOrEqual(lines)
          expect(column).toBeGreaterThanOrEqual(1)
        }
        // A terminal would obey control characters.
        expect(error.diagnostics.map(({ message, hint, path }) => `${message}${hint}${path}`).join()).not.toMatch(
          /\p{Cc}/u,
        )
      }
    }
  }

  test('of any form is refused with its faults', async () => {
    const yaml = fc.string({ unit: fc.constantFrom(...'a:-{}[]&*!|>%@`"\'#,?$ \n\t\r0.~<\ufeff\u0000'), maxLength: 80 })
    await fc.assert(fc.asyncProperty(yaml, survives), { numRuns: 200 })
  })

  test('in any value of a lab file is refused with its faults', async () => {
    const value = fc.jsonValue({ maxDepth: 4 })
    const keys = [...new Set([...example.matchAll(/\b([a-z_0-9]+):/g)].map(([, key = '']) => key))]
    const tree = fc.dictionary(fc.oneof(fc.constantFrom(...keys, '__proto__', 'constructor'), name), value)
    const file = fc.record(
      {
        lab: fc.oneof(fc.constant('x'), value),
        nodes: fc.oneof(
          fc.dictionary(
            name,
            fc.oneof(
              tree,
              fc.tuple(tree, fc.constantFrom('pc', 'iou', 'machine', 'vm')).map(([it, kind]) => ({ ...it, kind })),
            ),
          ),
          value,
        ),
        segments: fc.oneof(fc.dictionary(name, tree), value),
        links: fc.oneof(fc.array(fc.oneof(tree, value)), value),
        ...{
          templates: tree,
          vars: tree,
          checks: fc.array(tree),
          starting: tree,
          tasks: fc.oneof(tree, fc.array(tree)),
        },
      },
      { requiredKeys: [] },
    )
    await fc.assert(
      fc.asyncProperty(file, (it) => survives(JSON.stringify(it))),
      { numRuns: 60 },
    )
  })

  test('made of a good one by a few changes is refused with its faults, or is another lab', async () => {
    const change = fc.tuple(
      fc.nat(example.length),
      fc.nat(8),
      fc.string({ unit: fc.constantFrom(...'{}[]:,-&*!#"\' \na1'), maxLength: 3 }),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
        let source = example
        for (const [at, length, more] of changes) source = source.slice(0, at) + more + source.slice(at + length)
        await survives(source)
      }),
      { numRuns: 35 },
    )
  })

  test.each([
    ['deep lists', '['.repeat(500_000)],
    ['deep maps', '{a: '.repeat(250_000)],
    ['deep blocks', '- '.repeat(500_000)],
    ['one long key', `? ${'a'.repeat(1_000_000)}`],
    ['many errors', '}\n'.repeat(500_000)],
    ['many tabs', '\t- :\n'.repeat(20_000)],
  ])('of %s ends in time', async (_, source) => {
    await survives(source)
  })
})
