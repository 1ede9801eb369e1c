import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { RegistryFile } from '../../../../runtime/node/service/fleet/registry-file.ts'
import type { ComputeRecord } from '../../../../src/model/compute.ts'
import { openRecords } from '../../../support/service-records.ts'

const record = (compute_id: string, more: Partial<ComputeRecord> = {}): ComputeRecord => ({
  ...{ compute_id, name: null, protocol: 'https', host: 'lab', port: 3080, user: 'anna', password: 'geheim' },
  ...more,
})

async function open(data?: string, minFreeMb = 0) {
  const {
    records: files,
    data: directory,
    said,
  } = await openRecords({ ...(data !== undefined && { data }), minFreeMb })
  const registry = new RegistryFile(files)
  return { registry, directory, said, file: join(directory, 'computes.json'), records: await registry.load() }
}

test('saved computes are read after a restart, in their order, and only the user can read the file', async () => {
  const { registry, directory, file, records } = await open()
  expect(records).toEqual([])
  for (const id of ['b', 'A', 'c']) await registry.save(record(id))
  await registry.save(record('B', { name: 'changed' }))
  await registry.remove('C')
  await registry.remove('none')
  for (const path of [file, `${file}.bak`]) expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await open(directory)).records).toEqual([record('B', { name: 'changed' }), record('A')])
})

test('a file that others could read becomes private', async () => {
  const { registry, directory, file } = await open()
  await registry.save(record('a'))
  await chmod(file, 0o644)
  await open(directory)
  expect((await stat(file)).mode & 0o777).toBe(0o600)
})

test('a damaged file is replaced by the version before, or renamed when there is none', async () => {
  const { registry, directory, file } = await open()
  await registry.save(record('a'))
  await registry.save(record('b'))
  await writeFile(file, '{"version": 1, "computes": [{}]}')
  const again = await open(directory)
  expect(again.records).toEqual([record('a')])
  expect(again.said).toHaveLength(1)
  await Promise.all([writeFile(file, '{'), writeFile(`${file}.bak`, '{')])
  const lost = await open(directory)
  expect([lost.records, lost.said.length]).toEqual([[], 1])
  await lost.registry.save(record('c'))
  expect(await readFile(`${file}.damaged`, 'utf8')).toBe('{')
})

test('on a full disk no compute is added, and stored ones can still be deleted', async () => {
  const { registry, directory } = await open()
  await registry.save(record('a'))
  const full = await open(directory, 1e9)
  await expect(full.registry.save(record('b'))).rejects.toMatchObject({ status: 507 })
  await full.registry.remove('a')
  expect((await open(directory)).records).toEqual([])
})
