import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { editedLabFile, type LabFileEdit } from '../../../src/labfile/edit.ts'
import { example } from './example.ts'

/** The lines that differ, as `- old` and `+ new`. */
function changes(before: string, edits: readonly LabFileEdit[]): string[] {
  const after = editedLabFile(before, edits)
  const [old, now] = [before.split('\n'), after.split('\n')]
  let start = 0
  while (start < old.length && old[start] === now[start]) start += 1
  let end = 0
  while (end < old.length - start && end < now.length - start && old.at(-1 - end) === now.at(-1 - end)) end += 1
  const part = (lines: string[], sign: string) =>
    lines.slice(start, lines.length - end).map((line) => `${sign} ${line}`)
  return [...part(old, '-'), ...part(now, '+')]
}

const set = (value: unknown, ...path: (string | number)[]): LabFileEdit => ({ path, value })

test('without a change nothing changes, and equal values stay as they are written', () => {
  expect(editedLabFile(example, [])).toBe(example)
  expect(
    editedLabFile(example, [
      set([0, 80], 'nodes', 'PC2', 'at'),
      set('ip 10.0.1.10/24 10.0.1.1', 'nodes', 'PC1', 'config', 'text'),
      set(
        { name: 'core', ends: ['R3:eth1', 'R4:eth1'], delay: '40ms', jitter: '5ms', loss: '0.5%', rate: '10mbit' },
        'links',
        2,
      ),
    ]),
  ).toBe(example)
})

test('a value is replaced at its place, and the blanks around it stay', () => {
  expect(changes(example, [set([10, 20], 'nodes', 'PC1', 'at')])).toEqual([
    '-   PC1: { is: pc, at: [0, 0],     config: { text: "ip 10.0.1.10/24 10.0.1.1" } }',
    '+   PC1: { is: pc, at: [10, 20],     config: { text: "ip 10.0.1.10/24 10.0.1.1" } }',
  ])
})

test('a missing key is added at the end of its map, with the missing maps above it', () => {
  expect(changes(example, [set('eu', 'nodes', 'R3', 'labels', 'site'), set([1, 2], 'nodes', 'FW', 'at')])).toEqual([
    '-   R3:  { is: router, at: [200, 240] }',
    ...example
      .split('\n')
      .slice(26, 29)
      .map((line) => `- ${line}`),
    '-   FW:  { kind: hypervisor, vmname: opnsense, adapters: 2, linked_clone: true }',
    '+   R3:  { is: router, at: [200, 240], labels: { site: eu } }',
    ...example
      .split('\n')
      .slice(26, 29)
      .map((line) => `+ ${line}`),
    '+   FW:  { kind: hypervisor, vmname: opnsense, adapters: 2, linked_clone: true, at: [1, 2] }',
  ])
})

test('a link in the form of a list becomes a map on its line', () => {
  expect(changes(example, [set('40ms', 'links', 0, 'delay'), set('up', 'links', 0, 'name')])).toEqual([
    '-   - [R1:eth1, R3:eth0]',
    '+   - { ends: [R1:eth1, R3:eth0], delay: 40ms, name: up }',
  ])
})

test('a member in the form of an end becomes a map', () => {
  expect(changes(example, [set('1%', 'segments', 'lan1', 'members', 1, 'loss')])).toEqual([
    '-   lan1: { kind: switch, members: [PC1, PC2, R1:eth0] }',
    '+   lan1: { kind: switch, members: [PC1, { end: PC2, loss: 1% }, R1:eth0] }',
  ])
})

test('keys are removed with their commas', () => {
  const edits = [
    set(undefined, 'links', 2, 'name'),
    set(undefined, 'links', 2, 'loss'),
    set(undefined, 'links', 2, 'rate'),
    set('1ms', 'links', 2, 'delay'),
  ]
  expect(changes(example, edits)).toEqual([
    '-   - { name: core, ends: [R3:eth1, R4:eth1], delay: 40ms, jitter: 5ms, loss: 0.5%, rate: 10mbit }',
    '+   - { ends: [R3:eth1, R4:eth1], delay: 1ms, jitter: 5ms }',
  ])
})

const block = `lab: x # the name
nodes:
  # The first one.
  R1:
    kind: pc # a pc
    at:
      - 1 # x
      - 2
    labels:
      site: a
    config:
      text: |
        ip 10.0.0.1/24
        save

  R2: {kind: pc}
links:
  - name: core
    ends: [R1, R2]
    delay: 5ms
# The end.
`

