import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { chmod, mkdir, rm, stat } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { endRun } from '../../../../runtime/node/drivers/hypervisor/leftovers.ts'
import { SerialSockets } from '../../../../runtime/node/drivers/hypervisor/virtualbox/serial-sockets.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { adapter, driverWorld, planOf, soon } from './virtualbox-driver.ts'

test('a guest that reacts to its power button ends, also when it is paused', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: {} } })
  const before = world.machine(uuid)
  await driver.start(uuid, planOf([adapter(0)]))
  await driver.suspend(uuid)
  expect(await driver.get(uuid)).toMatchObject({ state: 'suspended' })
  world.commands()
  await driver.stop(uuid, 'shutdown_signal')
  expect(world.commands().filter((line) => line.startsWith('controlvm'))).toEqual([
    `controlvm ${uuid} resume`,
    `controlvm ${uuid} acpipowerbutton`,
  ])
  expect(world.machine(uuid)).toEqual({ ...before, lockedUntil: expect.any(Number) as number })
  await driver.stop(uuid, 'shutdown_signal')
})

test('a guest that does not react is a conflict, and keeps running', async () => {
  const { world, driver } = await driverWorld({ times: { shutdownMs: 100, pollMs: 20 } })
  const { uuid } = world.add('mine', { obeys: false })
  await driver.start(uuid, planOf([]))
  await expect(driver.stop(uuid, 'shutdown_signal')).rejects.toMatchObject({
    status: 409,
    message: 'The guest did not obey its power button within 0.1 s',
  })
  const given = AbortSignal.timeout(40)
  await expect(driver.stop(uuid, 'shutdown_signal', given)).rejects.toMatchObject({ status: 409 })
  expect(await driver.get(uuid)).toMatchObject({ state: 'started' })
})

test('a machine with saved memory starts with it, and its settings are restored when it stops', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: { type: 'virtio' } } })
  const before = world.machine(uuid)
  await driver.start(uuid, planOf([adapter(0)], { ram: 640 }))
  await driver.stop(uuid, 'save_vm_state')
  expect(await driver.get(uuid)).toEqual({ uuid, name: 'mine', ram: 512, state: 'saved' })
  world.commands()
  const port = adapter(0)
  await driver.start(uuid, planOf([port], { ram: 640 }))
  expect(world.commands().filter((line) => line.startsWith('modifyvm'))).toEqual([
    `modifyvm ${uuid} --nic1 generic --nicgenericdrv1 UDPTunnel --nicproperty1 sport=${port.guestPort} ` +
      `--nicproperty1 dest=127.0.0.1 --nicproperty1 dport=${port.switchPort} --cableconnected1 on ` +
      `--uartmode1 server ${driver.serialPath(uuid)}`,
  ])
  await driver.stop(uuid, 'power_off')
  expect(world.machine(uuid)).toEqual({ ...before, lockedUntil: expect.any(Number) as number })
})

test('a machine that its owner has saved gets the settings that can be changed', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine', { state: 'saved', nics: { 1: {} } })
  const before = world.machine(uuid)
  await driver.start(uuid, planOf([adapter(0), adapter(1)], { ram: 640 }))
  expect(world.machine(uuid).nics.filter(({ enabled }) => enabled)).toHaveLength(1)
  await driver.stop(uuid, 'power_off')
  expect(world.machine(uuid)).toEqual({ ...before, state: 'poweroff', lockedUntil: expect.any(Number) as number })
})

test('a start waits until VirtualBox has released a machine that ended', async () => {
  const { world, driver } = await driverWorld()
  world.alter((state) => {
    state.unlockMs = 150
  })
  const { uuid } = world.add('mine', { nics: { 1: {} } })
  await driver.start(uuid, planOf([adapter(0)]))
  await driver.stop(uuid, 'power_off')
  expect(world.machine(uuid).nics[0]).toMatchObject({ attachment: 'null' })
  expect(world.log().filter(({ code }) => code === 1)).toEqual([])
})

test('the end of a run restores the settings of a guest that switched itself off, when VirtualBox has released it', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine', { nics: { 1: {} } })
  const before = world.machine(uuid)
  await driver.start(uuid, planOf([adapter(0)]))
  const off = { state: 'poweroff', pid: 0, lockedUntil: Date.now() + 150 } as const
  process.kill(world.machine(uuid).pid, 'SIGKILL')
  world.alter(({ machines }) => void Object.assign(machines[0] ?? {}, off))
  // Nobody watches the machine any more: its console has ended first.
  await endRun(driver, { vm_uuid: uuid, serial_port: null })
  expect(world.machine(uuid)).toEqual({ ...before, lockedUntil: off.lockedUntil })
})

test('a machine that hangs can be ended', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine')
  await driver.start(uuid, planOf([]))
  world.alter(({ machines: [machine] }) => void Object.assign(machine ?? {}, { state: 'gurumeditation' }))
  expect(await driver.get(uuid)).toMatchObject({ state: 'started' })
  await driver.stop(uuid, 'save_vm_state')
  expect(await driver.get(uuid)).toMatchObject({ state: 'stopped' })
})

test('a machine that does not fit the plan is a conflict with the message of VirtualBox', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('mine')
  await expect(driver.resume(uuid)).rejects.toMatchObject({ status: 409 })
  await driver.start(uuid, planOf([]))
  await expect(driver.start(uuid, planOf([]))).rejects.toMatchObject({
    status: 409,
    message: 'The VM "mine" is already running',
  })
  await expect(driver.resume(uuid)).rejects.toMatchObject({
    status: 409,
    message: 'VirtualBox: Cannot resume the machine as it is not paused (machine state: running)',
  })
  await driver.suspend(uuid)
  await expect(driver.reset(uuid)).rejects.toMatchObject({ status: 409 })
  await driver.resume(uuid)
  await driver.reset(uuid)
  expect(
    world
      .commands()
      .filter((line) => line.startsWith('controlvm'))
      .slice(-3),
  ).toEqual(['reset', 'resume', 'reset'].map((word) => `controlvm ${uuid} ${word}`))
})

