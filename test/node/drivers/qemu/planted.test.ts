import { execFileSync } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { requireProgram } from '../../../support/require.ts'
import { TestService } from '../../../support/service.ts'
import { describeWith } from '../../../support/test-with.ts'
import { type Machine, MachineLab, machineService, pidsOf, qemuImg, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService({ local: false, host: '127.0.0.1' })

/** Sends a file to the directory of a machine. */
async function plant(
  { lab, id }: Machine,
  path: string,
  content: Uint8Array<ArrayBuffer> | string = 'x',
): Promise<void> {
  const file = `${lab.path}/files/project-files/machine-emulator/${id}/${path}`
  const { status } = await service().fetch(file, { method: 'POST', body: content })
  expect(status).toBe(200)
}

describeWith(requireProgram(qemuName))('what a client sends to the directory of a machine', () => {
  test.for([
    ['state.qcow2', 200, {}],
    ['qemu.log', 409, {}],
    ['hda_disk.qcow2.creating', 409, { hda_disk_image: 'empty.img' }],
    ['uefi_vars.fd.creating', 200, { firmware: 'uefi' }],
  ] as const)('a directory that is called %s: a start is answered %i', async ([name, status, settings]) => {
    const lab = await MachineLab.create(service())
    await lab.image('empty.img')
    const machine = await lab.machine(settings)
    await plant(machine, `${name}/file`)
    const answer = await machine.do('start')
    expect([answer.status, answer.body.message]).toEqual([status, status === 200 ? undefined : expect.any(String)])
    await machine.remove()
  })

  test('is not a disk: a copy is refused, and the other machine is unchanged', async () => {
    const lab = await MachineLab.create(service())
    const source = await lab.machine({ hda_disk_image: await lab.image('empty.img') })
    const copy = await lab.machine({ name: 'R2' })
    await plant(source, 'hda_disk.old.img.qcow2')
    await plant(copy, 'notes.txt', 'mine')
    const { status, body } = await source.duplicate(copy)
    expect([status, body.message]).toEqual([409, expect.stringContaining('hda_disk.old.img.qcow2')])
    const notes = `${lab.path}/files/project-files/machine-emulator/${copy.id}/notes.txt`
    expect(await (await service().fetch(notes)).text()).toBe('mine')
    expect((await copy.view()).hda_disk_image).toBe('')
    await Promise.all([source.remove(), copy.remove()])
  })

  test('a second file after a comma in the name of the initial RAM disk is not read', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine({ kernel_image: await lab.image('kernel.img') })
    await plant(machine, 'x,/etc/hostname')
    const initrd = `project-files/machine-emulator/${machine.id}/x,/etc/hostname`
    expect((await machine.update({ initrd })).status).toBe(200)
    const { status, body } = await machine.do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('comma')])
    await machine.remove()
  })

  test('a disk that replaces the checked one is not read', async () => {
    const programs = await mkdtemp(join(tmpdir(), 'patchbay-'))
    onTestFinished(() => rm(programs, { recursive: true, force: true }))
    const secret = join(programs, 'secret')
    await writeFile(secret, Buffer.alloc(1 << 20, 'x'))
    const planted = join(programs, 'planted.qcow2')
    qemuImg('create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', secret, planted)
    // Comes when everything has been looked at: the client is as fast as can be.
    const script = `#!/bin/sh\n[ -f hda_disk.qcow2 ] && cp ${planted} hda_disk.qcow2\nexec $(PATH=/usr/bin:/bin which ${qemuName}) "$@"\n`
    await writeFile(join(programs, qemuName), script, { mode: 0o755 })
    const launcher = ['env', `PATH=${programs}:${process.env.PATH}`]
    const service = await TestService.start(
      machineService({ local: false, host: '127.0.0.1', sandbox: 'off' }),
      launcher,
    )
    const lab = await MachineLab.create(service)
    const machine = await lab.machine({ hda_disk_image: await lab.image('empty.img') })
    const { status, body } = await machine.do('start')
    expect([status, body.message]).toEqual([409, expect.stringContaining('is not among the images')])
    expect(pidsOf(machine.id)).toEqual([])
  })
})

/** Where a machine has its files: a guest that broke out of its emulator makes links there, too. */
const directoryOf = ({ lab, id }: Machine): string =>
  join(lab.service.data, 'projects', lab.id, 'project-files/machine-emulator', id)

describeWith(requireProgram(qemuName))('what a guest that broke out puts into the directory of its machine', () => {
  const outside = async (content: string): Promise<string> => {
    const directory = await mkdtemp(join(tmpdir(), 'patchbay-'))
    onTestFinished(() => rm(directory, { recursive: true, force: true }))
    await writeFile(join(directory, 'file'), content)
    return join(directory, 'file')
  }

  test.for([
    ['qemu.log', {}],
    ['uefi_vars.fd.creating', { firmware: 'uefi' }],
  ] as const)('no file of the host is written through a symbolic link with the name %s', async ([name, settings]) => {
    const file = await outside('of the host')
    const lab = await MachineLab.create(service())
    const machine = await lab.machine(settings)
    await symlink(file, join(directoryOf(machine), name))
    expect((await machine.do('start')).status).toBe(200)
    expect(await readFile(file, 'utf8')).toBe('of the host')
    await machine.remove()
  })

  test('a FIFO in place of the log blocks nothing', async () => {
    const lab = await MachineLab.create(service())
    const machine = await lab.machine()
    execFileSync('mkfifo', [join(directoryOf(machine), 'qemu.log')])
    expect((await machine.do('start')).status).toBe(200)
    await machine.remove()
  })

  test('a symbolic link in place of the variables of a firmware is not read', async () => {
    const file = await outside('a secret of the host')
    const lab = await MachineLab.create(service())
    const machine = await lab.machine()
    const directory = directoryOf(machine)
    const code = Buffer.alloc(1 << 16)
    code.write('_FVH', 40)
    await writeFile(join(directory, 'CODE.fd'), code)
    await symlink(file, join(directory, 'VARS.fd'))
    const bios_image = `project-files/machine-emulator/${machine.id}/CODE.fd`
    expect((await machine.update({ bios_image })).status).toBe(200)
    await machine.do('start')
    const made = await readFile(join(directory, 'uefi_vars.fd'), 'utf8').catch(() => 'none')
    expect(made).not.toContain('a secret of the host')
    await machine.remove()
  })
})
