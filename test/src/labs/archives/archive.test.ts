import { expect, test } from 'vitest'
import { exportLab } from '../../../../src/labs/archives/archive.ts'
import type { LabArchives } from '../../../../src/labs/archives/archives.ts'
import type { ComputeClient } from '../../../../src/labs/computes/compute-client.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { labsInMemory, MemoryCompute } from '../../../support/memory-compute.ts'

const options = { withImages: false, withSnapshots: true, resetsAddresses: false, level: 1 }

test('an export of which a compute is not connected fails before its first byte', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  let archives = 0
  const write = () => {
    archives += 1
    return new ReadableStream<Uint8Array>()
  }
  Object.assign(labs, { archives: { write } as Partial<LabArchives> })
  const { client } = labs.computes
  const { project_id } = await labs.create({ name: 'away', compute_id: 'local' }, client)
  const lab = await labs.lab(project_id)
  const away = new ApiError(503, 'The compute is not connected', { code: 'compute-unreachable' })
  const files = async () => {
    throw away
  }
  const clientFor = () => Object.assign(client('local'), { files }) as ComputeClient
  await expect(exportLab(labs, lab, options, clientFor)).rejects.toBe(away)
  expect(archives).toBe(0)
})
