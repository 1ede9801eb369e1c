import { execFileSync } from 'node:child_process'
import { open, readFile, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import {
  deleteSnapshot,
  findImageTool,
  prepareImage,
  prepareOverlay,
} from '../../../../runtime/node/drivers/qemu/disks.ts'
import { DirectTool } from '../../../../runtime/node/engine/images/direct-tool.ts'
import { runQemuImg } from '../../../../runtime/node/engine/images/qemu-img.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'
import { temporaryDirectory } from '../../drivers/qemu/qemu-process.ts'

const imageTool = requireProgram('qemu-img')
const imageTest = testWith(imageTool)
const tool = imageTool.skip ? '' : findImageTool('/nowhere/qemu-system-x86_64')
const qemuImg = (...args: readonly string[]) => execFileSync(tool, args, { encoding: 'utf8', stdio: 'pipe' })

/** An image whose header names any backing file, which is not opened. */
function basedOn(path: string, backing: string, format = 'qcow2'): string {
  qemuImg('create', '-q', '-f', 'qcow2', path, '1M')
  qemuImg('rebase', '-q', '-u', '-f', 'qcow2', '-F', format, '-b', backing, path)
  return path
}

/** A chain of images of which each is the backing file of the next; the last one. */
async function chainOf(length: number, at: (name: string) => string): Promise<string> {
  const nameOf = (index: number) => at(`${100 + index}.qcow2`)
  qemuImg('create', '-q', '-f', 'qcow2', nameOf(0), '1M')
  const image = await readFile(basedOn(nameOf(1), nameOf(0)))
  const place = image.indexOf(nameOf(0))
  for (let index = 2; index < length; index++) {
    image.write(nameOf(index - 1), place)
    await writeFile(nameOf(index), image)
  }
  return nameOf(length - 1)
}

type Make = (at: (name: string) => string) => Promise<string> | string

const hostile: Readonly<Record<string, readonly [make: Make, message: string]>> = {
  'is its own backing file': [(at) => basedOn(at('a.qcow2'), at('a.qcow2')), 'a.qcow2 is its own backing file'],
  'is its own backing file by a relative name': [
    (at) => basedOn(at('a.qcow2'), 'a.qcow2'),
    'a.qcow2 is its own backing file',
  ],
  'is its own backing file by a link': [
    async (at) => {
      await symlink(at('a.qcow2'), at('link.qcow2'))
      return basedOn(at('a.qcow2'), at('link.qcow2'))
    },
    'a.qcow2 is its own backing file',
  ],
  'is its own backing file by a protocol': [
    (at) => basedOn(at('a.qcow2'), `file:${at('a.qcow2')}`),
    'a.qcow2 is its own backing file',
  ],
  'is its own backing file by options of a driver': [
    (at) => basedOn(at('a.qcow2'), `json:{"driver":"qcow2","file":{"driver":"file","filename":"${at('a.qcow2')}"}}`),
    'is its own backing file',
  ],
  'is one of two in a cycle': [
    (at) => {
      basedOn(at('b.qcow2'), at('a.qcow2'))
      return basedOn(at('a.qcow2'), at('b.qcow2'))
    },
    'form a cycle',
  ],
  'has too many images below it': [(at) => chainOf(40, at), 'has too many backing files'],
  'is based on a FIFO': [
    (at) => {
      execFileSync('mkfifo', [at('fifo')])
      return basedOn(at('a.qcow2'), at('fifo'), 'raw')
    },
    'The image fifo is not a file',
  ],
  'is based on a character device': [
    (at) => basedOn(at('a.qcow2'), '/dev/zero', 'raw'),
    'The image zero is not a file',
  ],
  'is based on a file of the kernel': [
    (at) => basedOn(at('a.qcow2'), '/proc/kcore', 'raw'),
    'based on /proc/kcore, which is not a place for disks',
  ],
  'is based on a server that is not there': [(at) => basedOn(at('a.qcow2'), 'nbd:unix:/nowhere', 'raw'), 'Reading '],
  'has its data in a FIFO': [
    async (at) => {
      const image = at('a.qcow2')
      qemuImg('create', '-q', '-f', 'qcow2', '-o', `data_file=${at('data.raw')},data_file_raw=on`, image, '1M')
      execFileSync('rm', [at('data.raw')])
      execFileSync('mkfifo', [at('data.raw')])
      return image
    },
    'The image data.raw is not a file',
  ],
  'has a header that is cut off': [
    async (at) => {
      const image = await chainOf(2, at)
      await truncate(image, 60)
      return image
    },
    'Reading 101.qcow2: ',
  ],
  'claims a size beyond all disks': [
    async (at) => {
      const image = await chainOf(2, at)
      await patch(image, 24, Buffer.from('7fffffffffffffff', 'hex'))
      return image
    },
    'Reading 101.qcow2: ',
  ],
  'claims a table beyond all memory': [
    async (at) => {
      const image = await chainOf(2, at)
      await patch(image, 36, Buffer.from('7fffffff', 'hex'))
      return image
    },
    'Reading 101.qcow2: ',
  ],
}

async function patch(path: string, at: number, bytes: Buffer): Promise<void> {
  await using file = await open(path, 'r+')
  await file.write(bytes, 0, bytes.length, at)
}

imageTest.for(Object.entries(hostile))('an image that %s is refused with 409', async ([, [make, message]]) => {
  const directory = await temporaryDirectory()
  const image = await make((name) => join(directory, name))
  const refused = { status: 409, message: expect.stringContaining(message) }
  await expect(prepareOverlay(tool, { path: join(directory, 'overlay.qcow2'), base: image })).rejects.toMatchObject(
    refused,
  )
})

imageTest('an image that a machine writes to is refused as well when it is its own backing file', async () => {
  const image = join(await temporaryDirectory(), 'a.qcow2')
  const refused = { status: 409, message: expect.stringContaining('its own backing file') }
  await expect(prepareImage(tool, basedOn(image, image))).rejects.toMatchObject(refused)
})

imageTest('a chain of images that ends is used, also one whose files are shown by links', async () => {
  const directory = await temporaryDirectory()
  const image = await chainOf(5, (name) => join(directory, name))
  await symlink(image, join(directory, 'link.qcow2'))
  const base = join(directory, 'link.qcow2')
  expect(await prepareOverlay(tool, { path: join(directory, 'overlay.qcow2'), base })).toMatchObject({ warnings: [] })
})

imageTest('each file of an image is shown to the rules once, and none is read before', async () => {
  const directory = await temporaryDirectory()
  const at = (name: string) => join(directory, name)
  const size = 128
  // Two descriptors that name each other in all their extents.
  const extents = (other: string) => Array.from({ length: 20 }, () => `RW ${size} FLAT "${other}" 0`).join('\n')
  for (const [name, other] of [
    ['a.vmdk', 'b.vmdk'],
    ['b.vmdk', 'a.vmdk'],
  ] as const) {
    const head = '# Disk DescriptorFile\nversion=1\nCID=fffffffe\nparentCID=ffffffff\ncreateType="twoGbMaxExtentFlat"\n'
    await writeFile(at(name), `${head}${extents(other)}\nddb.virtualHWVersion = "4"\n`)
    await truncate(at(name), size * 512)
  }
  const shown: string[] = []
  const allow = async (file: string) => void shown.push(file)
  await prepareImage(tool, at('a.vmdk'), { allow }).catch(() => {})
  expect(shown.length).toBeLessThan(50)
})

imageTest('a saved state is not searched in an image that is its own backing file', async () => {
  const path = join(await temporaryDirectory(), 'a.qcow2')
  qemuImg('create', '-q', '-f', 'qcow2', path, '1M')
  qemuImg('snapshot', '-c', 'state', path)
  qemuImg('rebase', '-q', '-u', '-f', 'qcow2', '-F', 'qcow2', '-b', path, path)
  const deleted = deleteSnapshot(tool, { path, format: 'qcow2' }, 'state')
  await expect(deleted).rejects.toMatchObject({ status: 409, message: expect.stringContaining('its own backing file') })
})

imageTest('the tool cannot take more memory than its limit', async () => {
  const { stdout } = await new DirectTool('/bin/sh').run(['-c', 'ulimit -d'], { ms: 10_000, memoryKb: 12_345 })
  expect(stdout.trim()).toBe('12345')
  // The real tool with an image that would take all memory.
  const path = join(await temporaryDirectory(), 'a.qcow2')
  basedOn(path, path)
  const limited = new DirectTool(tool)
  const end = await limited.run(['check', path], { ms: 60_000, memoryKb: 64 << 10 })
  expect(end.error).not.toBeNull()
  expect(end.error?.killed).toBeUndefined()
})

imageTest('an aborted signal ends a command, and the next command is not begun', async () => {
  const path = join(await temporaryDirectory(), 'a.qcow2')
  basedOn(path, path)
  const over = new AbortController()
  const checking = runQemuImg(new DirectTool(tool, over.signal), ['check', path])
  over.abort()
  const stopped = { status: 409, message: 'The node was stopped while its disks were prepared' }
  await expect(checking).rejects.toMatchObject(stopped)
  await expect(runQemuImg(new DirectTool(tool, over.signal), ['info', path])).rejects.toMatchObject(stopped)
})
