import { existsSync } from 'node:fs'
import { readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { adapter, type DriverWorld, driverWorld, planOf } from './virtualbox-driver.ts'

async function cloneWorld(name = 'R1') {
  const all = await driverWorld()
  const source = all.world.add('base', { nics: { 1: {} } })
  const directory = join(all.directory, 'node')
  const clone = await all.driver.clone({ uuid: source.uuid, name, directory })
  return { ...all, source, clone, node: directory }
}

const overlayOf = ({ world }: DriverWorld, uuid: string) => {
  const { slots } = world.machine(uuid)
  return world.state.media.find((each) => each.uuid === slots[0]?.medium)?.file ?? ''
}

test('a linked clone is of a snapshot of the machine, which is taken once', async () => {
  const { world, driver, source, clone, node } = await cloneWorld()
  const [snapshot] = world.machine(source.uuid).snapshots
  expect(snapshot?.name).toBe('Patchbay linked base')
  expect(world.commands()).toEqual([
    `showvminfo ${source.uuid} --machinereadable`,
    'list vms',
    `snapshot ${source.uuid} take Patchbay linked base`,
    `showvminfo ${source.uuid} --machinereadable`,
    `clonevm ${source.uuid} --snapshot ${snapshot?.uuid} --options link --name R1 --basefolder ${node} ` +
      `--uuid ${clone.uuid} --register`,
    `setextradata ${clone.uuid} Patchbay/Clone yes`,
    `snapshot ${clone.uuid} take reset`,
    `showvminfo ${clone.uuid} --machinereadable`,
  ])
  expect(clone).toMatchObject({ name: 'R1', state: 'stopped', ram: 512 })
  expect(world.machine(clone.uuid).file).toBe(join(node, 'R1', 'R1.vbox'))
  await driver.clone({ uuid: source.uuid, name: 'R2', directory: `${node}2` })
  expect(world.commands().filter((line) => line.startsWith('snapshot'))).toHaveLength(1)
  // Nobody sees them but their nodes.
  expect((await driver.list()).map(({ name }) => name)).toEqual(['base'])
  expect(await driver.find('R1')).toEqual(clone)
})

test('the snapshot of another program is used, and its clones are hidden', async () => {
  const { world, driver, directory } = await driverWorld()
  const name = 'GNS3 Linked Base for clones'
  const { uuid } = world.add('base', { snapshots: [{ uuid: '11111111-1111-4111-8111-111111111111', name, slots: [] }] })
  world.add('its clone', { extraData: { 'GNS3/Clone': 'yes' } })
  await driver.clone({ uuid, name: 'R1', directory: join(directory, 'node') })
  expect(world.machine(uuid).snapshots).toHaveLength(1)
  expect((await driver.list()).map((each) => each.name)).toEqual(['base'])
})

test.each(['clonevm', 'setextradata', 'snapshot .* take reset'])('nothing is left when %s fails', async (at) => {
  const { world, driver, directory } = await driverWorld()
  const { uuid } = world.add('base')
  for (const action of ['die', 'lose'] as const) {
    world.fault(at, action)
    const node = join(directory, 'node')
    await expect(driver.clone({ uuid, name: 'R1', directory: node })).rejects.toMatchObject({ status: 409 })
    expect(world.state.machines.map(({ name }) => name)).toEqual(['base'])
    expect(world.machine(uuid).snapshots).toEqual([])
    expect(world.state.media.filter(({ file }) => file.startsWith(node))).toEqual([])
    expect(existsSync(join(node, 'R1'))).toBe(false)
  }
})

test('a name is used once, and a running machine gets no first clone', async () => {
  const { world, driver, directory } = await driverWorld()
  const { uuid } = world.add('base')
  const node = join(directory, 'node')
  await expect(driver.clone({ uuid, name: 'base', directory: node })).rejects.toMatchObject({
    status: 409,
    message: 'A VM "base" already exists',
  })
  await driver.start(uuid, planOf([]))
  await expect(driver.clone({ uuid, name: 'R1', directory: node })).rejects.toMatchObject({
    status: 409,
    message: 'The VM "base" is running: stop it first',
  })
})

test('a closed clone is unregistered with its files kept, and registered again with its disks', async () => {
  const all = await cloneWorld('Zürich "1" {x}')
  const { world, driver, clone, node } = all
  const { uuid } = clone
  const overlay = overlayOf(all, uuid)
  const place = '--storagectl SATA --port 0 --device 0 --type hdd --medium'
  world.commands()
  await driver.closeClone(uuid)
  expect(world.commands()).toEqual([
    `showvminfo ${uuid} --machinereadable`,
    `getextradata ${uuid} enumerate`,
    'list hdds',
    `storageattach ${uuid} ${place} none`,
    `unregistervm ${uuid}`,
  ])
  const machineDirectory = join(node, 'Zürich "1" {x}')
  expect(JSON.parse(await readFile(join(machineDirectory, 'hdd_info.json'), 'utf8'))).toEqual([
    { hdd: overlay.slice(overlay.lastIndexOf('/') + 1), controller: 'SATA', port: '0', device: '0' },
  ])
  expect(existsSync(overlay)).toBe(true)
  expect(await driver.get(uuid)).toBeUndefined()
  await driver.closeClone(uuid)

  world.commands()
  expect(await driver.openClone(uuid, node)).toEqual(clone)
  expect(world.commands()).toEqual([
    `showvminfo ${uuid} --machinereadable`,
    `registervm ${join(machineDirectory, 'Zürich "1" {x}.vbox')}`,
    `showvminfo ${uuid} --machinereadable`,
    `storageattach ${uuid} ${place} ${overlay}`,
    `showvminfo ${uuid} --machinereadable`,
  ])
  expect(overlayOf(all, uuid)).toBe(overlay)
  expect(existsSync(join(machineDirectory, 'hdd_info.json'))).toBe(false)
  // One that is known already is only looked at.
  world.commands()
  await driver.openClone(uuid, node)
  expect(world.commands()).toEqual([`showvminfo ${uuid} --machinereadable`])
  await expect(driver.openClone(uuid, `${node}-of-another`)).rejects.toMatchObject({ status: 409 })
})

test('a clone that was registered in part is registered completely', async () => {
  const all = await cloneWorld()
  const { world, driver, clone, node } = all
  const overlay = overlayOf(all, clone.uuid)
  await driver.closeClone(clone.uuid)
  world.fault('storageattach', 'die')
  await expect(driver.openClone(clone.uuid, node)).rejects.toMatchObject({ status: 409 })
  await driver.openClone(clone.uuid, node)
  expect(overlayOf(all, clone.uuid)).toBe(overlay)
})

test('a clone with saved memory keeps its disks when it is closed', async () => {
  const { world, driver, clone, node } = await cloneWorld()
  await driver.start(clone.uuid, planOf([adapter(0)]))
  await expect(driver.closeClone(clone.uuid)).rejects.toMatchObject({ status: 409 })
  await expect(driver.removeClone(clone.uuid)).rejects.toMatchObject({ status: 409 })
  await driver.stop(clone.uuid, 'save_vm_state')
  world.commands()
  await driver.closeClone(clone.uuid)
  expect(world.commands().map((line) => line.split(' ')[0])).toEqual(['showvminfo', 'getextradata', 'unregistervm'])
  rmSaved(world)
  expect(await driver.openClone(clone.uuid, node)).toMatchObject({ uuid: clone.uuid })
})

const rmSaved = (world: DriverWorld['world']) => expect(world.state.machines).toHaveLength(1)

test('the removal of a clone deletes its own disks and no others', async () => {
  const all = await cloneWorld()
  const { world, driver, source, clone, node } = all
  const other = world.add('other')
  const theirs = world.state.media.find(({ uuid }) => uuid === other.slots[0]?.medium)?.file ?? ''
  // The owner gave the clone a disk of another machine, too.
  world.alter(({ machines }) => {
    const mine = machines.find(({ uuid }) => uuid === clone.uuid)
    mine?.slots.push({ controller: 'SATA', port: 1, device: 0, medium: other.slots[0]?.medium ?? '' })
  })
  const before = world.machine(source.uuid)
  await driver.removeClone(clone.uuid)
  expect(existsSync(join(node, 'R1'))).toBe(false)
  expect(existsSync(theirs)).toBe(true)
  expect(world.machine(source.uuid)).toEqual(before)
  expect(world.state.media.filter(({ file }) => file.startsWith(node))).toEqual([])
  expect(world.state.media.some(({ file }) => file === theirs)).toBe(true)
  await driver.removeClone(clone.uuid)
})

test('a VM that is not our clone is not renamed, closed or removed', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine')
  const before = world.state
  const message = 'The VM "mine" is not a clone made by Patchbay'
  await expect(driver.renameClone(uuid, 'yours')).rejects.toMatchObject({ status: 409, message })
  await expect(driver.closeClone(uuid)).rejects.toMatchObject({ status: 409, message })
  await expect(driver.removeClone(uuid)).rejects.toMatchObject({ status: 409, message })
  expect(world.state).toEqual(before)
})

