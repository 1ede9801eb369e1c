import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdir, readdir, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { monitorName } from '../../../../runtime/node/drivers/qemu/monitor-path.ts'
import { isTcpFree } from '../../../../runtime/node/engine/ports/bind-test.ts'
import { findProgram } from '../../../../runtime/node/os/system/find-program.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { type Machine, MachineLab, machineService, pidsOf, qemuImg, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService()

interface Case {
  readonly when: string
  readonly settings?: Record<string, unknown>
  /** What makes the start impossible. */
  readonly spoil?: (lab: MachineLab, machine: Machine) => Promise<unknown>
  readonly answer: Record<string, unknown>
  /** What makes it possible again. */
  readonly mend: Record<string, unknown> | ((lab: MachineLab) => Promise<unknown>)
}

const cases: readonly Case[] = [
  {
    when: 'its image has gone',
    settings: { hda_disk_image: 'gone.img' },
    spoil: (lab) => rm(lab.imagePath('gone.img')),
    answer: {
      message: 'hda_disk_image: "gone.img" does not exist; upload it, then try again',
      image: 'gone.img',
      exception: 'ImageMissingError',
    },
    mend: (lab) => lab.image('gone.img'),
  },
  {
    when: 'its image is cut off',
    settings: { hda_disk_image: 'cut.qcow2' },
    spoil: async (lab) => {
      qemuImg('create', '-q', '-f', 'qcow2', lab.imagePath('cut.qcow2'), '16M')
      await truncate(lab.imagePath('cut.qcow2'), 100)
    },
    answer: { message: expect.stringMatching(/^Reading cut\.qcow2: .*(header|qcow2)/) },
    mend: async (lab) => qemuImg('create', '-q', '-f', 'qcow2', lab.imagePath('cut.qcow2'), '16M'),
  },
  {
    when: 'its overlay was not written to its end',
    settings: { hda_disk_image: 'base.img' },
    spoil: async (_, machine) => writeFile(join((await machine.view()).node_directory, 'hda_disk.qcow2'), ''),
    answer: { message: expect.stringMatching(/^hda_disk\.qcow2 is empty/) },
    mend: { hda_disk_image: '' },
  },
  {
    when: 'its emulator does not like its options',
    settings: { options: '-vga none -device nonsense' },
    answer: {
      message: expect.stringMatching(
        /^The program ended at once \(exit code 1\): .*'nonsense' is not a valid device model name/,
      ),
    },
    mend: { options: '-vga none' },
  },
  {
    when: 'hdc and the CD-ROM want the same place',
    settings: { hdc_disk_image: 'base.img', cdrom_image: 'base.img' },
    answer: { message: expect.stringMatching(/^cdrom_image: the CD-ROM drive is hdc/) },
    mend: { cdrom_image: '' },
  },
  {
    when: 'a kernel has a command line and no kernel',
    settings: { kernel_command_line: 'quiet' },
    answer: { message: 'kernel_command_line: needs kernel_image' },
    mend: { kernel_command_line: '' },
  },
]

/** Files that are nothing but the signs of what they are. */
async function plantForms(lab: MachineLab): Promise<void> {
  const kernel = Buffer.alloc(1024)
  kernel.write('HdrS', 0x202)
  kernel.set([0x55, 0xaa], 0x1fe)
  const parted = Buffer.alloc(1 << 20)
  parted.set([0x55, 0xaa], 0x1fe)
  parted.set([0x80, 0, 0, 0, 0x83], 0x1be)
  await writeFile(lab.imagePath('vmlinuz'), kernel)
  await writeFile(lab.imagePath('elf'), '\u007fELF')
  await writeFile(lab.imagePath('parted.img'), parted)
  qemuImg('create', '-q', '-f', 'qcow2', lab.imagePath('disk.qcow2'), '16M')
}

