import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { expect, onTestFinished, test } from 'vitest'
import { macOfInterface } from '../../../../runtime/node/drivers/hypervisor/libvirt/interfaces.ts'
import { requireLibvirt, TestLibvirt } from '../../../support/libvirt.ts'
import { freePort } from '../../../support/ports.ts'
import { TcpClient } from '../../../support/tcp-client.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting, obedient } from '../qemu/boot-sectors.ts'
import { ideDisk, pcDefinition } from './libvirt-definitions.ts'
import { consoleOf, countOf, LibvirtLab, later, planOf, sharedLibvirt } from './libvirt-lab.ts'

const libvirt = sharedLibvirt()

/** A PC that boots from this sector. */
async function pcOf(sector: Buffer, options: { shutdownMs?: number; devices?: string } = {}): Promise<LibvirtLab> {
  const lab = await LibvirtLab.create(libvirt(), options)
  const devices = ideDisk(await lab.disk(sector)) + (options.devices ?? '')
  await libvirt().define(pcDefinition({ ...lab, devices }))
  return lab
}

describeWith(requireLibvirt())('a VM of libvirt', () => {
  test('runs with the settings of the plan, is saved with its state, and gets its own settings back', async () => {
    const lab = await pcOf(counting)
    const { driver, uuid, name } = lab
    const before = await lab.definition()
    const port = freePort()
    const plan = planOf({ ram: 48, adapters: 1, screen: { host: '127.0.0.1', port } })
    await driver.start(uuid, plan)
    expect(await countOf(plan)).toBe('a')
    const screen = await TcpClient.connect(port)
    await screen.shows('RFB 003')
    screen.socket.destroy()
    const live = await libvirt().virsh('dumpxml', name)
    expect(live).toContain("<memory unit='KiB'>49152</memory>")
    await expect(driver.start(uuid, plan)).rejects.toMatchObject({
      status: 409,
      message: `The VM "${name}" is already running`,
    })

    await driver.suspend(uuid)
    expect(await driver.get(uuid)).toEqual({ uuid, name, ram: 32, state: 'suspended' })
    await driver.resume(uuid)
    expect(await countOf(plan)).toEqual(later)
    await driver.suspend(uuid)
    await driver.stop(uuid, 'save_vm_state')
    expect(await driver.get(uuid)).toMatchObject({ state: 'saved' })
    expect(await lab.definition()).toBe(before)

    await expect(driver.start(uuid, planOf({ adapters: 2 }))).rejects.toMatchObject({
      status: 409,
      message: expect.stringContaining('was saved with 1 adapters'),
    })
    const other = planOf({ adapters: 1 })
    await driver.start(uuid, other)
    expect(await countOf(other)).toEqual(later)
    const console = await TcpClient.connect(other.serialPort)
    await driver.reset(uuid)
    await console.shows('>')

    expect(await lab.definition()).toBe(before)
    await driver.stop(uuid, 'power_off')
    expect(await driver.get(uuid)).toMatchObject({ state: 'stopped' })
    expect(await lab.definition()).toBe(before)
    await driver.stop(uuid, 'power_off')
  })

  test('outlives libvirtd, and shows changes of other programs at once', async () => {
    const lab = await pcOf(counting)
    const { driver, uuid, name } = lab
    const before = await lab.definition()
    const plan = planOf({ adapters: 1 })
    await driver.start(uuid, plan)
    expect(await countOf(plan)).toBe('a')
    const heard: string[] = []
    driver.watch((it) => heard.push(it))
    await libvirt().kill('SIGKILL')
    await expect(driver.get(uuid)).rejects.toMatchObject({ status: 409 })
    expect(await countOf(plan)).toEqual(later)
    await libvirt().restart()
    await expect.poll(() => heard).toContain(uuid)
    await lab.becomes('started')
    expect(await lab.definition()).toBe(before)
    await libvirt().virsh('suspend', name)
    await lab.becomes('suspended')
    await libvirt().virsh('destroy', name)
    await lab.becomes('stopped')
    await libvirt().virsh('start', name)
    await lab.becomes('started')
    await driver.stop(uuid, 'power_off')
    await libvirt().virsh('undefine', name)
    expect(await driver.get(uuid)).toBeUndefined()
    await expect(driver.suspend(uuid)).rejects.toMatchObject({ status: 409 })
  })

  test('ends when its power button is pressed, also while it is paused', async () => {
    const { driver, uuid } = await pcOf(obedient)
    const plan = planOf()
    const console = consoleOf(plan)
    await driver.start(uuid, plan)
    // It looks at its button from then on.
    await (await console).shows('>')
    await driver.suspend(uuid)
    await driver.stop(uuid, 'shutdown_signal')
    expect(await driver.get(uuid)).toMatchObject({ state: 'stopped' })
  })

  test('that does not react to its power button is reported after the timeout', async () => {
    const lab = await pcOf(counting, { shutdownMs: 100 })
    const { driver, uuid, name } = lab
    await driver.start(uuid, planOf())
    await expect(driver.stop(uuid, 'shutdown_signal')).rejects.toMatchObject({
      status: 409,
      message: `The guest of "${name}" did not shut down within 0.1 s of its power button`,
    })
    const patient = await LibvirtLab.create(libvirt())
    const skipGracePeriod = new AbortController()
    const stopping = patient.driver.stop(uuid, 'shutdown_signal', skipGracePeriod.signal)
    skipGracePeriod.abort()
    await expect(stopping).rejects.toMatchObject({ status: 409 })
    expect(await driver.get(uuid)).toMatchObject({ state: 'started' })
  })

  test('sends its frames to the switch while its carrier is on', async () => {
    const { driver, uuid, ...lab } = await LibvirtLab.create(libvirt())
    await libvirt().define(pcDefinition({ uuid, name: lab.name, boot: 'network' }))
    const plan = planOf({ adapters: 1 })
    const [adapter] = plan.adapters
    if (adapter === undefined) throw new Error('there is no adapter')
    const socket = createSocket('udp4').bind(adapter.switchPort, '127.0.0.1')
    onTestFinished(() => void socket.close())
    await once(socket, 'listening')
    const frame = once(socket, 'message')

    await driver.start(uuid, { ...plan, adapters: [{ ...adapter, carrier: false }] })
    expect(await libvirt().virsh('domif-getlink', lab.name, macOfInterface(uuid, 0))).toContain('down')
    await driver.setCarrier(uuid, adapter)
    expect(await libvirt().virsh('domif-getlink', lab.name, macOfInterface(uuid, 0))).toContain('up')
    const [bytes, { port }] = (await frame) as [Buffer, { port: number }]
    expect(bytes.toString('hex', 6, 12)).toBe(macOfInterface(uuid, 0).replaceAll(':', ''))
    expect(port).toBe(adapter.guestPort)
    // One that came after the start is not in the machine.
    await driver.setCarrier(uuid, { ...adapter, index: 1, guestPort: adapter.guestPort + 2 })
  })

  test('has as many adapters as a node can have', async () => {
    const { driver, uuid, name } = await LibvirtLab.create(libvirt())
    await libvirt().define(pcDefinition({ uuid, name, devices: "<interface type='user'/>" }))
    expect(await driver.usedAdapters(uuid)).toEqual([0])
    const adapters = await driver.maxAdapters()
    await driver.start(uuid, planOf({ adapters, adapterType: 'virtio' }))
    expect((await libvirt().virsh('domiflist', name)).split('\n').map((line) => line.split(/ +/)[2])).toEqual([
      ...['user', ...Array.from({ length: adapters - 1 }, () => 'udp'), undefined],
    ])
  })

  test('that does not exist is not found', async () => {
    const { driver, name } = await LibvirtLab.create(libvirt())
    await expect(driver.find(name)).rejects.toMatchObject({ status: 409, message: expect.stringContaining(name) })
    expect(await driver.get('00000000-1111-4222-8333-444455556666')).toBeUndefined()
    await driver.close()
    await expect(driver.list()).rejects.toMatchObject({ status: 409 })
  })
})

describeWith(requireLibvirt())('the libvirt of a session', () => {
  test('is used like that of the system', async () => {
    const session = await TestLibvirt.start(false)
    onTestFinished(() => session.close())
    const lab = await LibvirtLab.create(session)
    const { driver, uuid, name } = lab
    await session.define(pcDefinition({ uuid, name, boot: 'network' }))
    const before = await lab.definition()
    expect(await driver.list()).toEqual([{ uuid, name, ram: 32, state: 'stopped' }])
    await driver.start(uuid, planOf({ adapters: 1 }))
    await driver.suspend(uuid)
    expect(await driver.find(name)).toMatchObject({ state: 'suspended' })
    expect(await lab.definition()).toBe(before)
  })
})
