import { expect, test } from 'vitest'
import { labsInMemory, MemoryCompute } from '../../../support/memory-compute.ts'

test('what is not in a lab is named to people by its name, and not by an id', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { project_id } = await labs.creation.create({ name: 'net', compute_id: 'local' }, labs.computes.agent)
  const lab = await labs.lab(project_id)
  const id = crypto.randomUUID()
  expect(() => lab.node('PC7')).toThrow('node_id: the project net has no node PC7')
  expect(() => lab.node(id)).toThrow('node_id: the node is gone: the project net does not have it any more')
  expect(() => lab.link(id)).toThrow('link_id: the link is gone: the project net does not have it any more')
})
