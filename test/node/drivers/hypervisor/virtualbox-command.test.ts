import { spawnSync } from 'node:child_process'
import { chmod, cp, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { CommandLine } from '../../../../runtime/node/drivers/hypervisor/virtualbox/command-line.ts'
import { errorText } from '../../../../runtime/node/drivers/hypervisor/virtualbox/failure.ts'
import { findManager, locale, variables } from '../../../../runtime/node/drivers/hypervisor/virtualbox/program.ts'
import { environmentFor } from '../../../../runtime/node/os/programs/environment.ts'
import { standIn } from '../../../stand-in/virtualbox/build.ts'
import { World } from '../../../stand-in/virtualbox/world.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { driverWorld, planOf, soon } from './virtualbox-driver.ts'

test('commands run one at a time, in order', async () => {
  const { world, driver } = await driverWorld()
  const uuids = ['a', 'b', 'c', 'd'].map((name) => world.add(name).uuid)
  await Promise.all([driver.list(), ...uuids.map((uuid) => driver.get(uuid)), driver.find('a')])
  const events = world.log().map(({ event }) => event)
  expect(events).toEqual(events.map((_, index) => (index % 2 === 0 ? 'begin' : 'end')))
  expect(events.length).toBeGreaterThan(20)
  expect(world.log().filter(({ args }) => args[1] === 'systemproperties')).toHaveLength(2)
})

test('a command that does not end is killed, and the next one runs', async () => {
  const { world, driver } = await driverWorld({ commandMs: 1000 })
  const { uuid } = world.add('a')
  await driver.get(uuid)
  world.fault('list vms', 'hang')
  const hanging = driver.list()
  const next = driver.get(uuid)
  await expect(hanging).rejects.toMatchObject({
    status: 409,
    message: 'VirtualBox: list did not end within 1000 ms',
  })
  expect(await next).toMatchObject({ name: 'a' })
  const { pid = 0 } = world.log().find(({ args }) => args.join(' ') === 'list vms') ?? {}
  await expect.poll(() => isThere(pid), soon).toBe(false)
})

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

test('a command with endless output is killed', async () => {
  const { world, driver } = await driverWorld()
  world.fault('list vms', 'flood')
  await expect(driver.list()).rejects.toMatchObject({
    status: 409,
    message: 'VirtualBox: the output of list is longer than 4194304 bytes',
  })
  expect(await driver.list()).toEqual([])
})

test('the queue has a limit and a timeout, and is empty after a close', async () => {
  const { world, driver } = await driverWorld({ turnMs: 100, maxWaiting: 2 })
  const { uuid } = world.add('a')
  await driver.get(uuid)
  world.fault('pause', 'hang')
  const hanging = driver.suspend(uuid)
  await expect.poll(() => world.commands().some((line) => line.includes('pause')), soon).toBe(true)
  const waiting = [driver.get(uuid), driver.get(uuid)]
  await expect(driver.get(uuid)).rejects.toMatchObject({ status: 429 })
  for (const each of waiting) {
    await expect(each).rejects.toMatchObject({
      status: 409,
      message: 'VirtualBox is busy: showvminfo did not get its turn within 100 ms',
    })
  }
  const last = driver.get(uuid)
  const closing = driver.close()
  await expect(last).rejects.toMatchObject({ status: 409, message: 'VirtualBox: the service is stopping' })
  world.killCommands()
  await expect(hanging).rejects.toMatchObject({ status: 409 })
  await closing
  await expect(driver.list()).rejects.toMatchObject({ status: 409 })
})

test('a failure has the line with the reason, and no other', async () => {
  const { world, driver } = await driverWorld()
  world.fault('list vms', 'die', { stderr: `0%...10%\n${'x'.repeat(9999)}\nVBoxManage: error: Ende\u0007 \n` })
  await expect(driver.list()).rejects.toMatchObject({ status: 409, message: 'VirtualBox: Ende' })
  world.fault('list vms', 'die', { stderr: '' })
  await expect(driver.list()).rejects.toMatchObject({ message: 'VirtualBox: list failed (exit code 1)' })
  const details = 'VBoxManage: error: Details: code E_FAIL (0x80004005)\nVBoxManage: error: Context: "X" at line 1\n'
  expect(errorText(`VBoxManage: error: one\nVBoxManage: error: two\n${details}`)).toBe('two')
  expect(errorText(`${'y'.repeat(9999)}\n`)).toHaveLength(400)
})

test('names may have any characters, and are never options', async () => {
  const { world, driver } = await driverWorld()
  const names = [
    'a b',
    '--delete',
    '$(id)',
    '"q" {11111111-1111-4111-8111-111111111111}',
    'Zürich 東京',
    "it's; rm",
    '\\',
  ]
  for (const name of names) world.add(name)
  world.add('cannot be read', { accessible: false })
  expect((await driver.list()).map(({ name }) => name)).toEqual(names)
  for (const name of names) expect(await driver.find(name)).toMatchObject({ name, state: 'stopped' })
  await expect(driver.find('cannot be read')).rejects.toMatchObject({
    status: 409,
    message: 'VirtualBox has no VM "cannot be read"',
  })
  await expect(driver.get('a\0b')).rejects.toMatchObject({ status: 409 })
})

test('unreadable output is a conflict', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('a', { accessible: false })
  await expect(driver.get(uuid)).rejects.toMatchObject({ status: 409 })
  expect(await driver.get('11111111-1111-4111-8111-111111111111')).toBeUndefined()
  await expect(driver.start('11111111-1111-4111-8111-111111111111', planOf([]))).rejects.toMatchObject({ status: 409 })
})

