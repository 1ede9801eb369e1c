import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { requireGuest } from '../support/guest/files.ts'
import { createGuest, link, shellOf } from '../support/guest/lab.ts'
import { linkUp, ping, transfer } from '../support/guest/network.ts'
import { createPc, openConsole, start, status } from '../support/lab.ts'
import { readPcap } from '../support/pcap.ts'
import { TestService } from '../support/service.ts'
import { testWith } from '../support/test-with.ts'

const needsGuest = await requireGuest()
const guestTest = testWith(needsGuest)
/** Two slow processors have other tests to run beside guests that are emulated. */
const timeout = 240_000

interface Machine {
  readonly status: string
  readonly status_reason: string | null
  readonly mac_address: string
}

async function newProject(service: TestService): Promise<string> {
  const { project_id } = await service.call<{ project_id: string }>('POST', '/v2/compute/projects', { name: 'guests' })
  return `/v2/compute/projects/${project_id}`
}

guestTest(
  'guests and a pc on one lab: linked, captured, paused, and left alone by a killed service',
  {
    timeout,
  },
  async () => {
    const service = await TestService.start({ 'machine_emulator.acceleration': 'tcg' })
    const project = await newProject(service)
    const a = await createGuest(service, project, 'a', 'pb.ip=10.0.1.1/24 pb.ip1=10.0.0.9/24', { adapters: 2 })
    const b = await createGuest(service, project, 'b', 'pb.ip=10.0.1.2/24', { adapter_type: 'virtio-net-pci' })
    const pc = await createPc(service, project, 1)
    await link(service, project, [a, 0], [b, 0])
    await link(service, project, [a, 1], [pc, 0])
    await start(service, a, b, pc)
    const [shellA, shellB] = await Promise.all([shellOf(service, a), shellOf(service, b)])
    await linkUp(shellA, 0)
    await linkUp(shellA, 1)
    await linkUp(shellB)

    const port = `${a}/adapters/0/ports/0`
    const { pcap_file_path } = await service.call<{ pcap_file_path: string }>('POST', `${port}/start_capture`, {
      capture_file_name: 'guests.pcap',
    })
    expect((await ping(shellA, '10.0.1.2', 3)).received).toBe(3)
    expect((await ping(shellA, '10.0.0.1', 2)).received).toBe(2)
    const console = await openConsole(service, pc)
    console.type('ping 10.0.0.9 -c 1\r')
    await console.expect('10.0.0.9 icmp_seq=1 ttl=64')
    const { bytes, ms } = await transfer(shellA, shellB, '10.0.1.2', 2)
    expect({ bytes, hasTime: ms > 0 }).toEqual({ bytes: 2 << 20, hasTime: true })
    await service.call('POST', `${port}/stop_capture`)
    const { records } = readPcap(await readFile(pcap_file_path))
    const isIcmp = (frame: Buffer) => frame.readUInt16BE(12) === 0x0800 && frame[23] === 1
    expect(records.filter(({ frame }) => isIcmp(frame))).toHaveLength(6)

    // Paused it answers nobody; what it counted stands still, and it goes on where it was.
    await service.call('POST', `${b}/suspend`)
    expect(await status(service, b)).toBe('suspended')
    expect((await ping(shellA, '10.0.1.2', 1)).received).toBe(0)
    await service.call('POST', `${b}/resume`)
    expect((await ping(shellA, '10.0.1.2', 2)).received).toBe(2)

    // The cable is pulled and put in again while the guest looks.
    await service.call('DELETE', `${port}/nio`)
    await shellA.until('[ "$(cat /sys/class/net/eth0/carrier)" = 0 ]')
    await link(service, project, [a, 0], [b, 0])
    await linkUp(shellA)
    await linkUp(shellB)
    expect((await ping(shellA, '10.0.1.2', 2)).received).toBe(2)

    shellA.send('ping -i 0.2 -c 25 10.0.1.2; echo over\n')
    await shellA.shows('seq=5')
    await service.kill('SIGKILL')
    await shellA.shows('seq=12')
    await service.restart()
    expect(await shellA.shows('over\r\n')).toContain('25 packets transmitted, 25 packets received')
    expect([await status(service, a), await status(service, b)]).toEqual(['started', 'started'])
    await service.call('POST', `${a}/suspend`)
    expect(await status(service, a)).toBe('suspended')
  },
)

guestTest(
  'what a guest writes is in its own disk and its copy only; its state can wait while it is stopped',
  {
    timeout,
  },
  async () => {
    const service = await TestService.start({ 'machine_emulator.acceleration': 'tcg' })
    const project = await newProject(service)
    const base = { path: 'base.qcow2', format: 'qcow2', size: 16 }
    await service.call('POST', '/v2/compute/machine-emulator/img', base)
    const image = join(service.data, 'images/machine-emulator/base.qcow2')
    const sum = async () =>
      createHash('sha256')
        .update(await readFile(image))
        .digest('hex')
    const untouched = await sum()
    const disk = { hda_disk_image: base.path, hda_disk_interface: 'virtio' }
    const c = await createGuest(service, project, 'c', '', { ...disk, on_close: 'save_vm_state' })
    const d = await createGuest(service, project, 'd', '', disk)
    await start(service, c)
    let shell = await shellOf(service, c)
    await shell.run('mke2fs /dev/vda && mount -t ext2 /dev/vda /mnt && echo kept >/mnt/file && sync')
    const counted = Number(await shell.run('cat /tmp/counter'))

    await service.call('POST', `${c}/stop`)
    expect(await status(service, c)).toBe('stopped')
    await start(service, c)
    // It did not boot, so it shows its prompt only when it is asked for: the counter goes on, the disk is still mounted.
    shell = await shellOf(service, c, '\n')
    await shell.until(`[ $(cat /tmp/counter) -gt ${counted} ]`)
    expect(Number(await shell.run('cat /tmp/counter'))).toBeLessThan(counted + 600)
    expect(await shell.run('cat /mnt/file')).toBe('kept')

    shell.send('umount /mnt; poweroff -f\n')
    await expect.poll(() => status(service, c)).toBe('stopped')
    expect((await service.call<Machine>('GET', c)).status_reason).toBeNull()

    await service.call('POST', `${c}/resize_disk`, { drive_name: 'hda', extend: 16 })
    await service.call('POST', `${c}/duplicate`, { destination_node_id: d.split('/').at(-1) })
    const [first, second] = await Promise.all([c, d].map((node) => service.call<Machine>('GET', node)))
    expect(second?.mac_address).not.toBe(first?.mac_address)
    await start(service, c, d)
    const [shellC, shellD] = await Promise.all([shellOf(service, c), shellOf(service, d)])
    await shellC.run('mount -t ext2 /dev/vda /mnt && echo original >/mnt/file && umount /mnt')
    for (const it of [shellC, shellD]) expect(await it.run('cat /sys/block/vda/size')).toBe(String((32 << 20) / 512))
    expect(await shellD.run('mount -t ext2 /dev/vda /mnt && cat /mnt/file')).toBe('kept')
    expect(await sum()).toBe(untouched)

    // The power button: its bound is two minutes, so this ends in time only when the guest obeys.
    await service.call('PUT', d, { on_close: 'shutdown_signal' })
    await service.call('POST', `${d}/stop`)
    expect(await status(service, d)).toBe('stopped')
  },
)
