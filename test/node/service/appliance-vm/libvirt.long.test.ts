import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { version } from '../../../../runtime/node/os/system/version.ts'
import type { ApplianceVm } from '../../../../src/model/appliance-vm.ts'
import type { Compute } from '../../../../src/model/compute.ts'
import { type ApplianceGuest, applianceGuest, appliancePort } from '../../../support/guest/appliance.ts'
import { requireGuest } from '../../../support/guest/files.ts'
import { requireLibvirt, TestLibvirt } from '../../../support/libvirt.ts'
import { requireDevices, requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith } from '../../../support/test-with.ts'

const needed = [requireLibvirt(), requireDevices(), requireProgram('gcc'), await requireGuest()]
/** For what takes some seconds of a processor that others may have, too. */
const patience = { timeout: 240_000, interval: 250 }
const appliance = '/v2/appliancevm'
const access = { user: 'anna', password: 'geheim' }
/** A network of its own for every process; of the block for such tests (RFC 2544). */
const network = `198.${18 + ((process.pid >> 14) & 1)}.${(process.pid >> 6) & 255}`
const [host = '', guest = ''] = [1, 2].map((it) => `${network}.${((process.pid & 63) << 2) + it}`)

const definition = (name: string, uuid: string, { kernel, initrd, commandLine, ram }: ApplianceGuest): string => `
<domain type='qemu'>
  <name>${name}</name>
  <uuid>${uuid}</uuid>
  <memory unit='MiB'>${ram + 64}</memory>
  <vcpu>1</vcpu>
  <os>
    <type arch='x86_64' machine='pc'>hvm</type>
    <kernel>${kernel}</kernel>
    <initrd>${initrd}</initrd>
    <cmdline>${commandLine}</cmdline>
  </os>
  <features><acpi/></features>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <controller type='usb' model='none'/>
    <interface type='ethernet'>
      <source><ip address='${host}' family='ipv4' prefix='30'/></source>
      <target dev='pbvm${process.pid}'/>
      <model type='virtio'/>
    </interface>
    <serial type='file'><source path='/dev/null'/></serial>
    <memballoon model='none'/>
  </devices>
</domain>`

/** A service with a libvirt that has a VM. */
async function newLab(files: (directory: string) => Promise<ApplianceGuest>) {
  const libvirt = await TestLibvirt.start()
  onTestFinished(() => libvirt.close())
  const name = 'Lab VM'
  const made = await files(libvirt.directory)
  await libvirt.define(definition(name, randomUUID(), made))
  const settings = { 'hypervisor.libvirt_uri': libvirt.uri, 'pc.engine': 'embedded' }
  const service = await TestService.start(settings)
  return {
    libvirt,
    name,
    service,
    ram: made.ram,
    change: (input: Partial<ApplianceVm> & { password?: string }) => service.call<ApplianceVm>('PUT', appliance, input),
    vm: () => service.call<Compute>('GET', '/v2/computes/vm'),
    state: async () => (await libvirt.virsh('domstate', name)).trim(),
  }
}

