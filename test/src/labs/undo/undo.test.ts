import { expect, test } from 'vitest'
import { createLink } from '../../../../src/labs/links/links.ts'
import { createNode } from '../../../../src/labs/nodes/nodes.ts'
import { rollBack, undoEdit } from '../../../../src/labs/undo/undo.ts'
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