test.each([
  ['4_2', 409],
  ['4_3', 200],
  ['5_0', 200],
])('an interface of version %s', async (api, status) => {
  const { world, driver } = await driverWorld()
  world.alter((state) => {
    state.api = api
    state.speaksGerman = true
  })
  const answer = driver.list().then(
    () => 200,
    (error: { status: number }) => error.status,
  )
  expect(await answer).toBe(status)
})

test('only a program named VBoxManage is run', async () => {
  const directory = dirname(join(await standIn(), 'VBoxManage'))
  const path = join(directory, 'VBoxManage')
  expect(findManager('', `/nowhere:${directory}`)).toBe(path)
  expect(findManager('VBoxManage', directory)).toBe(path)
  expect(findManager(path, '')).toBe(path)
  const found =
    (setting: string, searchPath = '') =>
    () =>
      findManager(setting, searchPath)
  expect(found('', '/nowhere')).toThrow('VirtualBox is not installed: VBoxManage was not found in PATH')
  expect(found('/bin/sh', directory)).toThrow('expected the path of a program named VBoxManage')
  expect(found('/nowhere/VBoxManage')).toThrow('is not an executable program')
  const fresh = await freshDirectory()
  const old = join(fresh, 'vboxmanage')
  await writeFile(old, 'not a program')
  expect(found('', fresh)).toThrow('not installed')
  await chmod(old, 0o755)
  expect(findManager('', fresh)).toBe(old)
  const line = new CommandLine({ path: () => old })
  await expect(line.run('list', 'vms')).rejects.toMatchObject({ status: 409 })
})

test('the program has an English locale in UTF-8, and no other variables', () => {
  const environment = environmentFor(variables, locale, {
    ...{ HOME: '/h', PATH: '/p', DISPLAY: ':0', VBOX_USER_HOME: '/v', PATCHBAY_PASSWORD: 'secret' },
    ...{ LANG: 'de_DE', LC_ALL: 'de_DE.UTF-8', LANGUAGE: 'de' },
  })
  expect(environment).toEqual({
    ...{ HOME: '/h', PATH: '/p', DISPLAY: ':0', VBOX_USER_HOME: '/v' },
    ...{ LC_ALL: 'C.UTF-8', LANG: 'C.UTF-8', LANGUAGE: 'C' },
  })
})

test('a program whose child keeps its output open does not delay the next one', async () => {
  const directory = await freshDirectory()
  const path = join(directory, 'VBoxManage')
  // As the first command, which starts VirtualBox's server.
  await writeFile(path, '#!/bin/sh\nsleep 600 &\necho $! >"$0.pid"\necho said\n')
  await chmod(path, 0o755)
  const line = new CommandLine({ path: () => path })
  expect(await line.run('list', 'vms')).toBe('said\n')
  spawnSync('sh', ['-c', `kill $(cat ${path}.pid)`])
})

test('the stand-in is equally strict with and without a server', async () => {
  const directory = await freshDirectory()
  await cp(await standIn(), join(directory, 'bin'), { recursive: true })
  const world = new World(join(directory, 'home'), join(directory, 'bin'))
  const { uuid } = world.add('Zürich')
  const run = (locale: string, ...args: string[]) =>
    spawnSync(join(directory, 'bin', 'VBoxManage'), args, {
      env: { ...process.env, VBOX_USER_HOME: world.directory, LC_ALL: locale },
      encoding: 'utf8',
    })
  expect(run('C.UTF-8', '--nologo', 'list', 'vms')).toMatchObject({ status: 0, stdout: `"Zürich" {${uuid}}\n` })
  expect(run('C', '--nologo', 'showvminfo', 'Zürich').status).toBe(1)
  expect(run('C.UTF-8', '--nologo', 'modifyvm', uuid, '--nic9', 'null').stderr).toContain('Invalid NIC number')
  expect(run('C.UTF-8', '--nologo', 'controlvm', uuid, 'poweroff').stderr).toContain('is not currently running')
  expect(run('C.UTF-8', 'list', 'vms').status).toBe(1)
})
