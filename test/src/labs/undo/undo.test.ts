import { expect, test, vi } from 'vitest'
import { createLink } from '../../../../src/labs/links/links.ts'
import { createNode } from '../../../../src/labs/nodes/create-node.ts'
import { removeNode } from '../../../../src/labs/nodes/nodes.ts'
import { updateNode } from '../../../../src/labs/nodes/update-node.ts'
import { editsOf, rollBack, undoEdit } from '../../../../src/labs/undo/undo.ts'
import { labsInMemory, MemoryCompute } from '../../../support/memory-compute.ts'

/** A lab with two nodes of one undo group, which another edit has linked since. */
async function linkedSince() {
  const labs = await labsInMemory(new MemoryCompute())
  const agentFor = labs.computes.agent
  const { project_id } = await labs.creation.create({ name: 'linked', compute_id: 'local' }, agentFor)
  const lab = await labs.lab(project_id)
  const undoGroup = { by: 'edit' } as const
  const pcs = []
  for (const name of ['PC1', 'PC2'])
    pcs.push(await createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { agentFor, undoGroup }))
  const ids = pcs.map(({ node_id }) => node_id)
  const link = () => createLink(labs, lab, { nodes: ['PC1:eth0', 'PC2:eth0'] }, agentFor)
  return { labs, lab, agentFor, undoGroup, ids, link }
}

test('a rollback reports what it left, and does not speak of an undo', async () => {
  const { labs, lab, agentFor, undoGroup, ids, link } = await linkedSince()
  await link()
  const left = await rollBack(labs, lab, undoGroup, agentFor)
  expect(left).toEqual([`the node ${ids[0]} was linked since this edit`])
})

test('an undo that is not possible says why, and that the edit is forgotten', async () => {
  const { labs, lab, agentFor, ids, link } = await linkedSince()
  await link()
  const undo = () => undoEdit(labs, lab, { way: 'undo', check() {} }, agentFor)
  await undo()
  const [, pc2] = ids
  lab.document.nodes.set(pc2 ?? '', { ...lab.node('PC2'), x: 7 })
  await expect(undo()).rejects.toMatchObject({
    status: 409,
    message: `Cannot undo: the node ${pc2} has changed since this edit. The edit was removed from the history`,
  })
})

/** A lab that ada and ben edit. */
async function sharedLab() {
  const labs = await labsInMemory(new MemoryCompute())
  const agentFor = labs.computes.agent
  const { project_id } = await labs.creation.create({ name: 'shared', compute_id: 'local' }, agentFor)
  const lab = await labs.lab(project_id)
  const caller = vi.spyOn(lab, 'caller', 'get')
  const as = (name: string) => caller.mockReturnValue(name)
  const add = (name: string) => createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { agentFor })
  const undo = (whose?: 'all') => undoEdit(labs, lab, { way: 'undo', check() {}, ...(whose && { whose }) }, agentFor)
  const redo = () => undoEdit(labs, lab, { way: 'redo', check() {} }, agentFor)
  const names = () => [...lab.document.nodes.values()].map(({ name }) => name)
  return { labs, lab, agentFor, as, add, undo, redo, names }
}

test('an undo takes the latest edit of the caller, and a redo brings it back after edits of others', async () => {
  const { lab, as, add, undo, redo, names } = await sharedLab()
  as('ada')
  await add('R1')
  as('ben')
  await add('R2')
  as('ada')
  expect(editsOf(lab)).toEqual({ undo: { text: 'add R1', by: 'ada' }, redo: null })
  await undo()
  expect(names()).toEqual(['R2'])
  as('ben')
  await add('R3')
  as('ada')
  expect(editsOf(lab)).toEqual({ undo: null, redo: { text: 'add R1', by: 'ada' } })
  await redo()
  expect(names()).toEqual(['R2', 'R3', 'R1'])
})

test('an undo below an edit of somebody else is refused by name, and possible once that one is undone', async () => {
  const { labs, lab, agentFor, as, add, undo, names } = await sharedLab()
  as('ada')
  const { node_id } = await add('R1')
  as('ben')
  await updateNode(labs, lab, node_id, { x: 40 }, agentFor)
  await add('R2')
  as('ada')
  await expect(undo()).rejects.toMatchObject({
    status: 409,
    message: 'Cannot undo (add R1): ben has edited the same since (move R1), which has to be undone first',
  })
  as('ben')
  await undo()
  await undo()
  as('ada')
  await undo()
  expect(names()).toEqual([])
})

test('a link of somebody else is on top of the node that it is at', async () => {
  const { labs, lab, agentFor, as, add, undo } = await sharedLab()
  as('ada')
  await add('PC1')
  await add('PC2')
  as('ben')
  await createLink(labs, lab, { nodes: ['PC1:eth0', 'PC2:eth0'] }, agentFor)
  as('ada')
  await expect(undo()).rejects.toThrow('ben has edited the same since (add 1 link)')
})

test('without an edit of their own, callers learn whose the last one is, and may take it', async () => {
  const { labs, lab, agentFor, as, add, undo, names } = await sharedLab()
  as('ada')
  const { node_id } = await add('R1')
  await removeNode(labs, lab, node_id, agentFor)
  as('ben')
  await expect(undo()).rejects.toThrow('You have nothing to undo. The last edit (delete R1) is by ada')
  await undo('all')
  expect(names()).toEqual(['R1'])
})
