import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { statfsSync } from 'node:fs'
import { mkdir, open, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { requireDevices, requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { counting, filling, writing } from './boot-sectors.ts'
import { booting, type Machine, MachineLab, openFiles, qemuImg, sharedService } from './machine-lab.ts'
import { qemuName } from './qemu-process.ts'

const service = sharedService({ min_free_space_mb: 0 })
const needsQemu = requireProgram(qemuName)

const sha256 = async (path: string) =>
  createHash('sha256')
    .update(await readFile(path))
    .digest('hex')

interface ImageInfo {
  readonly 'full-backing-filename'?: string
  readonly 'backing-filename-format'?: string
}
const infoOf = (path: string) => JSON.parse(qemuImg('info', '-U', '--output=json', path)) as ImageInfo

const overlayOf = async (machine: Machine) => join((await machine.view()).node_directory, 'hda_disk.qcow2')

/** Boots a program that writes the second sector of its disk, and waits until it has. */
async function bootAndWrite(machine: Machine): Promise<void> {
  await (await machine.boot()).expect('w')
  await machine.must('stop')
}

describeWith(needsQemu)('the disk of a machine', () => {
  test('is an overlay that names its image with the format, and the image stays as it is', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('writing.img', writing)
    const before = await sha256(lab.imagePath(image))
    const machine = await lab.machine(booting(image))
    await bootAndWrite(machine)
    expect(await sha256(lab.imagePath(image))).toBe(before)
    const overlay = await overlayOf(machine)
    expect(infoOf(overlay)).toMatchObject({
      'full-backing-filename': lab.imagePath(image),
      'backing-filename-format': 'raw',
    })
    // What was written is in it.
    qemuImg('convert', '-O', 'raw', overlay, `${overlay}.raw`)
    expect((await readFile(`${overlay}.raw`)).subarray(512, 1024)).toEqual(writing)
    await machine.remove()
  })

  test('follows its image to another directory', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('moving.img', writing)
    const machine = await lab.machine(booting(image))
    await bootAndWrite(machine)
    const moved = lab.imagePath('moved/moving.img')
    await mkdir(lab.imagePath('moved'), { recursive: true })
    await rename(lab.imagePath(image), moved)
    await bootAndWrite(machine)
    expect(infoOf(await overlayOf(machine))).toMatchObject({ 'full-backing-filename': moved })
    await machine.remove()
  })

  test('is another overlay for another image, and the former one when the image is changed back', async () => {
    const lab = await MachineLab.create(service())
    const [one, other] = [await lab.image('writing.img', writing), await lab.image('counting.img', counting)]
    const machine = await lab.machine(booting(one))
    await bootAndWrite(machine)
    const before = await sha256(await overlayOf(machine))
    await machine.update({ hda_disk_image: other })
    await (await machine.boot()).expect('')
    await machine.must('stop')
    const overlay = await overlayOf(machine)
    expect(infoOf(overlay)).toMatchObject({ 'full-backing-filename': lab.imagePath(other) })
    qemuImg('convert', '-O', 'raw', overlay, `${overlay}.raw`)
    // Nothing of the first one is in it.
    expect((await readFile(`${overlay}.raw`)).subarray(512, 1024).every((byte) => byte === 0)).toBe(true)
    await machine.update({ hda_disk_image: one })
    await machine.boot()
    await machine.must('stop')
    expect(infoOf(overlay)).toMatchObject({ 'full-backing-filename': lab.imagePath(one) })
    expect(before).toHaveLength(64)
    qemuImg('convert', '-O', 'raw', overlay, `${overlay}.raw`)
    expect((await readFile(`${overlay}.raw`)).subarray(512, 1024)).toEqual(writing)
    await machine.remove()
  })

  test('is reported once as one of another image, when the image was replaced under its name, until the machine stops', async () => {
    const lab = await MachineLab.create(service())
    const reason = async () => (await machine.view()).status_reason
    const machine = await lab.machine({ hda_disk_image: await lab.image('replaced.img', writing) })
    const feed = await lab.feed()
    await machine.must('start', 'stop')
    await lab.image('replaced.img', counting)
    await machine.must('start')
    await feed.until(({ action, event }) => action === 'log.warning' && /^R1: hda_disk_image /.test(`${event.message}`))
    expect(await reason()).toMatch(/^hda_disk_image /)
    await machine.must('stop')
    expect(await reason()).toBe(null)
    await machine.must('start')
    expect(await reason()).toBe(null)
    await machine.must('stop')
    expect(feed.messages('log.warning')).toHaveLength(1)
    await machine.remove()
  })

  test('is the image itself without linked_clone, and then of one machine only', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('own.img', writing)
    const whole = { ...booting(image), linked_clone: false }
    const asked = await Promise.all([lab.ask({ ...whole, name: 'A' }), lab.ask({ ...whole, name: 'B' })])
    expect(asked.map(({ status }) => status).sort()).toEqual([201, 409])
    const refusal = asked.find(({ status }) => status === 409)?.body.message
    expect(refusal).toMatch(/^hda_disk_image: [AB] writes to this image; use linked_clone$/)
    const body = asked.find(({ status }) => status === 201)?.body
    const machine = (await lab.list()).find(({ id }) => id === body?.node_id) as Machine
    await bootAndWrite(machine)
    expect((await readFile(lab.imagePath(image))).subarray(512, 1024)).toEqual(writing)

    const linked = await lab.machine({ ...booting(image), name: 'C' })
    expect((await linked.update({ linked_clone: false })).status).toBe(409)
    expect(await linked.view()).toMatchObject({ linked_clone: true })
    expect((await machine.duplicate(linked)).status).toBe(409)
    expect(await linked.view()).toMatchObject({ linked_clone: true, hda_disk_image: image })
    // Another disk of a machine is no way around that.
    expect((await lab.ask({ linked_clone: false, hdb_disk_image: image })).status).toBe(409)
    await machine.remove()
    expect((await linked.update({ linked_clone: false })).status).toBe(200)
    await linked.remove()
  })

  test('that was raw before its guest wrote to it stays raw, with any content', async () => {
    const lab = await MachineLab.create(service())
    const image = await lab.image('raw.img', writing)
    const machine = await lab.machine({ ...booting(image), linked_clone: false })
    await bootAndWrite(machine)
    const secret = join(service().data, 'secret')
    await writeFile(secret, 'x'.repeat(4096))
    qemuImg('create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', secret, `${secret}.qcow2`)
    const file = await open(lab.imagePath(image), 'r+')
    await file.write(await readFile(`${secret}.qcow2`), 0, 512, 0)
    await file.close()
    // Also for the next service.
    await service().kill('SIGTERM')
    await service().restart()
    await machine.must('start')
    expect((await machine.view()).command_line).toMatch(/file=\S*raw\.img,\S*format=raw/)
    expect(openFiles(machine.pid ?? 0)).not.toContain(secret)
    await machine.remove()
  })
})

