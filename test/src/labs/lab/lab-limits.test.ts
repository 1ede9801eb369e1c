import { expect, test } from 'vitest'
import { createDrawing, removeDrawing, updateDrawing } from '../../../../src/labs/drawings.ts'
import { defaultLabLimits, type LabLimits } from '../../../../src/labs/lab/lab-limits.ts'
import { createNode } from '../../../../src/labs/nodes/create-node.ts'
import { undoEdit } from '../../../../src/labs/undo/undo.ts'
import { labsInMemory, MemoryCompute } from '../../../support/memory-compute.ts'
import { MemoryLabs } from '../../../support/memory-labs.ts'

const svg = (kib: number, letter = 'x') => `<svg>${letter.repeat(kib * 1024)}</svg>`
const template = (name: string, kib: number) => ({ name, template_type: 'pc', usage: 'x'.repeat(kib * 1024) })

/** What a agent sees of a refusal. */
const refused = (limit: string) => ({
  ...{ status: 413, code: 'limit-reached' },
  message: expect.stringContaining(`limits.${limit}`),
})

async function labsWith(limits: Partial<LabLimits>, store = new MemoryLabs()) {
  const now = { ...defaultLabLimits, ...limits }
  const labs = await labsInMemory(new MemoryCompute(), store, { limits: () => now })
  const agentFor = labs.computes.agent
  const make = async (name: string) =>
    labs.lab((await labs.creation.create({ name, compute_id: 'local' }, agentFor, { scope: ['class-*'] })).project_id)
  return { labs, agentFor, make, now }
}

test('a lab has at most limits.lab_mb of JSON, whatever clients store in it', async () => {
  const { labs, agentFor, make } = await labsWith({ lab_mb: 1 })
  const lab = await make('class-1')
  const first = await createDrawing(lab, { svg: svg(600) })
  await expect(createDrawing(lab, { svg: svg(600) })).rejects.toMatchObject(refused('lab_mb'))
  const [text, kept] = ['x'.repeat(600 * 1024), { more: 'ü'.repeat(300 * 1024) }]
  await expect(updateDrawing(lab, first.drawing_id, { kept })).rejects.toMatchObject(refused('lab_mb'))
  await expect(labs.settings.set(lab, { variables: [{ name: 'a', value: text }] }, agentFor)).rejects.toMatchObject({
    status: 400,
  })
  const node = { name: 'PC1', node_type: 'pc', compute_id: 'local', kept: { text } } as never
  await expect(createNode(labs, lab, node, { agentFor })).rejects.toMatchObject(refused('lab_mb'))
  expect(lab.document.objects).toBe(1)
  await removeDrawing(lab, first.drawing_id)
  await createDrawing(lab, { svg: svg(600) })
})

test('a lab has at most limits.lab_objects nodes, links, drawings and snapshots together', async () => {
  const { labs, agentFor, make } = await labsWith({ lab_objects: 2 })
  const lab = await make('class-1')
  await createNode(labs, lab, { name: 'PC1', node_type: 'pc', compute_id: 'local' }, { agentFor })
  const { drawing_id } = await createDrawing(lab, { svg: '<svg/>' })
  await expect(createDrawing(lab, { svg: '<svg/>' })).rejects.toMatchObject(refused('lab_objects'))
  const another = createNode(labs, lab, { name: 'PC2', node_type: 'pc', compute_id: 'local' }, { agentFor })
  await expect(another).rejects.toMatchObject(refused('lab_objects'))
  await removeDrawing(lab, drawing_id)
  await createNode(labs, lab, { name: 'PC2', node_type: 'pc', compute_id: 'local' }, { agentFor })
})

test('a lab that is larger than the limits stays usable: it can be changed and shrink, and only its growth is refused', async () => {
  const { labs, agentFor, make, now } = await labsWith({})
  const lab = await make('class-1')
  const [big, small] = [await createDrawing(lab, { svg: svg(1500) }), await createDrawing(lab, { svg: svg(1) })]
  Object.assign(now, { lab_mb: 1, lab_objects: 1 })
  expect(await updateDrawing(lab, small.drawing_id, { x: 0, svg: svg(1, 'y') })).toMatchObject({ svg: svg(1, 'y') })
  await updateDrawing(lab, big.drawing_id, { svg: svg(1400) })
  await expect(updateDrawing(lab, small.drawing_id, { svg: svg(2) })).rejects.toMatchObject(refused('lab_mb'))
  await labs.lifecycle.close(lab.id, agentFor)
  expect(await labs.lifecycle.open(lab.id, agentFor)).toMatchObject({ status: 'opened' })
  await removeDrawing(await labs.lab(lab.id), big.drawing_id)
})