test('a clone is renamed while it does not run, to a free name', async () => {
  const { world, driver, clone, node } = await cloneWorld()
  await driver.renameClone(clone.uuid, 'core -1')
  expect(world.machine(clone.uuid)).toMatchObject({ name: 'core -1', file: join(node, 'core -1', 'core -1.vbox') })
  await driver.renameClone(clone.uuid, 'core -1')
  await expect(driver.renameClone(clone.uuid, 'base')).rejects.toMatchObject({ status: 409 })
  await expect(driver.renameClone(clone.uuid, 'a\nb')).rejects.toMatchObject({ status: 409 })
  await driver.start(clone.uuid, planOf([]))
  await expect(driver.renameClone(clone.uuid, 'edge')).rejects.toMatchObject({
    status: 409,
    message: 'The VM "core -1" is running: stop it first',
  })
})

test('a clone without its files is a conflict, and its disks can be unregistered', async () => {
  const { world, driver, clone, node, directory } = await cloneWorld()
  const elsewhere = world.add('elsewhere')
  await driver.closeClone(clone.uuid)
  await rm(join(node, 'R1'), { recursive: true })
  await rm(dirname(elsewhere.file), { recursive: true })
  await expect(driver.openClone(clone.uuid, node)).rejects.toMatchObject({
    status: 409,
    message: `The VM ${clone.uuid} is no longer in the directory of its node`,
  })
  expect(world.state.media.filter(({ file }) => file.startsWith(node))).not.toEqual([])
  await driver.forgetMissingDisks(directory.concat('/node'))
  expect(world.state.media.filter(({ file }) => file.startsWith(node))).toEqual([])
  // The disk of the user's own machine is only away for now, as one on a drive that is not mounted.
  expect(world.state.media.some(({ uuid }) => uuid === elsewhere.slots[0]?.medium)).toBe(true)
})
