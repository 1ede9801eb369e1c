import { readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { isoImage } from '../../../../src/iso/iso9660.ts'
import { portRanges } from '../../../support/ports.ts'
import { usage } from '../../../support/processor-time.ts'
import { requireProgram, requireRoot } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith, testWith } from '../../../support/test-with.ts'
import { spinning } from './boot-sectors.ts'
import { booting, type Machine, MachineLab, machineService, openFiles, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService()
const root = requireRoot()

/** The images that its emulator has open. */
const media = (machine: Machine) => openFiles(machine.pid ?? 0).filter((file) => file.endsWith('.iso'))

/** The nice values of its threads. */
function niceValues({ pid }: Machine): number[] {
  return readdirSync(`/proc/${pid}/task`).map((thread) => {
    const [, fields = ''] = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'latin1').split(') ')
    return Number(fields.split(' ')[16])
  })
}

describeWith(requireProgram(qemuName))('a machine that runs', () => {
  test('has the CD-ROM of its setting, and none when the setting is empty', async () => {
    const lab = await MachineLab.create(service())
    const [one, two] = [await lab.image('one.iso'), await lab.image('two.iso')]
    const machine = await lab.machine({ cdrom_image: one })
    await machine.must('start')
    expect(media(machine)).toEqual([lab.imagePath(one)])
    for (const [name, open] of [
      [two, [lab.imagePath(two)]],
      ['', []],
      [one, [lab.imagePath(one)]],
    ] as const) {
      expect(await machine.update({ cdrom_image: name })).toMatchObject({ status: 200, body: { cdrom_image: name } })
      expect(media(machine)).toEqual(open)
    }
    await machine.must('suspend')
    expect((await machine.update({ cdrom_image: two })).status).toBe(200)
    expect(media(machine)).toEqual([lab.imagePath(two)])
    const gone = await machine.update({ cdrom_image: 'gone.iso' })
    expect(gone).toMatchObject({ status: 409, body: { image: 'gone.iso' } })
    expect(await machine.view()).toMatchObject({ cdrom_image: two, status: 'suspended' })
    await machine.remove()
  })

  test('has a CD-ROM from its own directory, also by a symbolic link inside it only', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine({ cdrom_image: './own.iso' })
    expect((await machine.do('start')).body.message).toBe(
      'cdrom_image: the directory of the node has no file "./own.iso"',
    )
    const { node_directory } = (await machine.view()) as { node_directory: string }
    const file = join(node_directory, 'own.iso')
    symlinkSync('/etc/passwd', file)
    expect((await machine.do('start')).status).toBe(409)
    rmSync(file)
    writeFileSync(file, isoImage('cidata', new Map([['user-data', new Uint8Array(1)]])))
    await machine.must('start')
    expect(media(machine)).toEqual([file])
    await machine.remove()
  })

  test('has no CD-ROM drive when hdc is used', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('one.iso')
    const machine = await lab.machine({ hdc_disk_image: image })
    await machine.must('start')
    const { status, body } = await machine.update({ cdrom_image: image })
    expect(status).toBe(409)
    expect(body.message).toMatch(/^cdrom_image: .*hdc/)
    expect((await machine.view()).cdrom_image).toBe('')
    await machine.remove()
  })

  test('uses its limit of processor time, set before its start or while it runs', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('spinning.img', spinning)
    // Others use this host, too: what it may use at most is told from what it gets without a limit, as far as possible.
    const machine = await lab.machine({ ...booting(image), cpu_throttling: 15 })
    await machine.boot()
    const { pid = 0 } = machine
    // What was used before is paid back first.
    await expect.poll(() => usage(pid, 400)).toBeLessThan(20)
    await machine.update({ cpu_throttling: 0 })
    await expect.poll(() => usage(pid, 200)).toBeGreaterThan(25)
    await machine.update({ cpu_throttling: 10 })
    await expect.poll(() => usage(pid, 400)).toBeLessThan(15)
    await machine.remove()
  })

  test.for([
    ['very low', 19],
    ['low', 5],
    ['normal', getPriority()],
    ['null', getPriority()],
    ['very high', -15],
  ] as const)('with priority %s has that in all of its threads', async ([process_priority, nice], { skip }) => {
    skip(nice < 0 && root.skip, root.missing)
    const machine = await (await MachineLab.create(service())).machine({ process_priority, cpus: 2 })
    await machine.must('start')
    const values = niceValues(machine)
    expect(values.length).toBeGreaterThan(2)
    expect(new Set(values)).toEqual(new Set([nice]))
    await machine.remove()
  })

  testWith(root)('runs all the same when the service may not give it its priority', async () => {
    const unprivileged = ['setpriv', '--bounding-set', '-sys_nice', '--inh-caps', '-all', '--']
    const lab = await MachineLab.create(await TestService.start(machineService(), unprivileged))
    const machine = await lab.machine({ process_priority: 'high' })
    const feed = await lab.feed()
    await machine.must('start')
    await feed.becomes('started')
    expect(new Set(niceValues(machine))).toEqual(new Set([getPriority()]))
    expect(feed.messages('log.warning')).toEqual(['R1: process_priority: only root may set high'])
  })

  test('has the adapters of its settings', async () => {
    const lab = await MachineLab.create(await TestService.start(machineService(portRanges({ udp: 560 }))))
    const machine = await lab.machine({
      ...{ adapters: 275, adapter_type: 'e1000', mac_address: '0c:00:00:00:ff:00', ram: 64 },
      custom_adapters: [
        { adapter_number: 1, adapter_type: 'virtio-net-pci' },
        { adapter_number: 274, mac_address: '0c:aa:bb:cc:dd:ee' },
        { adapter_number: 3, adapter_type: 'rtl8139', mac_address: '0C:AA:BB:CC:DD:EF', port_name: 'wan' },
      ],
    })
    await machine.must('start')
    const line = (await machine.view()).command_line
    const cards = [...line.matchAll(/-device ([\w-]+),id=pb-nic(\d+),mac=([\w:]+),/g)].map((it) => it.slice(1))
    expect(cards).toHaveLength(275)
    expect(cards.slice(0, 4)).toEqual([
      ['e1000', '0', '0c:00:00:00:ff:00'],
      ['virtio-net-pci', '1', '0c:00:00:00:ff:01'],
      ['e1000', '2', '0c:00:00:00:ff:02'],
      ['rtl8139', '3', '0c:aa:bb:cc:dd:ef'],
    ])
    expect(cards.slice(273)).toEqual([
      ['e1000', '273', '0c:00:00:01:00:11'],
      ['e1000', '274', '0c:aa:bb:cc:dd:ee'],
    ])
    expect(
      (await machine.nio('POST', 274, { type: 'nio_udp', lport: await lab.reserve(), rhost: '127.0.0.1', rport: 9 }))
        .status,
    ).toBe(201)
    await machine.must('stop')
  })
})
