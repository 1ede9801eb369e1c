import { randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { version } from '../../../runtime/node/version.ts'
import type { ApplianceVm } from '../../../src/model/appliance-vm.ts'
import type { Compute } from '../../../src/model/compute.ts'
import { type ApplianceGuest, applianceGuest } from '../../support/guest/appliance.ts'
import { requireGuest } from '../../support/guest/files.ts'
import { requireLibvirt, TestLibvirt } from '../../support/libvirt.ts'
import { requireDevices } from '../../support/require.ts'
import { portRanges, TestService } from '../../support/service.ts'

const isSkipped = [requireLibvirt(), requireDevices(), await requireGuest()].some(({ skip }) => skip)
const patience = { timeout: 60_000, interval: 250 }
const appliance = '/v2/appliancevm'
/** A network of its own for every process; of the block for such tests (RFC 2544). */
const network = `198.${18 + ((process.pid >> 14) & 1)}.${(process.pid >> 6) & 255}`
const [host, guest] = [((process.pid & 63) << 2) + 1, ((process.pid & 63) << 2) + 2].map((it) => `${network}.${it}`)

const definition = (name: string, uuid: string, { kernel, initrd, commandLine }: ApplianceGuest): string => `
<domain type='qemu'>
  <name>${name}</name>
  <uuid>${uuid}</uuid>
  <memory unit='MiB'>256</memory>
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

describe.skipIf(isSkipped)('a VM of libvirt as the appliance VM', () => {
  test('becomes the compute vm, sleeps, is found again, and ends by its power button', {
    timeout: 240_000,
  }, async () => {
    const libvirt = await TestLibvirt.start()
    onTestFinished(() => libvirt.close())
    const [name, uuid] = ['Lab VM', randomUUID()]
    const files = await applianceGuest(libvirt.directory, { version, address: `${guest}/30`, host: host ?? '' })
    await libvirt.define(definition(name, uuid, files))
    const before = await libvirt.virsh('dumpxml', '--inactive', name)
    const state = async () => (await libvirt.virsh('domstate', name)).trim()
    const service = await TestService.start({
      ...{ 'hypervisor.libvirt_uri': libvirt.uri, 'pc.engine': 'embedded' },
      ...portRanges(116),
    })
    const change = (input: Partial<ApplianceVm>) => service.call<ApplianceVm>('PUT', appliance, input)
    const vm = () => service.call<Compute>('GET', '/v2/computes/vm')
    expect(await service.call('GET', `${appliance}/engines/libvirt/vms`)).toEqual([{ vmname: name }])

    // It is started, found by its address, and asked.
    const starting = change({ enable: true, vmname: name, ram: 160, when_exit: 'suspend' })
    await expect
      .poll(() => vm().catch(() => undefined), patience)
      .toMatchObject({
        connected: false,
        last_error: expect.stringMatching(/"Lab VM" is starting/),
      })
    // A failure shows how far it came.
    await expect.poll(vm, { timeout: 90_000, interval: 250 }).toMatchObject({ connected: true })
    expect(await starting).toMatchObject({ enable: true, engine: 'libvirt', vmname: name })
    expect(await vm()).toMatchObject({
      ...{ compute_id: 'vm', name: 'Appliance VM (Lab VM)', host: guest, port: 3080, connected: true },
      capabilities: { version, platform: 'linux', node_types: ['pc'] },
    })
    interface Said {
      readonly asked: string
      readonly boot: string
      readonly ram: number
    }
    const ask = () => service.call<Said>('POST', '/v2/computes/vm/pc/things?a=1', 42)
    const first = await ask()
    expect(first).toMatchObject({
      asked: 'POST /v2/compute/pc/things?a=1',
      boot: expect.stringMatching(/^[\da-f-]{36}$/),
    })
    expect(first.ram).toBeLessThan(160)
    expect(await libvirt.virsh('dumpxml', '--inactive', name)).toBe(before)

    // Saved with what it does; a request to it wakes it up when it is enabled again.
    expect(await change({ enable: false })).toMatchObject({ enable: false, when_exit: 'suspend' })
    expect(await state()).toBe('shut off')
    expect((await service.fetch('/v2/computes/vm')).status).toBe(404)
    await change({ enable: true, when_exit: 'keep' })
    expect((await ask()).boot).toBe(first.boot)

    // It outlives the service, and is used as it is.
    const file = join(service.data, 'appliance-vm.json')
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    await service.end()
    expect(await state()).toBe('running')
    await service.restart()
    expect((await ask()).boot).toBe(first.boot)
    expect(await vm()).toMatchObject({ connected: true })

    // What others do to it is seen.
    await libvirt.virsh('managedsave', name)
    await expect.poll(async () => (await service.fetch('/v2/computes/vm')).status, patience).toBe(404)
    expect((await ask()).boot).toBe(first.boot)

    await change({ when_exit: 'stop' })
    await service.end()
    expect(await state()).toBe('shut off')
    expect(await libvirt.virsh('domstate', '--reason', name)).toContain('shutdown')
    expect(await libvirt.virsh('dumpxml', '--inactive', name)).toBe(before)
  })
})