describeWith(needsQemu, requireDevices())('where the disk of the host is full', () => {
  test.for([
    ['its overlay', true],
    ['its image', false],
  ] as const)('a machine that writes to %s is paused, says why, and goes on when there is room', async ([, linked]) => {
    const lab = await MachineLab.create(service())
    const directory = lab.imagePath('small')
    await mkdir(directory, { recursive: true })
    if (!linked) mountSmallDisk(directory)
    const disk = await lab.image(linked ? 'filling.img' : 'small/own.img', filling)
    // To IDE, BIOS writes a sector at a time, which takes long on a host that has other things to do.
    const settings = { ...booting(disk), hda_disk_interface: 'virtio', linked_clone: linked }
    const machine = await lab.machine(settings)
    const place = linked ? (await machine.view()).node_directory : directory
    if (linked) mountSmallDisk(place)
    await writeFile(join(place, 'ballast'), Buffer.alloc(1 << 20))
    const terminal = await machine.boot()
    const feed = await lab.feed()
    terminal.type('x')
    const { event } = await feed.becomes('suspended')
    expect(event.status_reason).toBe(
      'hda cannot be written: the disk of the host is full; make room, then resume the node',
    )
    const message = 'R1: hda cannot be written: the disk of the host is full; the machine is paused'
    expect(feed.messages('log.error')).toEqual([message])
    // Without more room it comes no further, and that is news again.
    await machine.do('resume')
    await expect.poll(() => feed.messages('log.error')).toEqual([message, message])
    await machine.becomes('suspended')
    await rm(join(place, 'ballast'))
    const before = spaceOf(place)
    await machine.must('resume')
    const isWriting = () => before - spaceOf(place) > 60_000
    // What is known is shown when it is not so.
    const look = async () => [isWriting(), before, spaceOf(place), await machine.status(), feed.seen.slice(-3)]
    await expect
      .poll(isWriting)
      .toBe(true)
      .catch(async () => expect(await look()).toBe('writing'))
    await machine.must('stop')
    expect(await machine.status()).toBe('stopped')
  })
})

