import { expect, test } from 'vitest'
import { exportLab } from '../../../../src/labs/archives/archive.ts'
import type { ZipArchives } from '../../../../src/labs/archives/zip-archives.ts'
import { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { labsInMemory, MemoryCompute, overriding } from '../../../support/memory-compute.ts'

const options = { withImages: false, withSnapshots: true, resetsAddresses: false, withChecks: true, level: 1 }

test('an export of which a compute is not connected fails before its first byte', async () => {
  const labs = await labsInMemory(new MemoryCompute())
  let archives = 0
  const write = () => {
    archives += 1
    return new ReadableStream<Uint8Array>()
  }
  Object.assign(labs, { zip: { write } as Partial<ZipArchives> })
  const { agent } = labs.computes
  const { project_id } = await labs.creation.create({ name: 'away', compute_id: 'local' }, agent)
  const lab = await labs.lab(project_id)
  const away = new ApiError(503, 'The compute is not connected', { code: 'compute-unreachable' })
  const list = async () => {
    throw away
  }
  const agentFor = () => overriding(agent('local'), { files: { list } })
  await expect(exportLab(labs, lab, options, agentFor)).rejects.toBe(away)
  expect(archives).toBe(0)
})