test('an undo does not make a lab larger than its limit', async () => {
  const { labs, agentFor, make } = await labsWith({ lab_mb: 1 })
  const lab = await make('class-1')
  const { drawing_id } = await createDrawing(lab, { svg: svg(600) })
  await removeDrawing(lab, drawing_id)
  const other = await createDrawing(lab, { svg: svg(600) })
  await undoEdit(labs, lab, { way: 'undo', check: () => {} }, agentFor)
  await undoEdit(labs, lab, { way: 'undo', check: () => {} }, agentFor)
  expect([...lab.document.drawings.keys()]).toEqual([drawing_id])
  await expect(undoEdit(labs, lab, { way: 'redo', check: () => {} }, agentFor)).resolves.toBeDefined()
  await createDrawing(lab, { svg: svg(500) })
  expect(lab.document.drawings.has(other.drawing_id)).toBe(false)
})

test('all open labs together have limits.open_labs_mb, and edits that could be undone are forgotten first', async () => {
  const { labs, agentFor, make } = await labsWith({ open_labs_mb: 2 })
  const [first, second] = [await make('class-1'), await make('class-2')]
  const { drawing_id } = await createDrawing(first, { svg: svg(300) })
  for (const letter of ['a', 'b', 'c', 'd', 'e', 'f']) await updateDrawing(first, drawing_id, { svg: svg(300, letter) })
  const before = first.history.bytes
  await createDrawing(second, { svg: svg(600) })
  expect(first.history.bytes).toBeLessThan(before)
  await expect(createDrawing(second, { svg: svg(900) })).rejects.toMatchObject(refused('open_labs_mb'))
  await labs.lifecycle.close(first.id, agentFor)
  await createDrawing(second, { svg: svg(700) })
  // Beside the second one it does not fit any more, and is opened when that is closed.
  await expect(labs.lifecycle.open(first.id, agentFor)).rejects.toMatchObject(refused('open_labs_mb'))
  await labs.lifecycle.close(second.id, agentFor)
  expect(await labs.lifecycle.open(first.id, agentFor)).toMatchObject({ status: 'opened' })
})

test('JSON of many small values counts as the memory that it takes', async () => {
  const { make } = await labsWith({ open_labs_mb: 10 })
  const lab = await make('class-1')
  const kept = { list: Array.from({ length: 300_000 }, () => ({})) }
  expect(JSON.stringify(kept).length).toBeLessThan(2 ** 20)
  await expect(createDrawing(lab, { svg: '', kept })).rejects.toMatchObject(refused('open_labs_mb'))
})

test('templates and symbols of users have limits.templates and limits.templates_mb', async () => {
  const { labs, now } = await labsWith({ templates_mb: 1, templates: 20 })
  const { template_id } = await labs.templates.create(template('one', 60))
  const more = Array.from({ length: 18 }, (_, index) => labs.templates.create(template(`t${index}`, 60)))
  const full = (await Promise.allSettled(more)).filter(({ status }) => status === 'rejected')
  expect(full.length).toBeGreaterThan(0)
  expect(full[0]).toMatchObject({ reason: refused('templates_mb') })
  await labs.templates.update(template_id, { usage: 'short' })
  Object.assign(now, { templates: 2 })
  await expect(labs.templates.create(template('small', 0))).rejects.toMatchObject(refused('templates'))
  await labs.templates.update(template_id, { usage: 'shorter' })
  await labs.symbols.save('big', svg(700))
  await expect(labs.symbols.save('other', svg(700))).rejects.toMatchObject(refused('templates_mb'))
})

test('a token for some projects has at most limits.token_projects, and all together have limits.projects', async () => {
  const { labs, agentFor, make, now } = await labsWith({ token_projects: 2 })
  const [first] = [await make('class-1'), await make('class-2')]
  await labs.creation.create({ name: 'of-another', compute_id: 'local' }, agentFor)
  await expect(make('class-3')).rejects.toMatchObject(refused('token_projects'))
  Object.assign(now, { projects: 3 })
  const another = labs.creation.create({ name: 'one-more', compute_id: 'local' }, agentFor)
  await expect(another).rejects.toMatchObject(refused('projects'))
  await labs.lifecycle.remove(first.id, agentFor)
  await make('class-3')
})

test('the variables of all projects of a token have a limit together', async () => {
  const { labs, agentFor } = await labsWith({})
  const variables = [{ name: 'a', value: 'x'.repeat(65_000) }]
  const make = async (index: number) =>
    labs.creation.create({ name: `class-${index}`, compute_id: 'local', variables }, agentFor, { scope: ['class-*'] })
  const made = await Promise.allSettled(Array.from({ length: 70 }, (_, index) => make(index)))
  const refusals = made.flatMap((it) => (it.status === 'rejected' ? [it.reason] : []))
  expect(refusals.length).toBeGreaterThan(0)
  expect(refusals[0]).toMatchObject({ status: 413, message: expect.stringContaining('limited to 4 MiB in total') })
})