describeWith(requireProgram(qemuName))('a machine that cannot start', () => {
  test.for(cases.map((it) => [it.when, it] as const))('because %s', async ([, { settings, spoil, answer, mend }]) => {
    const lab = await MachineLab.create(service())
    for (const name of ['gone.img', 'cut.qcow2', 'base.img']) await lab.image(name)
    const machine = await lab.machine({ console_type: 'telnet', ...settings })
    const { console, node_directory } = await machine.view()
    const before = await readdir(node_directory)
    await spoil?.(lab, machine)
    const spoilt = await readdir(node_directory)
    expect(await machine.do('start')).toEqual({ status: 409, body: { status: 409, ...answer } })
    expect(await machine.view()).toMatchObject({ status: 'stopped', console, status_reason: answer.message })
    expectNothingOf(machine, lab)
    expect(await isTcpFree(console ?? 0, '127.0.0.1')).toBe(true)
    const kept = new Set([...before, ...spoilt, 'hda_disk.qcow2', 'hdc_disk.qcow2', 'qemu.log'])
    expect((await readdir(node_directory)).filter((name) => !kept.has(name))).toEqual([])
    if (typeof mend === 'function') await mend(lab)
    else expect((await machine.update(mend)).status).toBe(200)
    expect((await machine.do('start')).body).toMatchObject({ status: 'started', status_reason: null })
    await machine.remove()
  })

  test('without its emulator is refused: a platform gives it another one', async () => {
    const lab = await MachineLab.create(service())
    const directory = join(service().data, 'own')
    await mkdir(directory)
    const qemu_path = join(directory, qemuName)
    await symlink(findProgram(qemuName) ?? '', qemu_path)
    const machine = await lab.machine({ qemu_path })
    await machine.must('start', 'stop')
    await rm(qemu_path)
    // What it is to emulate is known, so the emulator in PATH stands in.
    expect((await machine.do('start')).status).toBe(200)
    await machine.remove()
    const unknown = join(directory, 'qemu-system-mine')
    await writeFile(unknown, `#!/bin/sh\nexec ${findProgram(qemuName)} "$@"\n`, { mode: 0o755 })
    const other = await lab.ask({ qemu_path: unknown, platform: null })
    expect(other.body).toMatchObject({ platform: 'x86_64', qemu_path: unknown })
  })

  const wrongSettings = [
    [{ adapter_type: 'ne9000' }, /^adapter_type: this emulator has no network adapter ne9000; it has .*e1000/],
    [
      { custom_adapters: [{ adapter_number: 0, adapter_type: 'ne9000' }] },
      /^adapter_type: .* no network adapter ne9000/,
    ],
    [{ ram: 1 << 24 }, /^ram: this host has \d+ MB, the node wants 16777216 MB$/],
    [
      { hda_disk_image: 'vmlinuz' },
      /^hda_disk_image: "vmlinuz" is a Linux kernel; expected a disk, as .* kernel_image$/,
    ],
    [{ hdb_disk_image: 'elf' }, /^hdb_disk_image: "elf" is a program or kernel \(ELF\); expected a disk/],
    [
      { kernel_image: 'disk.qcow2' },
      /^kernel_image: "disk.qcow2" is a disk in the format qcow2; expected a kernel, as .* hda_disk_image$/,
    ],
    [{ kernel_image: 'parted.img' }, /^kernel_image: "parted.img" is a raw disk with partitions/],
    [{ initrd: 'disk.qcow2' }, /^initrd: "disk.qcow2" is a disk in the format qcow2; expected an initial RAM disk/],
  ] as const

  test('is refused when it is created or changed to what this host has not, or to files at the place of others', async () => {
    const lab = await MachineLab.create(service())
    await plantForms(lab)
    const machine = await lab.machine({ adapters: 1 })
    const before = await machine.view()
    for (const [settings, message] of wrongSettings) {
      const refusal = { status: 409, body: { status: 409, message: expect.stringMatching(message) } }
      expect(await lab.ask({ adapters: 1, ...settings }), JSON.stringify(settings)).toEqual(refusal)
      expect(await machine.update({ ...settings, cpus: 2 }), JSON.stringify(settings)).toEqual(refusal)
      expect(await machine.view()).toEqual(before)
    }
    await machine.remove()
  })

  test('a kernel, a program and disks are accepted at their own settings', async () => {
    const lab = await MachineLab.create(service())
    await plantForms(lab)
    const fields = { kernel_image: 'vmlinuz', hda_disk_image: 'disk.qcow2', hdb_disk_image: 'parted.img' }
    const machine = await lab.machine({ ...fields, adapters: 1, adapter_type: 'virtio-net-pci' })
    expect((await machine.update({ kernel_image: 'elf' })).status).toBe(200)
    await machine.remove()
  })

  const wrongOptions = [
    ['-monitor stdio', /^options: -monitor cannot be used/],
    ['-name "x', /^options: /],
    ['-cpu', /^options: -cpu at the end, expected its argument/],
    ['-serial mon:stdio', /^options: -serial mon:stdio cannot be used/],
  ] as const

  test('options that cannot be used are refused when they are given', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine()
    for (const [options, message] of wrongOptions) {
      const refusal = { status: 400, body: { status: 400, message: expect.stringMatching(message) } }
      expect(await lab.ask({ options }), options).toEqual(refusal)
      expect(await machine.update({ options, ram: 24 }), options).toEqual(refusal)
      expect(await machine.view()).toMatchObject({ options: '-vga none', ram: 16 })
    }
    await machine.remove()
  })

  test('because KVM is required and cannot be used', async () => {
    const lab = await MachineLab.create(service())
    // No processor that runs these tests runs the instructions of this one.
    const qemu_path = join(service().data, 'qemu-system-tricore')
    await writeFile(qemu_path, `#!/bin/sh\nexec ${findProgram(qemuName)} "$@"\n`, { mode: 0o755 })
    const machine = await lab.machine({ qemu_path, platform: null })
    await configure('kvm')
    onTestFinished(() => configure('tcg'))
    const refusal = {
      status: 409,
      message: expect.stringMatching(/^KVM is required \(machine_emulator.acceleration\)/),
    }
    expect(await machine.do('start')).toEqual({ status: 409, body: refusal })
    await configure('tcg')
    expect((await machine.do('start')).status).toBe(200)
    await machine.remove()
  })

  test('with a screen whose port another program took: it gets another one, with a warning', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine({ console_type: 'vnc' })
    const before = (await machine.view()).console ?? 0
    const thief = createServer().listen(before, '127.0.0.1')
    await once(thief, 'listening')
    onTestFinished(() => void thief.close())
    const feed = await lab.feed()
    const { status, body } = await machine.do('start')
    expect(status).toBe(200)
    expect(body.console).not.toBe(before)
    expect(body.command_line).toContain(`-vnc 127.0.0.1:${Number(body.console) - 5900}`)
    await feed.becomes('started')
    const message = `R1: console port ${before} is in use by another program; it is now ${body.console}`
    expect(feed.messages('log.warning')).toEqual([message])
    await machine.remove()
  })

  test('with a screen whose port has changed: there is a warning, also when the start fails', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine({ console_type: 'vnc', options: '-device nonsense' })
    const before = (await machine.view()).console ?? 0
    const thief = createServer().listen(before, '127.0.0.1')
    await once(thief, 'listening')
    onTestFinished(() => void thief.close())
    const feed = await lab.feed()
    expect((await machine.do('start')).status).toBe(409)
    await feed.until(({ action }) => action === 'log.warning')
    expect(feed.messages('log.warning')[0]).toContain(`it is now ${(await machine.view()).console}`)
    await machine.remove()
  })
})

function expectNothingOf(machine: Machine, lab: MachineLab): void {
  expect(pidsOf(machine.id)).toEqual([])
  expect(existsSync(join(lab.service.data, 'run', monitorName(machine.id)))).toBe(false)
}

/** Changes a setting of the service while it runs. */
async function configure(acceleration: string): Promise<void> {
  await service().configure(machineService({ 'machine_emulator.acceleration': acceleration }))
  await service().call('POST', '/v2/compute/config/reload')
}
