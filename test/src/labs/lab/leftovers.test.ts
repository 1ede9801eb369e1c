import { expect, test } from 'vitest'
import type { ComputeClient } from '../../../../src/labs/computes/compute-client.ts'
import { createLink, createLinks } from '../../../../src/labs/links/links.ts'
import { createNode, removeNode } from '../../../../src/labs/nodes/nodes.ts'
import { undoEdit } from '../../../../src/labs/undo/undo.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { hangMs } from '../../../support/limits.ts'
import { labsInMemory, MemoryCompute } from '../../../support/memory-compute.ts'

type Operation = 'createNode' | 'putLink' | 'joinLinks'

/** A lab with PC1 and PC2, and clients of its compute by which it does an operation, and is lost before it answers. */
async function losing(operation: Operation) {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'lost', compute_id: 'local' }, client)
  const lab = await labs.lab(project_id)
  for (const name of ['PC1', 'PC2'])
    await createNode(labs, lab, { name, node_type: 'pc', compute_id: 'local' }, { clientFor: client })
  const clientFor = (): ComputeClient => {
    const its = client('local')
    const real = its[operation] as (...input: unknown[]) => Promise<unknown>
    const lost = async (...input: unknown[]) => {
      await real(...input)
      throw new ApiError(504, 'The compute was lost')
    }
    return Object.assign(its, { [operation]: lost })
  }
  return { labs, lab, compute, client, clientFor }
}

const pair = { nodes: ['PC1:eth0', 'PC2:eth0'] as [string, string] }
const names = (nodes: Map<string, { name: string }>) => [...nodes.values()].map(({ name }) => name)

test('a node whose creation got no answer is removed from its compute', async () => {
  const { labs, lab, compute, client, clientFor } = await losing('createNode')
  const pc3 = { name: 'PC3', node_type: 'pc', compute_id: 'local', node_id: crypto.randomUUID() }
  await expect(createNode(labs, lab, pc3, { clientFor })).rejects.toMatchObject({ status: 504 })
  expect([names(compute.nodes), names(lab.document.nodes)]).toEqual([
    ['PC1', 'PC2'],
    ['PC1', 'PC2'],
  ])
  await createNode(labs, lab, pc3, { clientFor: client })
  expect(names(compute.nodes)).toEqual(['PC1', 'PC2', 'PC3'])
})

test('when an undo gets no answer to the creation of a node, the next undo can create it', async () => {
  const { labs, lab, compute, client, clientFor } = await losing('createNode')
  await removeNode(labs, lab, 'PC2', client)
  const undo = { way: 'undo', check() {} } as const
  await expect(undoEdit(labs, lab, undo, clientFor)).rejects.toMatchObject({ status: 504 })
  expect(names(compute.nodes)).toEqual(['PC1'])
  await undoEdit(labs, lab, undo, client)
  expect([names(compute.nodes), names(lab.document.nodes)]).toEqual([
    ['PC1', 'PC2'],
    ['PC1', 'PC2'],
  ])
})

test('a link that got no answer is removed from its compute, and its ports are free', async () => {
  const one = await losing('putLink')
  await expect(createLink(one.labs, one.lab, pair, one.clientFor)).rejects.toMatchObject({ status: 504 })
  expect(one.compute.links.size).toBe(0)
  await createLink(one.labs, one.lab, pair, one.client)
  const many = await losing('joinLinks')
  expect(await createLinks(many.labs, many.lab, [pair], many.clientFor)).toMatchObject([{ status: 504 }])
  expect(many.compute.links.size).toBe(0)
  await createLink(many.labs, many.lab, pair, many.client)
})

test('objects that a lost answer may have made are removed when the compute answers again', async () => {
  const { labs, lab, compute, clientFor } = await losing('createNode')
  compute.beforeChange = (what) => {
    if (what === 'remove') throw new ApiError(503, 'The compute is not connected')
  }
  const pc3 = { name: 'PC3', node_type: 'pc', compute_id: 'local' }
  await expect(createNode(labs, lab, pc3, { clientFor })).rejects.toMatchObject({ status: 504 })
  expect(names(compute.nodes)).toEqual(['PC1', 'PC2', 'PC3'])
  compute.beforeChange = () => {}
  await expect.poll(() => names(compute.nodes), { timeout: hangMs }).toEqual(['PC1', 'PC2'])
})
