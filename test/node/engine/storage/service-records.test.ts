import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { RecordFormat, ServiceRecords } from '../../../../runtime/node/engine/storage/service-records.ts'
import { openRecords } from '../../../support/service-records.ts'

const format: RecordFormat<{ value: number }> = {
  file: 'things.json',
  name: 'the things',
  parse(text) {
    const { value } = JSON.parse(text) as { value?: number }
    if (value === undefined) throw new Error('no things')
    return { value }
  },
  lost: 'make them again',
}
const write = (records: ServiceRecords, value: number, isMore = false) => records.write(format, { value }, { isMore })

test('a record that cannot be saved is refused, logged and reported in the feed, once until it has been saved', async () => {
  const { records, data, said } = await openRecords()
  const told: string[] = []
  records.tellFeed((message) => void told.push(message))
  await write(records, 1)
  await rename(data, `${data}.away`)
  await expect(write(records, 2)).rejects.toMatchObject({
    status: 409,
    message: expect.stringMatching(/^The things were not saved: /),
  })
  await expect(write(records, 3)).rejects.toMatchObject({ status: 409 })
  expect(told).toEqual([expect.stringMatching(/^things\.json could not be saved: The things were not saved: /)])
  await rename(`${data}.away`, data)
  expect(await records.read(format)).toEqual({ state: 'whole', value: { value: 1 } })
  await write(records, 4)
  await rename(data, `${data}.away`)
  await expect(write(records, 5)).rejects.toThrow()
  await rename(`${data}.away`, data)
  expect(told).toHaveLength(2)
  expect(said).toEqual(told)
  expect(await readdir(data)).toEqual(['things.json', 'things.json.bak'])
})

test('on a nearly full disk a record cannot grow, and can be made smaller', async () => {
  const { records, said } = await openRecords({ minFreeMb: 2 ** 40 })
  await expect(write(records, 1, true)).rejects.toMatchObject({ status: 507 })
  await expect(records.requireSpace(format)).rejects.toMatchObject({ status: 507 })
  expect(said).toEqual([expect.stringContaining('min_free_space_mb')])
  await write(records, 2)
  expect(await records.read(format)).toMatchObject({ value: { value: 2 } })
})

test('an unreadable record is renamed, and not overwritten when that fails', async () => {
  const { records, data, said } = await openRecords()
  expect(await records.read(format)).toEqual({ state: 'none' })
  const path = join(data, 'things.json')
  await writeFile(path, '{')
  expect(await records.read(format)).toEqual({ state: 'lost' })
  expect(await readFile(`${path}.damaged`, 'utf8')).toBe('{')
  expect(said).toEqual(['the things cannot be read and were renamed to things.json.damaged: make them again'])
  await writeFile(path, '{')
  await rename(`${path}.damaged`, `${path}.mended`)
  await mkdir(`${path}.damaged`)
  await expect(records.read(format)).rejects.toMatchObject({ message: expect.stringContaining(path) })
  expect(await readFile(path, 'utf8')).toBe('{')
})

test('files of killed writers are removed when the records are opened, and other users cannot read a record', async () => {
  const { records, data } = await openRecords()
  await write(records, 1)
  const path = join(data, 'things.json')
  await writeFile(join(data, '.writing-things.json-0a'), '')
  const umask = process.umask(0)
  onTestFinished(() => void process.umask(umask))
  await write((await openRecords({ data })).records, 2)
  expect(await readdir(data)).toEqual(['things.json', 'things.json.bak'])
  for (const it of [path, `${path}.bak`]) expect((await stat(it)).mode & 0o777).toBe(0o600)
})
