import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import {
  deleteSnapshot,
  findImageTool,
  inspectImage,
  overlayName,
  prepareImage,
  prepareOverlay,
  resizeDisk,
} from '../../../../runtime/node/drivers/qemu/disks.ts'
import { hangMs } from '../../../support/limits.ts'
import { requireProgram, requireThing } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'
import { monitor, qemuName, startQemu, temporaryDirectory } from './qemu-process.ts'

const imageTool = requireProgram('qemu-img')
const imageTest = testWith(imageTool)
const qemuTest = testWith(imageTool, requireProgram(qemuName))

const tool = imageTool.skip ? '' : findImageTool('/nowhere/qemu-system-x86_64')
const qemuImg = (...args: readonly string[]) => execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })
const md5 = async (path: string) =>
  createHash('md5')
    .update(await readFile(path))
    .digest('hex')

async function lab(format = 'qcow2', name = 'base image,1.img') {
  const directory = await temporaryDirectory()
  const base = join(directory, name)
  qemuImg('create', '-q', '-f', format, base, '64M')
  return { directory, base, path: join(directory, overlayName('hda')) }
}

/** A running machine that has written to its disk, as far as another process can see. */
async function runningWith(path: string, directory: string, format = 'qcow2') {
  const socket = join(directory, 'qmp.sock')
  const file = path.replaceAll(',', ',,')
  const args = ['-S', '-display', 'none', '-nodefaults', '-qmp', `unix:${socket},server=on,wait=off`]
  startQemu(socket, [...args, '-drive', `file=${file},if=virtio,format=${format},id=d`])
  return monitor(socket)
}

imageTest.for([['raw'], ['qcow2'], ['vmdk'], ['vdi']] as const)(
  'an overlay names the %s image below it with its format',
  async ([format]) => {
    const { base, path } = await lab(format)
    const before = await md5(base)
    expect(await prepareOverlay(tool, { path, base })).toEqual({ path, format: 'qcow2', warnings: [], snapshots: [] })
    expect(await inspectImage(tool, path, 'qcow2')).toMatchObject({
      ...{ format: 'qcow2', backing: base, backingFormat: format, virtualSize: 64 << 20, references: [base] },
    })
    expect(await md5(base)).toBe(before)
  },
)

imageTest('an overlay that is there stays as it is', async () => {
  const { base, path } = await lab()
  await prepareOverlay(tool, { path, base })
  const before = await md5(path)
  await prepareOverlay(tool, { path, base })
  expect(await md5(path)).toBe(before)
})

imageTest('an overlay follows the image that has moved', async () => {
  const { directory, base, path } = await lab()
  await prepareOverlay(tool, { path, base })
  const moved = join(directory, 'moved')
  await mkdir(moved)
  const there = join(moved, 'base.img')
  await rename(base, there)
  const before = await md5(there)
  await prepareOverlay(tool, { path, base: there })
  expect(await inspectImage(tool, path)).toMatchObject({ backing: there, backingFormat: 'qcow2' })
  expect(await md5(there)).toBe(before)
})

imageTest('a disk without an image below it is not given one', async () => {
  const { base, path } = await lab()
  qemuImg('create', '-q', '-f', 'qcow2', path, '8M')
  await prepareOverlay(tool, { path, base })
  expect(await inspectImage(tool, path)).toMatchObject({ backing: undefined, virtualSize: 8 << 20 })
})

imageTest('leaked clusters of an overlay are repaired, those of the image below are left', async () => {
  const { base, path } = await lab()
  await prepareOverlay(tool, { path, base })
  for (const file of [base, path]) await leak(file)
  const before = await md5(base)
  expect(() => qemuImg('check', '-q', path)).toThrow()
  expect(await prepareOverlay(tool, { path, base })).toMatchObject({ warnings: [] })
  qemuImg('check', '-q', path)
  expect(await md5(base)).toBe(before)
})

imageTest('an image below with errors is not repaired, and that is reported', async () => {
  const { base, path } = await lab()
  qemuImg('bench', '-q', '-w', '-c', '1', '-f', 'qcow2', base)
  await breakRefcounts(base)
  const before = await md5(base)
  expect((await prepareOverlay(tool, { path, base })).warnings).toEqual([
    expect.stringContaining('The image base image,1.img has errors'),
  ])
  expect(await md5(base)).toBe(before)
})

