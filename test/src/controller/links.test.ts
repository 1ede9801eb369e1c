import { expect, test } from 'vitest'
import type { ComputeClient } from '../../../src/controller/compute-client.ts'
import { createLink, findEnd } from '../../../src/controller/links.ts'
import { createNode, removeNode } from '../../../src/controller/nodes.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'

/** A lab with a pc and a switch, and an operation of its compute that takes until `end` is called. */
async function withSlow(operation: 'putLink' | 'removeNode') {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'race', compute_id: 'local' }, client)
  const lab = await labs.lab(project_id)
  for (const [name, node_type] of [['PC1', 'pc'] as const, ['SW', 'switch'] as const])
    await createNode(labs, lab, { name, node_type, compute_id: 'local' }, { ask: client })
  let [begin, end] = [() => {}, () => {}]
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const ask = (): ComputeClient => {
    const its = client('local')
    const real = its[operation] as (...input: unknown[]) => Promise<unknown>
    const slow = async (...input: unknown[]) => {
      begin()
      await ended
      return real(...input)
    }
    return Object.assign(its, { [operation]: slow })
  }
  const link = (by = client) => createLink(labs, lab, { nodes: ['PC1:eth0', 'SW:Ethernet0'] as never }, by)
  const isFree = () => lab.document.links.size === 0 && compute.links.size === 0 && findEnd(lab, 'SW:Ethernet0')
  return { lab, client, ask, link, isFree, begun, end: () => end() }
}

test('a link to a node that is deleted while it is made is 404, and leaves the other port free', async () => {
  const { lab, client, ask, link, isFree, begun, end } = await withSlow('putLink')
  const linking = link(ask)
  await begun
  await removeNode(lab, 'PC1', client)
  end()
  await expect(linking).rejects.toMatchObject({ status: 404 })
  expect(isFree()).toBeTruthy()
})

test('a link that is made while its node is being deleted goes with the node', async () => {
  const { lab, ask, link, isFree, begun, end } = await withSlow('removeNode')
  const removing = removeNode(lab, 'PC1', ask)
  await begun
  await link()
  end()
  await removing
  expect(isFree()).toBeTruthy()
})