describeWith(...needed)('a VM of libvirt as the appliance VM', () => {
  test('the VM becomes the compute vm, is suspended, found again, and ended by its power button', {
    timeout: 500_000,
  }, async () => {
    const { libvirt, name, service, ram, change, vm, state } = await newLab((directory) =>
      applianceGuest(directory, { address: guest, host, version, ...access }),
    )
    const before = await libvirt.virsh('dumpxml', '--inactive', name)
    expect(await service.call('GET', `${appliance}/engines/libvirt/vms`)).toEqual([{ vmname: name }])

    // A service that is killed meanwhile leaves a VM that starts, which the next one takes over.
    const given = change({ enable: true, vmname: name, ram, when_exit: 'suspend', ...access }).catch(() => 'given up')
    await expect.poll(() => state(), patience).toBe('running')
    expect(await vm()).toMatchObject({ connected: false, last_error: expect.stringMatching(/"Lab VM" is starting/) })
    const [, id] = (await libvirt.virsh('domid', name)).split('\n', 1)
    await service.kill('SIGKILL')
    expect(await given).toBe('given up')
    await service.restart()
    // A failure shows how far it came.
    await expect.poll(vm, patience).toMatchObject({ connected: true, last_error: null })
    expect((await libvirt.virsh('domid', name)).split('\n', 1)[1]).toBe(id)
    expect(await vm()).toMatchObject({
      ...{ compute_id: 'vm', name: 'Appliance VM (Lab VM)', host: guest, port: appliancePort, user: 'anna' },
      capabilities: { version, platform: 'linux', node_types: expect.arrayContaining(['pc']) },
    })
    expect(await libvirt.virsh('dumpxml', name)).toContain(`<memory unit='KiB'>${ram * 1024}</memory>`)

    // It is asked; what it is given is in its memory only.
    expect(await service.call('GET', '/v2/computes/vm/network/interfaces')).toContainEqual(
      expect.objectContaining({ name: 'eth0', ip_address: guest }),
    )
    const images = '/v2/computes/vm/machine-emulator/images'
    const kept = expect.objectContaining({ filename: 'lab.img', filesize: 5000 })
    await service.fetch(`${images}/lab.img`, { method: 'POST', body: Buffer.alloc(5000, 1) })
    expect(await service.call('GET', images)).toEqual([kept])

    // Saved with what it does; a request to it wakes it up when it is enabled again.
    expect(await change({ enable: false })).toMatchObject({ enable: false, when_exit: 'suspend' })
    expect(await state()).toBe('shut off')
    expect((await service.fetch('/v2/computes/vm')).status).toBe(404)
    await change({ enable: true, when_exit: 'keep' })
    expect(await service.call('GET', images)).toEqual([kept])

    // It outlives the service, and is used as it is.
    expect((await stat(join(service.data, 'appliance-vm.json'))).mode & 0o777).toBe(0o600)
    await service.end()
    expect(await state()).toBe('running')
    await service.restart()
    expect(await service.call('GET', images)).toEqual([kept])
    expect(await vm()).toMatchObject({ connected: true })

    // What others do to it is seen, and mended for the next request.
    await libvirt.virsh('managedsave', name)
    await expect.poll(async () => (await service.fetch('/v2/computes/vm')).status, patience).toBe(404)
    expect(await service.call('GET', images)).toEqual([kept])

    await change({ when_exit: 'stop' })
    await service.end()
    expect(await state()).toBe('shut off')
    expect(await libvirt.virsh('domstate', '--reason', name)).toContain('shutdown')
    expect(await libvirt.virsh('dumpxml', '--inactive', name)).toBe(before)
  })

  test('a VM that cannot start, and a libvirt that does not run, are reported without other effects', {
    timeout: 120_000,
  }, async () => {
    const { libvirt, name, service, change, vm, state } = await newLab(async (directory) => {
      const nothing = join(directory, 'nothing')
      return { kernel: nothing, initrd: nothing, commandLine: '', ram: 64 }
    })
    const put = async (input: Partial<ApplianceVm>) => {
      const answer = await service.fetch(appliance, { method: 'PUT', body: JSON.stringify(input) })
      return { status: answer.status, ...((await answer.json()) as { message: string }) }
    }
    const broken = await put({ enable: true, vmname: name })
    expect(broken).toMatchObject({ status: 409, message: expect.stringMatching(/"Lab VM" was not started: .*nothing/) })
    expect(await vm()).toMatchObject({ connected: false, last_error: broken.message })
    expect(await state()).toBe('shut off')
    expect(await put({ vmname: 'other' })).toMatchObject({
      status: 409,
      message: expect.stringMatching(/libvirt has no VM .*"other"/),
    })

    await libvirt.kill('SIGKILL')
    const gone = await put({ vmname: name })
    expect(gone).toMatchObject({ status: 409, message: expect.stringMatching(/No libvirt answers/) })
    expect(await vm()).toMatchObject({ last_error: gone.message })
    expect((await service.fetch(`${appliance}/engines/libvirt/vms`)).status).toBe(409)
    expect((await service.fetch('/v2/computes/vm/pc/things')).status).toBe(409)
    await put({ enable: false })
    await change({ vmname: null })
    expect(await service.call('GET', `${appliance}/engines/libvirt/vms`)).toEqual([])
    expect((await service.fetch('/v2/computes/vm')).status).toBe(404)
  })
})