imageTest('errors of an image that the machine writes to are repaired', async () => {
  const { base } = await lab()
  qemuImg('bench', '-q', '-w', '-c', '1', '-f', 'qcow2', base)
  await breakRefcounts(base)
  expect(await prepareImage(tool, base)).toEqual({ path: base, format: 'qcow2', warnings: [], snapshots: [] })
  qemuImg('check', '-q', base)
})

imageTest('the format of an image does not change with what a guest writes to it', async () => {
  const { directory, base } = await lab('raw')
  const { format } = await prepareImage(tool, base)
  const disguise = join(directory, 'disguise')
  qemuImg('create', '-q', '-f', 'qcow2', '-F', 'raw', '-b', '/etc/passwd', disguise)
  await writeFile(base, await readFile(disguise))
  expect(await prepareImage(tool, base, { format })).toMatchObject({ format: 'raw' })
  expect((await inspectImage(tool, base)).references).toEqual(['/etc/passwd'])
})

imageTest('an image that reads other files can be refused before it is used', async () => {
  const { base, path } = await lab()
  qemuImg('rebase', '-u', '-F', 'raw', '-b', '/etc/passwd', base)
  const allow = async (file: string) => {
    throw new Error(`not ${file}`)
  }
  await expect(prepareOverlay(tool, { path, base, allow })).rejects.toThrow('not /etc/passwd')
  expect(await readdir(join(path, '..'))).toEqual(['base image,1.img'])
})

imageTest.for([
  ['empty', 0, 'hda_disk.qcow2 is empty'],
  ['cut off', 60, 'Reading hda_disk.qcow2: '],
] as const)('an overlay that is %s is refused', async ([, length, message]) => {
  const { base, path } = await lab()
  await prepareOverlay(tool, { path, base })
  await truncate(path, length)
  await expect(prepareOverlay(tool, { path, base })).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining(message),
  })
})

imageTest('a missing image, a link to nowhere and a directory are told apart', async () => {
  const { directory, path } = await lab()
  await symlink('nowhere', join(directory, 'link'))
  const base = (name: string) => prepareOverlay(tool, { path, base: join(directory, name) })
  await expect(base('none.img')).rejects.toMatchObject({ status: 409, message: 'The image none.img does not exist' })
  await expect(base('link')).rejects.toThrow('The image link is a dangling link')
  await expect(base('.')).rejects.toThrow('is not a file')
})

imageTest('a disk is extended, and what the tool refuses is reported', async () => {
  const { base, path } = await lab()
  const disk = await prepareOverlay(tool, { path, base })
  await resizeDisk(tool, disk, 100)
  expect(await inspectImage(tool, path)).toMatchObject({ virtualSize: 164 << 20 })
  const before = await md5(base)
  await expect(resizeDisk(tool, disk, 2 ** 60)).rejects.toMatchObject({ status: 409 })
  await expect(resizeDisk(tool, { ...disk, format: 'vmdk' }, 1)).rejects.toThrow('Extending hda_disk.qcow2: ')
  expect(await md5(base)).toBe(before)
})

imageTest('a saved state is deleted, and one that is not there is fine', async () => {
  const { base, path } = await lab()
  const disk = await prepareOverlay(tool, { path, base })
  qemuImg('snapshot', '-c', 'saved', path)
  await deleteSnapshot(tool, disk, 'saved')
  await deleteSnapshot(tool, disk, 'saved')
  expect((await inspectImage(tool, path)).snapshots).toEqual([])
})

qemuTest('an overlay that a machine uses can be read and not changed', async () => {
  const { directory, base, path } = await lab()
  const disk = await prepareOverlay(tool, { path, base })
  const qmp = await runningWith(path, directory)
  expect(await inspectImage(tool, path)).toMatchObject({ format: 'qcow2' })
  const inUse = { status: 409, message: expect.stringContaining('the image is in use by a running machine') }
  await expect(resizeDisk(tool, disk, 1)).rejects.toMatchObject(inUse)
  await expect(prepareOverlay(tool, { path, base })).rejects.toMatchObject(inUse)
  await expect(resizeDisk(tool, { ...disk, path: base }, 1)).rejects.toMatchObject(inUse)
  // Another overlay of the same image is no conflict.
  await prepareOverlay(tool, { path: join(directory, overlayName('hdb')), base })
  qmp.close()
})