describe('in blocks', () => {
  test.each([
    [set([3, 2], 'nodes', 'R1', 'at'), ['-       - 1 # x', '+       - 3 # x']],
    [set('b', 'nodes', 'R1', 'labels', 'site'), ['-       site: a', '+       site: b']],
    [set('7', 'nodes', 'R1', 'labels', 'rack'), ['+       rack: "7"']],
    [set(true, 'nodes', 'R1', 'start'), ['+     start: true']],
    [
      set('one\ntwo\n', 'nodes', 'R1', 'config', 'text'),
      ['-         ip 10.0.0.1/24', '-         save', '+         one', '+         two'],
    ],
    [set({ kind: 'pc', at: [1, 2] }, 'nodes', 'R3'), ['+   R3: { kind: pc, at: [1, 2] }']],
    [set(undefined, 'links', 0, 'delay'), ['-     delay: 5ms']],
    [set(undefined, 'links', 0, 'name'), ['-   - name: core', '-     ends: [R1, R2]', '+   - ends: [R1, R2]']],
    [set('1%', 'links', 0, 'loss'), ['+     loss: 1%']],
    [set(['R1', 'R3'], 'links', 1), ['+   - [R1, R3]']],
    [set({ s: { kind: 'hub' } }, 'segments'), ['+ ', '+ segments:', '+   s: { kind: hub }']],
    [set('y', 'lab'), ['- lab: x # the name', '+ lab: y # the name']],
    [set({ kind: 'pc' }, 'nodes', 'R1'), expect.arrayContaining(['-     labels:', '-       site: a'])],
  ])('%j', (edit, lines) => {
    expect(changes(block, [edit]).map((line) => (line === '- ' ? '-' : line))).toEqual(lines)
  })

  test('line ends and a byte order mark are kept', () => {
    const windows = `\ufeff${block.replaceAll('\n', '\r\n')}`
    const after = editedLabFile(windows, [
      set('y', 'lab'),
      set('a\nb\n', 'nodes', 'R1', 'config', 'text'),
      set({ kind: 'pc' }, 'nodes', 'R3'),
      set({ s: { kind: 'hub' } }, 'segments'),
    ])
    expect(after.startsWith('\ufefflab: y # the name\r\n')).toBe(true)
    expect(after.replaceAll('\r\n', '')).not.toContain('\n')
  })

  test('a file may lack its last line end', () => {
    expect(editedLabFile('lab: x\nnodes:\n  A: { kind: pc }', [set({ kind: 'pc' }, 'nodes', 'B')])).toBe(
      'lab: x\nnodes:\n  A: { kind: pc }\n  B: { kind: pc }',
    )
  })
})

test('a value of an anchor is replaced at its alias, and a variable where it is used', () => {
  const text = `lab: x
vars: { r: 64 }
nodes:
  A: &a { kind: machine, at: &p [1, 2], ram: "\${r}" }
  B: *a
  C: { kind: pc, at: *p }
`
  expect(changes(text, [set([5, 6], 'nodes', 'C', 'at')])).toEqual([
    '-   C: { kind: pc, at: *p }',
    '+   C: { kind: pc, at: [5, 6] }',
  ])
  expect(changes(text, [set([5, 6], 'nodes', 'B', 'at')])).toEqual([
    '-   B: *a',
    `+   B: { kind: machine, at: [5, 6], ram: "\${r}" }`,
  ])
  // Nodes that stand for the same anchor stay as they are.
  expect(changes(text, [set(128, 'nodes', 'A', 'ram')])).toEqual([
    `-   A: &a { kind: machine, at: &p [1, 2], ram: "\${r}" }`,
    '-   B: *a',
    '+   A: &a { kind: machine, at: &p [1, 2], ram: 128 }',
    `+   B: { kind: machine, at: [1, 2], ram: "\${r}" }`,
  ])
})

test('sections without entries, and empty ones, get entries', () => {
  expect(
    editedLabFile('lab: x\nnodes: {}\nlinks:\n', [set({ kind: 'pc' }, 'nodes', 'A'), set(['A', 'B'], 'links', 0)]),
  ).toBe('lab: x\nnodes: { A: { kind: pc } }\nlinks: [[A, B]]\n')
})

test('any edits of any file give the file with just these edits', () => {
  const key = fc.constantFrom('kind', 'at', 'labels', 'config', 'new', 'a b', 'text', 'delay')
  const scalar = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', ' ', ':', '#', '\n', '"', "'", ',', '{', '1', '\t', '-'), maxLength: 8 }),
    fc.integer(),
    fc.boolean(),
  )
  const value = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'small' },
      scalar,
      fc.array(tie('value'), { maxLength: 3 }),
      fc.dictionary(key, tie('value'), { maxKeys: 3 }),
    ),
  })).value
  const path = fc.oneof(
    fc.tuple(fc.constant('nodes'), fc.constantFrom('PC1', 'R1', 'R2', 'NEW'), key),
    fc.tuple(fc.constant('nodes'), fc.constantFrom('PC1', 'R1', 'NEW'), key, key),
    fc.tuple(fc.constant('links'), fc.nat(2), key),
    fc.tuple(fc.constant('segments'), fc.constantFrom('lan1', 's'), fc.constant('members'), fc.nat(1), key),
    fc.tuple(fc.constantFrom('about', 'starting')),
  )
  const edit = fc.record({
    path: path as fc.Arbitrary<(string | number)[]>,
    value: fc.option(value, { nil: undefined }),
  })
  fc.assert(
    fc.property(
      fc.constantFrom(example, block, block.replaceAll('\n', '\r\n')),
      fc.array(edit, { maxLength: 4 }),
      (text, edits) => {
        // Paths into values that other edits replace, and lists with holes, are no edits.
        const paths = edits.map((it) => it.path)
        const isClear = paths.every((path, index) =>
          paths.every((other, at) => at === index || !path.every((key, step) => other[step] === key)),
        )
        const tree = parse(text) as Record<string, unknown>
        const fits = edits.every(({ path, value }) => {
          let parent: unknown = tree
          for (const key of path.slice(0, -1)) {
            if (typeof parent !== 'object' || parent === null)
              return parent === undefined && !path.some((it) => typeof it === 'number')
            if (Array.isArray(parent) && Number(key) >= parent.length) return false
            parent = (parent as Record<string | number, unknown>)[key]
          }
          if (parent === undefined) return !path.some((it) => typeof it === 'number') && value !== undefined
          return typeof parent === 'object' && parent !== null
            ? !Array.isArray(parent) || path[0] === 'links'
            : path[2] === 'members'
        })
        fc.pre(isClear && fits)
        // It throws when the result says anything else.
        const after = editedLabFile(text, edits)
        expect(editedLabFile(after, edits)).toBe(after)
      },
    ),
    { numRuns: 100 },
  )
})
