import { expect, test } from 'vitest'
import type { ComputeClient } from '../../../src/controller/compute-client.ts'
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
