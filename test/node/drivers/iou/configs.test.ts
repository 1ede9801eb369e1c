import { mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { adoptFiles, nvramName, removeVlans, vlanName } from '../../../../runtime/node/drivers/iou/configs.ts'
import {
  type ConfigName,
  createConfig,
  named,
  privateConfigName,
  readConfig,
  renamed,
  renameInConfig,
  saveConfig,
  stageConfigs,
  startupConfigName,
} from '../../../../runtime/node/engine/nodes/router-configs.ts'
import { freshDirectory } from '../../../support/directory.ts'

const startup = startupConfigName

/** As an update of one does. */
async function updateConfig(directory: string, name: ConfigName, text: string | null, router: string): Promise<void> {
  const staged = await stageConfigs(directory, { [name]: text }, router)
  await staged.commit()
}

test('%h is replaced by the name everywhere, with any characters in the name', () => {
  expect(named('hostname %h\nbanner # %h%h #\n', 'R1')).toBe('hostname R1\nbanner # R1R1 #\n')
  expect(named('hostname %h', '$&$1')).toBe('hostname $&$1')
})

test('a change of the name edits the line that sets it and no other', () => {
  const text = 'hostname R1\r\nhostname R10\n no hostname R1\ninterface R1\nbanner R1\nhostname  R1 \nip hostname R1\n'
  expect(renamed(text, 'R1', '$&2')).toBe(
    'hostname $&2\r\nhostname R10\n no hostname R1\ninterface R1\nbanner R1\nhostname  $&2 \nip hostname R1\n',
  )
  expect(renamed('hostname R2\n', 'R1', 'R3')).toBe('hostname R2\n')
})

test('a create writes missing files, and never replaces files of a saved lab', async () => {
  const directory = await freshDirectory()
  expect(await readConfig(directory, startup)).toBe(null)
  expect(await createConfig(directory, startup, null, 'R1')).toBe(true)
  expect(await readConfig(directory, startup)).toBe('')
  expect(await createConfig(directory, startup, '', 'R1')).toBe(false)
  expect(await createConfig(directory, startup, 'hostname %h\n', 'R1')).toBe(true)
  expect(await readConfig(directory, startup)).toBe('hostname R1\n')
  for (const text of ['hostname other\n', '', null]) {
    expect(await createConfig(directory, startup, text, 'R1')).toBe(false)
    expect(await readConfig(directory, startup)).toBe('hostname R1\n')
  }
  expect(await readdir(directory)).toEqual([startup])
  expect((await stat(join(directory, startup))).mode & 0o777).toBe(0o600)
})

test('an update overwrites a file, but not with an empty text', async () => {
  const directory = await freshDirectory()
  await updateConfig(directory, privateConfigName, 'one', 'R1')
  await updateConfig(directory, privateConfigName, 'two %h', 'R1')
  for (const text of ['', null]) await updateConfig(directory, privateConfigName, text, 'R1')
  expect(await readConfig(directory, privateConfigName)).toBe('two R1')
})

test('a configuration that a router saved is written unchanged, and an empty one is not', async () => {
  const directory = await freshDirectory()
  expect(await saveConfig(directory, startup, 'hostname %h\n')).toBe(true)
  expect(await saveConfig(directory, startup, 'hostname %h\n')).toBe(false)
  for (const text of ['', null]) expect(await saveConfig(directory, startup, text)).toBe(false)
  expect(await readConfig(directory, startup)).toBe('hostname %h\n')
})

test('a rename is followed in the file, if there is one', async () => {
  const directory = await freshDirectory()
  await renameInConfig(directory, 'R1', 'R2')
  expect(await readdir(directory)).toEqual([])
  await writeFile(join(directory, startup), Buffer.from('banner \xe9\nhostname R1\n', 'latin1'))
  await renameInConfig(directory, 'R1', 'R2')
  expect(await readConfig(directory, startup)).toBe('banner é\nhostname R2\n')
})

test('a path that is not a regular file, or a file that is too long, is refused', async () => {
  const directory = await freshDirectory()
  await mkdir(join(directory, startup))
  const refused = (message: string) => ({ status: 409, message })
  await expect(readConfig(directory, startup)).rejects.toMatchObject(refused('startup-config.cfg is not a file'))
  await expect(updateConfig(directory, startup, 'x', 'R1')).rejects.toMatchObject(
    refused('Writing startup-config.cfg: a directory is in the way'),
  )
  expect(await readdir(directory)).toEqual([startup])
  await writeFile(join(directory, privateConfigName), Buffer.alloc(1048577))
  await expect(readConfig(directory, privateConfigName)).rejects.toMatchObject(
    refused('private-config.cfg has 1048577 bytes, expected at most 1048576'),
  )
})

test('a symbolic link is replaced, and its target is not touched', async () => {
  const directory = await freshDirectory()
  const other = join(directory, 'other')
  await writeFile(other, 'mine')
  await symlink(other, join(directory, startup))
  expect(await createConfig(directory, startup, 'x', 'R1')).toBe(false)
  await updateConfig(directory, startup, 'x', 'R1')
  expect(await readFile(other, 'utf8')).toBe('mine')
  await symlink('/nowhere/at/all', join(directory, privateConfigName))
  expect(await createConfig(directory, privateConfigName, 'x', 'R1')).toBe(false)
})

test('files of another id get the name of the current one, the newest of several', async () => {
  const directory = await freshDirectory()
  const put = async (name: string, seconds: number) => {
    await writeFile(join(directory, name), name)
    await utimes(join(directory, name), seconds, seconds)
  }
  await put('nvram_00003', 100)
  await put('nvram_00004', 300)
  await put('nvram_00005', 200)
  await put('vlan.dat-00003', 100)
  await put('nvram_00001.bak', 900)
  await put('nvram_1', 900)
  await mkdir(join(directory, 'nvram_00009'))
  await adoptFiles(directory, 12)
  const left = [
    'nvram_00001.bak',
    'nvram_00003',
    'nvram_00005',
    'nvram_00009',
    'nvram_00012',
    'nvram_1',
    'vlan.dat-00012',
  ]
  expect((await readdir(directory)).sort()).toEqual(left)
  expect(await readFile(join(directory, nvramName(12)), 'utf8')).toBe('nvram_00004')
  // What has the right name already counts, whatever else there is.
  await put('nvram_00007', 9999)
  await adoptFiles(directory, 12)
  expect(await readFile(join(directory, nvramName(12)), 'utf8')).toBe('nvram_00004')
  expect(await readFile(join(directory, vlanName(12)), 'utf8')).toBe('vlan.dat-00003')
  await removeVlans(directory)
  expect(await readdir(directory)).not.toContain(vlanName(12))
})

test('a missing directory is reported', async () => {
  await expect(adoptFiles('/nowhere/at/all', 1)).rejects.toMatchObject({ status: 409 })
})