test('frames pass both ways while the carrier is on, and the serial port is a socket', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('guest', { nics: { 1: {} } })
  const port = adapter(0)
  const wire = createSocket('udp4').bind(port.switchPort, '127.0.0.1')
  onTestFinished(() => void wire.close())
  await once(wire, 'listening')
  const frames: string[] = []
  wire.on('message', (frame) => frames.push(frame.toString('latin1')))
  await driver.start(uuid, planOf([port]))
  await expect.poll(() => frames.some((frame) => frame.includes('hello from guest/0')), soon).toBe(true)
  const ask = (text: string) => wire.send(Buffer.concat([Buffer.alloc(6, 0xff), Buffer.from(text)]), port.guestPort)
  ask('123456 are you there')
  await expect.poll(() => frames.some((frame) => frame.includes('are you there')), soon).toBe(true)
  world.commands()
  await driver.setCarrier(uuid, { ...port, carrier: false })
  frames.length = 0
  ask('123456 and now')
  await driver.setCarrier(uuid, port)
  await expect.poll(() => frames.some((frame) => frame.includes('hello from guest/0')), soon).toBe(true)
  expect(frames.join()).not.toContain('and now')
  expect(world.commands().filter((line) => line.startsWith('controlvm'))).toEqual([
    `controlvm ${uuid} setlinkstate1 off`,
    `controlvm ${uuid} setlinkstate1 on`,
  ])

  const console_ = createConnection(driver.serialPath(uuid))
  onTestFinished(() => void console_.destroy())
  let text = ''
  console_.on('data', (bytes) => {
    text += bytes.toString('latin1')
  })
  await expect.poll(() => text, soon).toContain('guest ready')
  console_.write('poweroff\r')
  await expect.poll(async () => (await driver.get(uuid))?.state, soon).toBe('stopped')
})

test('an adapter that was detached meanwhile gets its tunnel again with the carrier', async () => {
  const { world, driver, warnings } = await driverWorld()
  const { uuid } = world.add('guest', { nics: { 1: {} } })
  const port = adapter(0)
  await driver.start(uuid, planOf([port]))
  world.alter(({ machines: [machine] }) => void Object.assign(machine?.nics[0] ?? {}, { attachment: 'null' }))
  world.commands()
  await driver.setCarrier(uuid, port)
  expect(world.commands().filter((line) => line.startsWith('controlvm'))).toEqual([
    `controlvm ${uuid} nic1 generic UDPTunnel`,
    `controlvm ${uuid} nicproperty1 sport=${port.guestPort}`,
    `controlvm ${uuid} nicproperty1 dest=127.0.0.1`,
    `controlvm ${uuid} nicproperty1 dport=${port.switchPort}`,
    `controlvm ${uuid} setlinkstate1 on`,
  ])
  expect(warnings).toEqual([])
  await driver.stop(uuid, 'power_off')
  world.commands()
  await driver.setCarrier(uuid, port)
  expect(world.commands().filter((line) => line.startsWith('controlvm'))).toEqual([])
})

test('a serial port is not made in a directory that other users can enter', async () => {
  const { world, driver, directory } = await driverWorld()
  const { uuid } = world.add('guest')
  await mkdir(join(directory, 'run'))
  await chmod(join(directory, 'run'), 0o755)
  const before = world.machine(uuid)
  await expect(driver.start(uuid, planOf([]))).rejects.toMatchObject({ status: 409 })
  expect(world.machine(uuid)).toEqual(before)
})

test('the path of a serial port fits, also in a deep directory', async () => {
  const deep = join(await freshDirectory(), 'd'.repeat(120))
  const sockets = new SerialSockets(deep)
  const path = sockets.path('11111111-1111-4111-8111-111111111111')
  onTestFinished(() => rm(dirname(path), { recursive: true }))
  expect(Buffer.byteLength(path)).toBeLessThanOrEqual(107)
  expect(path).toBe(new SerialSockets(deep).path('11111111-1111-4111-8111-111111111111'))
  await sockets.prepare('11111111-1111-4111-8111-111111111111')
  expect((await stat(dirname(path))).mode & 0o777).toBe(0o700)
})

test('the guest can read the id of its node, and a screen is served where VirtualBox supports it', async () => {
  const { world, driver } = await driverWorld()
  const { uuid } = world.add('guest')
  const before = world.machine(uuid)
  const screen = { host: '127.0.0.1', port: 5901 }
  await expect(driver.start(uuid, planOf([], { screen }))).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('extension pack VNC') as string,
  })
  expect(world.machine(uuid)).toEqual(before)
  world.alter((state) => {
    state.screenPack = 'VNC'
  })
  await driver.start(uuid, { ...planOf([], { screen }), node: { name: 'R1', directory: '/p' } })
  expect(world.machine(uuid)).toMatchObject({
    vrde: { on: true, ports: '5901', address: '127.0.0.1' },
    guestProperties: { NameInGNS3: { value: 'R1' }, ProjectDirInGNS3: { value: '/p' } },
  })
  await driver.stop(uuid, 'power_off')
  expect(world.machine(uuid)).toEqual({ ...before, lockedUntil: expect.any(Number) as number })
})
