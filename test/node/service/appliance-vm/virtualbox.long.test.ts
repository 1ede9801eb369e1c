import { expect, test } from 'vitest'
import { DriverEngine } from '../../../../runtime/node/service/appliance-vm/driver-engine.ts'
import { type ApplianceVmRecord, defaultAppliance } from '../../../../src/model/appliance-vm.ts'
import type { Nic } from '../../../stand-in/virtualbox/world.ts'
import { driverWorld, soon } from '../../drivers/hypervisor/virtualbox-driver.ts'

const never = new AbortController().signal
const settings: ApplianceVmRecord = { ...defaultAppliance, engine: 'virtualbox', vmname: 'Lab VM', headless: true }
const both = { 1: { attachment: 'nat' }, 2: { attachment: 'hostonly', hostonly: 'vboxnet0' } }
const net = '/VirtualBox/GuestInfo/Net'

async function newEngine(nics: Readonly<Record<number, Partial<Nic>>> = both) {
  const all = await driverWorld()
  const { uuid } = all.world.add('Lab VM', { nics })
  const shown = { name: 'VirtualBox', description: '', support_headless: true, support_ram: true }
  const engine = new DriverEngine(all.driver, shown)
  /** What the Guest Additions say of an adapter. */
  const tell = (number: number, address: string, mac = all.world.machine(uuid).nics[1]?.mac ?? '') =>
    all.world.alter((state) => {
      const machine = state.machines.find((each) => each.uuid === uuid)
      if (machine === undefined) return
      machine.guestProperties[`${net}/${number}/MAC`] = { value: mac, flags: '' }
      machine.guestProperties[`${net}/${number}/V4/IP`] = { value: address, flags: '' }
    })
  const done = (word: string) => all.world.commands().filter((line) => line.startsWith(word))
  return { ...all, uuid, engine, tell, done }
}

test('the VM gets its size, runs without a window, and ends by its power button', async () => {
  const { world, engine, uuid, done } = await newEngine()
  expect(await engine.vms()).toEqual(['Lab VM'])
  done('')
  await engine.start(settings, never)
  const commands = world.commands()
  expect(commands).toContain(`modifyvm ${uuid} --memory 2048`)
  expect(commands).toContain(`startvm ${uuid} --type headless`)
  expect(world.machine(uuid)).toMatchObject({ state: 'running', memory: 2048, processors: 1 })
  expect(await engine.isRunning(settings)).toBe(true)
  // One that runs is used as it is.
  await engine.start({ ...settings, ram: 4096, vcpus: 2 }, never)
  expect(done('modifyvm')).toEqual([])
  await engine.end(settings, 'stop', never)
  expect(done('controlvm')).toEqual([`controlvm ${uuid} acpipowerbutton`])
  expect(world.machine(uuid)).toMatchObject({ state: 'poweroff' })
  await engine.start({ ...settings, headless: false, vcpus: 2 }, never)
  expect(done('startvm')).toEqual([`startvm ${uuid}`])
  expect(world.machine(uuid)).toMatchObject({ memory: 2048, processors: 2 })
})

test('without allocate_vcpus_ram the size of the VM stays; a saved VM continues, and is not started only to be ended', async () => {
  const { world, engine, uuid, done } = await newEngine()
  await engine.start({ ...settings, allocate_vcpus_ram: false }, never)
  expect(world.machine(uuid)).toMatchObject({ memory: 512 })
  await engine.end(settings, 'suspend', never)
  expect(world.machine(uuid)).toMatchObject({ state: 'saved' })
  done('')
  await engine.start(settings, never)
  expect(done('modifyvm')).toEqual([])
  await engine.end(settings, 'suspend', never)
  await engine.end(settings, 'stop', never)
  expect(world.machine(uuid)).toMatchObject({ state: 'saved' })
})

test('a guest that does not react is powered off after the timeout', async () => {
  const { world, engine, uuid } = await newEngine()
  world.alter((state) => {
    for (const machine of state.machines) machine.obeys = false
  })
  await engine.start(settings, never)
  await engine.end(settings, 'stop', AbortSignal.timeout(50))
  expect(world.machine(uuid)).toMatchObject({ state: 'poweroff' })
})