describeWith(needsQemu)('outside local mode', () => {
  const service = sharedService({ local: false, host: '127.0.0.1' })

  test('the disks of a machine can only have images as their base', async () => {
    const lab = await MachineLab.create(service())
    const secret = join(lab.service.data, 'secret')
    await writeFile(secret, Buffer.alloc(65536, 'x'))
    await lab.image('plain.img', counting)
    const make = (name: string, ...args: readonly string[]) =>
      qemuImg('create', '-q', '-f', 'qcow2', ...args, lab.imagePath(name), '1M')
    make('reader.qcow2', '-F', 'raw', '-b', secret)
    make('fair.qcow2', '-F', 'raw', '-b', lab.imagePath('plain.img'))
    make('deep.qcow2', '-F', 'qcow2', '-b', lab.imagePath('reader.qcow2'))

    expect(await lab.ask({ hda_disk_image: secret })).toMatchObject({ status: 409, body: { image: secret } })
    for (const options of [`-drive file=${secret}`, '-netdev user,id=n', `-fw_cfg name=opt/x,file=${secret}`]) {
      expect((await lab.ask({ options })).status).toBe(400)
    }
    for (const linked_clone of [true, false]) {
      for (const name of ['reader.qcow2', 'deep.qcow2']) {
        const machine = await lab.machine({ hda_disk_image: name, linked_clone })
        const { status, body } = await machine.do('start')
        expect([status, body.message]).toEqual([409, expect.stringContaining('is not among the images')])
        await machine.remove()
      }
    }
    const machine = await lab.machine({ hda_disk_image: 'fair.qcow2' })
    await machine.must('start', 'stop')
  })

  test('a disk that a client put in place of the overlay can only have images as its base', async () => {
    const lab = await MachineLab.create(service())
    const secret = join(lab.service.data, 'secret')
    await writeFile(secret, Buffer.alloc(1 << 20, 'x'))
    const planted = join(lab.service.data, 'planted.qcow2')
    qemuImg('create', '-q', '-f', 'qcow2', '-o', `data_file=${secret},data_file_raw=on`, planted, '1M')
    await writeFile(secret, Buffer.alloc(1 << 20, 'x'))
    for (const [disk, settings] of [
      ['hda_disk.qcow2', { hda_disk_image: await lab.image('plain.img', counting) }],
      ['state.qcow2', { on_close: 'save_vm_state' }],
    ] as const) {
      const machine = await lab.machine(settings)
      await writeFile(join((await machine.view()).node_directory, disk), await readFile(planted))
      const { status, body } = await machine.do('start')
      expect([status, body.message]).toEqual([409, expect.stringContaining('is not among the images')])
      await machine.remove()
    }
    expect((await readFile(secret)).every((byte) => byte === 'x'.charCodeAt(0))).toBe(true)
  })
})

/** Has a directory on a disk of its own. */
function mountSmallDisk(directory: string): void {
  execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=3m', 'tmpfs', directory])
  onTestFinished(() => void execFileSync('umount', ['-l', directory]))
}

/** Free bytes where the directory is. */
function spaceOf(directory: string): number {
  const { bavail, bsize } = statfsSync(directory)
  return bavail * bsize
}
