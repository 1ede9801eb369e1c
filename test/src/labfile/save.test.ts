import { expect, test } from 'vitest'
import { readLabFile } from '../../../src/labfile/read.ts'
import { type SaveInputs, savedLab } from '../../../src/labfile/save.ts'

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

test('a place that an apply has chosen is not written, until one of these nodes is moved', async () => {
  const file = lab('  A: { kind: pc }\n  B: { kind: pc } # b')
  const grid = lab('  A: { kind: pc, at: [0, 0] }\n  B: { kind: pc, at: [120, 0] }')
  expect((await save(file, grid)).text).toBe(file)
  const moved = await save(file, grid.replace('[120, 0]', '[7, 7]'))
  expect(moved.text).toBe(lab('  A: { kind: pc, at: [0, 0] }\n  B: { kind: pc, at: [7, 7] } # b'))
  expect(moved.changes).toEqual([
    { do: 'update', what: 'node', name: 'A', keys: ['at'] },
    { do: 'update', what: 'node', name: 'B', keys: ['at'] },
  ])
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

test('the impairment of a link is written anew in the words of its own directions', async () => {
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