test('a paused VM is resumed', async () => {
  const { world, driver, engine, uuid } = await newEngine()
  await engine.start(settings, never)
  await driver.suspend(uuid)
  expect(await engine.isRunning(settings)).toBe(false)
  await engine.start(settings, never)
  expect(world.machine(uuid)).toMatchObject({ state: 'running' })
})

test.for(['6_1', '7_0'])('the address is that of the guest, else a port of this host (API %s)', async (api) => {
  const { world, engine, uuid, tell, done } = await newEngine()
  world.alter((state) => {
    state.api = api
  })
  expect(await engine.addresses(settings)).toEqual([])
  await engine.start(settings, never)
  const access = { protocol: 'http', user: null, password: null }
  const [place, ...others] = await engine.addresses(settings)
  expect(place).toEqual({ ...access, host: '127.0.0.1', port: expect.any(Number) as number })
  expect(others).toEqual([])
  const rule = { Patchbay: `tcp,127.0.0.1,${place?.port},,3080` }
  expect(world.machine(uuid).nics[0]?.forwardings).toEqual(rule)
  // That of another adapter, of the link, or none at all does not count.
  tell(0, '10.0.2.15', 'ffffffffffff')
  tell(1, '169.254.7.7')
  tell(2, '0.0.0.0')
  tell(3, '192.168.56.101')
  done('')
  expect(await engine.addresses(settings)).toEqual([{ ...access, host: '192.168.56.101', port: 3080 }, place])
  expect(done('controlvm')).toEqual([])
  expect(
    await engine.addresses({ ...settings, address: 'vm.lan', port: 80, user: 'anna', password: 'geheim' }),
  ).toEqual([{ protocol: 'http', host: 'vm.lan', port: 80, user: 'anna', password: 'geheim' }])
})

test('the port forward of an earlier service is made again', async () => {
  const forwardings = { Patchbay: 'tcp,127.0.0.1,22,,3080', mine: 'tcp,,2222,,22' }
  const { world, engine, uuid } = await newEngine({ 1: { attachment: 'nat', forwardings } })
  await engine.start(settings, never)
  const [place] = await engine.addresses(settings)
  expect(place?.port).not.toBe(22)
  expect(world.machine(uuid).nics[0]?.forwardings).toEqual({
    ...{ mine: 'tcp,,2222,,22', Patchbay: `tcp,127.0.0.1,${place?.port},,3080` },
  })
})

test('a VM that cannot be reached from here is a conflict', async () => {
  const { engine } = await newEngine({ 1: { attachment: 'intnet' } })
  await engine.start(settings, never)
  await expect(engine.addresses(settings)).rejects.toMatchObject({
    ...{ status: 409, message: expect.stringMatching(/give it a host-only and a NAT adapter, or set address/) },
  })
})

test('a start that reports a failure is accepted when the VM runs', async () => {
  const { world, engine, done } = await newEngine()
  world.fault('startvm', 'lose', { stderr: 'VBoxManage: error: The connection broke' })
  await engine.start(settings, never)
  expect(await engine.isRunning(settings)).toBe(true)
  expect(done('startvm')).toHaveLength(1)
})

test('changes of the VM are reported, and a refusal of VirtualBox is a conflict', async () => {
  const { world, engine, uuid } = await newEngine()
  world.fault('startvm', 'die', { stderr: 'VBoxManage: error: VT-x is disabled' })
  await expect(engine.start(settings, never)).rejects.toMatchObject({ status: 409, message: /VT-x is disabled/ })
  await expect(engine.start({ ...settings, vmname: 'other' }, never)).rejects.toMatchObject({
    ...{ status: 409, message: 'VirtualBox has no VM "other"' },
  })
  await engine.start(settings, never)
  let told = 0
  const leave = engine.watch(settings, () => {
    told += 1
  })
  process.kill(world.machine(uuid).pid, 'SIGKILL')
  await expect.poll(() => told, soon).toBeGreaterThan(0)
  leave()
  expect(await engine.isRunning(settings)).toBe(false)
})
