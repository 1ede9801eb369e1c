import { expect, test } from 'vitest'
import { Changes } from '../../../src/controller/document.ts'
import { drainCompute } from '../../../src/controller/drain.ts'
import { settleMove } from '../../../src/controller/move.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'
import { MemoryLabs } from '../../support/memory-labs.ts'

const project_id = '6b1f7c1e-9d0b-4b7c-8f3a-2f5d9c0e7a41'

test('a lab is free of a move to a compute that was removed from the fleet meanwhile', async () => {
  const compute = new MemoryCompute()
  const labs = await labsInMemory(compute)
  const ask = labs.computes.client
  await labs.create({ project_id, name: 'moved', compute_id: 'local' }, ask)
  const lab = await labs.lab(project_id)
  await labs.moved(lab, (project) =>
    new Changes().project({ ...project, moving: { from: 'local', to: 'removed' }, left: ['another'] }),
  )
  await settleMove(labs, lab, ask)
  expect(lab.document.project).not.toHaveProperty('moving')
  expect(lab.document.project).not.toHaveProperty('left')
})

test('a lab that was not made to its end goes, also when its compute was removed from the fleet', async () => {
  const store = new MemoryLabs()
  const before = await labsInMemory(new MemoryCompute(), store)
  await before.create({ project_id, name: 'begun', compute_id: 'local' }, before.computes.client)
  const { project } = (await before.lab(project_id)).document
  const head = { ...project, unfinished: true, computes: ['removed'], is_open: false }
  await store.save(project_id, new Changes().project(head as never).entries)
  store.heads = async () => new Map([[project_id, head]])

  const after = await labsInMemory(new MemoryCompute(), store)
  await after.restore()
  expect([...after.ids()]).toEqual([])
  await after.create({ name: 'begun', compute_id: 'local' }, after.computes.client)
})

test('a compute is drained by one job at a time, also when it is asked for twice at once', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const drain = () => drainCompute(labs, 'local', labs.computes.client)
  const [first, second] = await Promise.allSettled([drain(), drain()])
  expect(first).toMatchObject({ status: 'fulfilled' })
  expect(second).toMatchObject({ status: 'rejected', reason: { status: 409 } })
})
