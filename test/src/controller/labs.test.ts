import { expect, test } from 'vitest'
import type { ComputeClient } from '../../../src/controller/compute-client.ts'
import { takeSnapshot } from '../../../src/controller/snapshots.ts'
import { labsInMemory, MemoryCompute } from '../../support/memory-compute.ts'

test('a closed lab that an export is closing on its compute again is opened there for the next export after that', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'twice', compute_id: 'local' }, client)
  await labs.close(project_id, client)
  const lab = await labs.find(project_id)
  const did: string[] = []
  let mayClose = () => {}
  const closing = new Promise<void>((resolve) => {
    mayClose = resolve
  })
  const ask = (): ComputeClient =>
    Object.assign(client('local'), {
      openProject: async () => void did.push('open'),
      async closeProject() {
        did.push('closing')
        await closing
        did.push('closed')
      },
    }) as ComputeClient

  const first = labs.whileOpen(lab, ask, async () => void did.push('first'))
  await expect.poll(() => did).toEqual(['open', 'first', 'closing'])
  const second = labs.whileOpen(lab, ask, async () => void did.push('second'))
  mayClose()
  await Promise.all([first, second])
  expect(did).toEqual(['open', 'first', 'closing', 'closed', 'open', 'second', 'closing', 'closed'])
})

test('a snapshot of a closed lab that is being opened is one of the open lab', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'opening', compute_id: 'local' }, client)
  await labs.close(project_id, client)
  const closed = await labs.find(project_id)
  let [begin, end] = [() => {}, () => {}]
  const begun = new Promise<void>((resolve) => {
    begin = resolve
  })
  const ended = new Promise<void>((resolve) => {
    end = resolve
  })
  const slow = (): ComputeClient =>
    Object.assign(client('local'), {
      async openProject() {
        begin()
        await ended
      },
    }) as ComputeClient
  const taking = (): ComputeClient =>
    Object.assign(client('local'), {
      takeSnapshot: async (_: string, snapshot_id: string) => ({ snapshot_id, created_at: 0, size: 1, ran: {} }),
    })

  const opening = labs.open(project_id, slow)
  await begun
  const snapshot = takeSnapshot(labs, closed, 'before', taking)
  end()
  await opening
  const { snapshot_id } = await snapshot
  const { document } = await labs.lab(project_id)
  expect([...document.snapshots.keys()]).toEqual([snapshot_id])
  expect(document.project.is_open).toBe(true)
})
