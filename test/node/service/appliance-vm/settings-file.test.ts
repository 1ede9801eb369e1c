import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { ApplianceFile } from '../../../../runtime/node/service/appliance-vm/settings-file.ts'
import { defaultAppliance } from '../../../../src/model/appliance-vm.ts'
import { openRecords } from '../../../support/service-records.ts'

const settings = { ...defaultAppliance, enable: true, vmname: 'Lab VM', user: 'anna', password: 'geheim' }

async function newFile(minFreeMb = 0) {
  const { records, data, said } = await openRecords({ minFreeMb })
  return { path: join(data, 'appliance-vm.json'), said, file: new ApplianceFile(records) }
}

const modeOf = async (path: string) => (await stat(path)).mode & 0o777

test('saved settings are read again, and only their user can read the file', async () => {
  const { file, path, said } = await newFile()
  expect(await file.load()).toBeUndefined()
  await file.save(settings)
  await file.save({ ...settings, ram: 4096 })
  expect(await file.load()).toEqual({ ...settings, ram: 4096 })
  expect(await modeOf(path)).toBe(0o600)
  for (const each of [path, `${path}.bak`]) await chmod(each, 0o644)
  await file.load()
  expect([await modeOf(path), await modeOf(`${path}.bak`)]).toEqual([0o600, 0o600])
  expect(said).toEqual([])
})

test('settings of another version are read: missing ones have defaults, unknown ones are left out', async () => {
  const { file, path } = await newFile()
  await writeFile(path, JSON.stringify({ enable: true, vmname: 'Lab VM', secret: 'x', engine: 'virtualbox' }))
  expect(await file.load()).toEqual({ ...defaultAppliance, enable: true, vmname: 'Lab VM', engine: 'virtualbox' })
})

test.for(['', '{', 'null', '{"ram":"much"}', '{"engine":"vmware"}', '\0\0\0'])(
  'a file with %j is replaced by the version before',
  async (text) => {
    const { file, path, said } = await newFile()
    await file.save(settings)
    await file.save({ ...settings, ram: 4096 })
    await writeFile(path, text)
    expect(await file.load()).toEqual(settings)
    expect(said).toEqual(['the settings of the appliance VM are damaged and were read from the backup'])
  },
)

test('without a version before, the damaged file is renamed, and the defaults are used', async () => {
  const { file, path, said } = await newFile()
  await writeFile(path, '{')
  expect(await file.load()).toBeUndefined()
  expect(await readFile(`${path}.damaged`, 'utf8')).toBe('{')
  expect(said).toEqual([
    'the settings of the appliance VM cannot be read and were renamed to appliance-vm.json.damaged: set them again',
  ])
  await file.save(settings)
  expect(await file.load()).toEqual(settings)
})

test('a full disk is reported', async () => {
  const { file } = await newFile(2 ** 40)
  await expect(file.save(settings)).rejects.toMatchObject({ status: 507 })
})