qemuTest('an image that a machine writes to is no base for others', async () => {
  const { directory, base, path } = await lab()
  await runningWith(base, directory)
  await expect(prepareOverlay(tool, { path, base })).rejects.toMatchObject({
    status: 409,
    message: expect.stringContaining('in use'),
  })
})

qemuTest('what a machine writes goes to the overlay', async () => {
  const { directory, base, path } = await lab()
  await prepareOverlay(tool, { path, base })
  const before = await md5(base)
  const qmp = await runningWith(path, directory)
  const command = { 'command-line': 'qemu-io d "write -P 0x5a 0 1M"' }
  await qmp.execute('human-monitor-command', command, hangMs)
  await qmp.execute('quit', {}, hangMs)
  await qmp.closed
  expect(qemuImg('map', '--output=json', path)).toContain('"depth": 0')
  expect(await md5(base)).toBe(before)
})

testWith(imageTool, requireThing('mount', mountObstacle()))(
  'a disk that is full leaves nothing half-written',
  async () => {
    const { directory, base } = await lab()
    const small = join(directory, 'small')
    await mkdir(small)
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', small])
    onTestFinished(() => void execFileSync('umount', [small]))
    await expect(prepareOverlay(tool, { path: join(small, overlayName('hda')), base })).rejects.toMatchObject({
      status: 507,
      message: 'Creating hda_disk.qcow2: the disk is full; free some space first',
    })
    expect(await readdir(small)).toEqual([])
  },
)

imageTest('what a crash left of an overlay does not hinder the next one', async () => {
  const { base, path } = await lab()
  await writeFile(`${path}.creating`, 'half')
  await prepareOverlay(tool, { path, base })
  expect((await readdir(join(path, '..'))).sort()).toEqual(['base image,1.img', 'hda_disk.qcow2'])
})

imageTest('a refusal names the image without its directory', async () => {
  const { base, path } = await lab()
  await rm(base)
  await expect(prepareOverlay(tool, { path, base })).rejects.toThrow(/^The image base image,1\.img does not exist$/)
})

/** Marks a cluster beyond the end as used. */
async function leak(path: string): Promise<void> {
  const file = await open(path, 'r+')
  const { table, block, length } = await refcounts(file)
  expect(table).toBeGreaterThan(0)
  await file.write(Buffer.from([0, 1]), 0, 2, block + 2 * Math.ceil(length / 65536))
  await file.truncate((Math.ceil(length / 65536) + 1) * 65536)
  await file.close()
}

/** Forgets that the last cluster is used. */
async function breakRefcounts(path: string): Promise<void> {
  const file = await open(path, 'r+')
  const { block, length } = await refcounts(file)
  await file.write(Buffer.from([0, 0]), 0, 2, block + 2 * (Math.ceil(length / 65536) - 1))
  await file.close()
}

async function refcounts(file: Awaited<ReturnType<typeof open>>) {
  const eight = Buffer.alloc(8)
  const at = async (position: number) => {
    await file.read(eight, 0, 8, position)
    return Number(eight.readBigUInt64BE())
  }
  const table = await at(48)
  return { table, block: await at(table), length: (await file.stat()).size }
}

/** Mounting is a privilege that root of a container may not have. */
/** Why no file system can be mounted here, if so. */
function mountObstacle(): string | undefined {
  try {
    execFileSync('unshare', ['-m', 'mount', '-t', 'tmpfs', 'none', '/mnt'], { stdio: 'ignore' })
    return undefined
  } catch {
    return 'file systems cannot be mounted'
  }
}

imageTest('a tool that prints no facts of an image is refused with 409', async () => {
  const { base } = await lab()
  for (const printed of ['taken over', '[]', 'null', '{"format":1}']) {
    const lying = { run: async () => ({ error: null, stdout: printed, stderr: '' }) } as unknown as typeof tool
    await expect(inspectImage(lying, base)).rejects.toMatchObject({ status: 409 })
  }
})
