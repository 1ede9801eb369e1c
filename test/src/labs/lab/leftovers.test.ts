import { expect, test } from 'vitest'
import { createLink, createLinks } from '../../../../src/labs/links/links.ts'
import { createNode } from '../../../../src/labs/nodes/create-node.ts'
import { removeNode } from '../../../../src/labs/nodes/nodes.ts'
import { undoEdit } from '../../../../src/labs/undo/undo.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { hangMs } from '../../../support/limits.ts'
import { labsInMemory, MemoryCompute, type OperationName, wrapping } from '../../../support/memory-compute.ts'

/** A lab with PC1 and PC2, and agents of its compute by which it does an operation, and is lost before it answers. */
async function losing(operation: OperationName) {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'lost', compute_id: 'local' }, agent)
  const lab = await labs.lab(project_id)
  for (const name of ['PC1', 'PC2'])
    await createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { agentFor: agent })
  const agentFor = () =>
    wrapping(agent('local'), operation, (real) => async (...input) => {
      await real(...input)
      throw new ApiError(504, 'The compute was lost')
    })
  return { labs, lab, compute, agent, agentFor }
}

const pair = { nodes: ['PC1:eth0', 'PC2:eth0'] as [string, string] }
const names = (nodes: Map<string, { name: string }>) => [...nodes.values()].map(({ name }) => name)

test('a node whose creation got no answer is removed from its compute', async () => {
  const { labs, lab, compute, agent, agentFor } = await losing('nodes.create')
  const pc3 = { name: 'PC3', node_type: 'pc', compute_id: 'local', node_id: crypto.randomUUID() }
  await expect(createNode(labs, lab, pc3, { agentFor })).rejects.toMatchObject({ status: 504 })
  expect([names(compute.nodes), names(lab.document.nodes)]).toEqual([
    ['PC1', 'PC2'],
    ['PC1', 'PC2'],
  ])
  await createNode(labs, lab, pc3, { agentFor: agent })
  expect(names(compute.nodes)).toEqual(['PC1', 'PC2', 'PC3'])
})

test('when an undo gets no answer to the creation of a node, the next undo can create it', async () => {
  const { labs, lab, compute, agent, agentFor } = await losing('nodes.create')
  await removeNode(labs, lab, 'PC2', agent)
  const undo = { way: 'undo', check() {} } as const
  await expect(undoEdit(labs, lab, undo, agentFor)).rejects.toMatchObject({ status: 504 })
  expect(names(compute.nodes)).toEqual(['PC1'])
  await undoEdit(labs, lab, undo, agent)
  expect([names(compute.nodes), names(lab.document.nodes)]).toEqual([
    ['PC1', 'PC2'],
    ['PC1', 'PC2'],
  ])
})

test('a link that got no answer is removed from its compute, and its ports are free', async () => {
  const one = await losing('links.join')
  await expect(createLink(one.labs, one.lab, pair, one.agentFor)).rejects.toMatchObject({ status: 504 })
  expect(one.compute.links.size).toBe(0)
  await createLink(one.labs, one.lab, pair, one.agent)
  const many = await losing('links.joinAll')
  expect(await createLinks(many.labs, many.lab, [pair], many.agentFor)).toMatchObject([{ error: { status: 504 } }])
  expect(many.compute.links.size).toBe(0)
  await createLink(many.labs, many.lab, pair, many.agent)
})

test('objects that a lost answer may have made are removed when the compute answers again', async () => {
  const { labs, lab, compute, agentFor } = await losing('nodes.create')
  compute.beforeChange = (what) => {
    if (what === 'remove') throw new ApiError(503, 'The compute is not connected')
  }
  const pc3 = { name: 'PC3', node_type: 'pc', compute_id: 'local' }
  await expect(createNode(labs, lab, pc3, { agentFor })).rejects.toMatchObject({ status: 504 })
  expect(names(compute.nodes)).toEqual(['PC1', 'PC2', 'PC3'])
  compute.beforeChange = () => {}
  await expect.poll(() => names(compute.nodes), { timeout: hangMs }).toEqual(['PC1', 'PC2'])
})
