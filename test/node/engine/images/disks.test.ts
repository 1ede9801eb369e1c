import { execFileSync } from 'node:child_process'
import { chmod, link, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { DiskTools } from '../../../../runtime/node/engine/images/disk-tools.ts'
import type { DiskCreate } from '../../../../src/model/image.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { kind, openImages } from '../../../support/images.ts'
import { requireProgram } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const imageTool = requireProgram('qemu-img')
const status = (code: number, message = '') =>
  expect.objectContaining({ status: code, message: expect.stringContaining(message) })
interface Info {
  readonly format: string
  readonly 'virtual-size': number
  readonly 'cluster-size'?: number
  readonly 'format-specific'?: { data: Record<string, unknown> }
}
const info = (file: string) =>
  JSON.parse(execFileSync('qemu-img', ['info', '--output=json', file], { encoding: 'utf8' })) as Info

/** A directory with a qemu-img that is this script. */
async function scripted(script: string): Promise<string> {
  const directory = await freshDirectory()
  await writeFile(join(directory, 'qemu-img'), `#!/bin/sh\n${script}\n`)
  await chmod(join(directory, 'qemu-img'), 0o755)
  return directory
}

const everyOption: readonly [DiskCreate['format'], Record<string, string | number>][] = [
  ['qcow2', {}],
  ['qcow2', { preallocation: 'metadata', cluster_size: 131072, refcount_bits: 8, lazy_refcounts: 'on' }],
  ['qcow', {}],
  ['raw', {}],
  ['raw', { preallocation: 'full' }],
  ['vmdk', {}],
  ['vmdk', { subformat: 'monolithicSparse', zeroed_grain: 'on', adapter_type: 'lsilogic' }],
  ['vmdk', { subformat: 'monolithicFlat', adapter_type: 'buslogic' }],
  ['vmdk', { subformat: 'twoGbMaxExtentSparse' }],
  ['vmdk', { subformat: 'twoGbMaxExtentFlat' }],
  ['vmdk', { subformat: 'streamOptimized' }],
  ['vdi', {}],
  ['vdi', { static: 'on' }],
  ['vpc', {}],
  ['vpc', { subformat: 'fixed' }],
  ['qed', { cluster_size: 4096, table_size: 2 }],
  ['parallels', { cluster_size: 65536 }],
]

testWith(imageTool).for(everyOption)('a disk is made and can be read: %s %o', async ([format, options]) => {
  const { images, own } = await openImages()
  const path = `vendor/disk of ${format}, new`
  await images.createDisk(kind, { path, format, size: 10, ...options } as DiskCreate)
  const found = info(join(own, path))
  expect(found.format === 'raw' ? 'raw' : found.format).toBe(options.subformat === 'fixed' ? 'raw' : format)
  expect(found['virtual-size']).toBeGreaterThanOrEqual(10 * 2 ** 20)
  if (typeof options.cluster_size === 'number' && format !== 'parallels')
    expect(found['cluster-size']).toBe(options.cluster_size)
  expect((await readdir(join(own, 'vendor'))).filter((name) => name.startsWith('.'))).toEqual([])
  const before = await readdir(join(own, 'vendor'))
  await expect(images.createDisk(kind, { path, format, size: 1 } as DiskCreate)).rejects.toEqual(status(409, 'already'))
  expect(await readdir(join(own, 'vendor'))).toEqual(before)
})

testWith(imageTool)('null is the default of an option', async () => {
  const { images, own } = await openImages()
  await images.createDisk(kind, { qemu_img: null, path: 'disk', format: 'qcow2', size: 1, cluster_size: null })
  expect(info(join(own, 'disk'))['cluster-size']).toBe(65536)
})

testWith(imageTool)('a disk of several files replaces none of those that are there', async () => {
  const { images, own } = await openImages()
  await writeFile(join(own, 'disk-flat.vmdk'), 'mine')
  const input = { path: 'disk.vmdk', format: 'vmdk', subformat: 'monolithicFlat', size: 1 } as const
  await expect(images.createDisk(kind, input)).rejects.toEqual(status(409))
  expect(await readdir(own)).toEqual(['disk-flat.vmdk'])
  expect(await readFile(join(own, 'disk-flat.vmdk'), 'utf8')).toBe('mine')
})

testWith(imageTool)('what the tool refuses is reported, and leaves nothing', async () => {
  const { images, own } = await openImages()
  const input = { path: 'disk', format: 'qcow2', size: 2 ** 26, cluster_size: 512 } as const
  await expect(images.createDisk(kind, input)).rejects.toEqual(status(409, 'qemu-img: disk: '))
  expect(await readdir(own)).toEqual([])
})

testWith(imageTool)('a disk grows by what is asked, and a format that cannot grow says so', async () => {
  const { images, own } = await openImages()
  for (const format of ['qcow2', 'raw', 'qed'] as const) {
    await images.createDisk(kind, { path: format, format, size: 10 })
    await images.extendDisk(kind, { path: format, extend: 6 })
    expect(info(join(own, format))).toMatchObject({ format, 'virtual-size': 16 * 2 ** 20 })
  }
  await images.createDisk(kind, { path: 'vdi', format: 'vdi', size: 10 })
  await expect(images.extendDisk(kind, { path: 'vdi', extend: 6 })).rejects.toEqual(status(409, 'not support resize'))
  await expect(images.extendDisk(kind, { path: 'none', extend: 6 })).rejects.toMatchObject({ extra: { image: 'none' } })
})

testWith(imageTool)(
  'outside local mode there are no absolute paths, and no image that names another file',
  async () => {
    const { images, own } = await openImages({ isLocal: () => false })
    const secret = join(await freshDirectory(), 'secret')
    await writeFile(secret, 'x'.repeat(512))
    execFileSync('qemu-img', ['create', '-q', '-f', 'qcow2', '-b', secret, '-F', 'raw', join(own, 'overlay')])
    await symlink(secret, join(own, 'link'))
    const before = await stat(join(own, 'overlay'))
    await expect(images.extendDisk(kind, { path: 'overlay', extend: 1 })).rejects.toEqual(status(409, 'local mode'))
    expect((await stat(join(own, 'overlay'))).mtimeMs).toBe(before.mtimeMs)
    await expect(images.extendDisk(kind, { path: 'link', extend: 1 })).rejects.toEqual(status(403))
    for (const path of [secret, '/etc/new', join(own, 'new'), '../new', 'a/../../new', '.new']) {
      await expect(images.createDisk(kind, { path, format: 'raw', size: 1 })).rejects.toEqual(status(403))
      await expect(images.extendDisk(kind, { path, extend: 1 })).rejects.toEqual(status(403))
    }
  },
)

testWith(imageTool)('in local mode a disk is made and extended anywhere, but not among our records', async () => {
  const { images, data } = await openImages()
  const elsewhere = join(await freshDirectory(), 'disk')
  await images.createDisk(kind, { path: elsewhere, format: 'raw', size: 1 })
  await images.extendDisk(kind, { path: elsewhere, extend: 1 })
  expect((await stat(elsewhere)).size).toBe(2 * 2 ** 20)
  expect(await readdir(dirname(elsewhere))).toEqual(['disk'])
  await mkdir(join(data, 'run'))
  for (const path of [join(data, 'run/disk'), join(data, 'disk'), '/proc/disk', '/dev/shm/disk'])
    await expect(images.createDisk(kind, { path, format: 'raw', size: 1 })).rejects.toEqual(status(403))
  await expect(images.createDisk(kind, { path: '/no/such/disk', format: 'raw', size: 1 })).rejects.toEqual(status(409))
})

testWith(imageTool)('what is allocated at once has to fit', async () => {
  const { images, own } = await openImages()
  const full: DiskCreate[] = [
    { path: 'disk', format: 'raw', preallocation: 'full', size: 2 ** 26 },
    { path: 'disk', format: 'qcow2', preallocation: 'falloc', size: 2 ** 26 },
    { path: 'disk', format: 'vdi', static: 'on', size: 2 ** 26 },
    { path: 'disk', format: 'vpc', subformat: 'fixed', size: 2 ** 26 },
    { path: 'disk', format: 'qcow2', preallocation: 'metadata', cluster_size: 512, size: 2 ** 26 },
  ]
  for (const input of full) await expect(images.createDisk(kind, input)).rejects.toEqual(status(507))
  expect(await readdir(own)).toEqual([])
})

test('a tool is listed once, even when PATH has it several times; one without a version is not listed', async () => {
  const good = await scripted('echo "qemu-img version 9.9.1 (Test)"')
  const bad = await scripted('exit 1')
  const again = await freshDirectory()
  await symlink(join(good, 'qemu-img'), join(again, 'qemu-img'))
  const tools = new DiskTools(() => [bad, good, again, '', 'relative'].join(':'))
  const path = join(good, 'qemu-img')
  expect(await tools.list()).toEqual([{ path, version: '9.9.1' }])
  for (const wanted of [undefined, null, 'qemu-img', path, join(again, 'qemu-img')])
    expect(await tools.choose(wanted)).toBe(path)
  await link(path, join(again, 'other'))
  for (const wanted of ['/bin/sh', 'sh', join(bad, 'qemu-img'), join(again, 'other'), 'relative/qemu-img', ''])
    await expect(tools.choose(wanted)).rejects.toEqual(status(409))
  await expect(new DiskTools(() => bad).choose(undefined)).rejects.toEqual(status(409, 'apt-get install'))
})

test('the tool gets exactly the options, in order, and an incomplete file is removed when it fails', async () => {
  const directory = await scripted(
    '[ "$1" = --version ] && echo "qemu-img version 1.0" && exit\nfor it; do file=$size size=$it; done\necho half > "$file"; echo "$@" | sed "s|/[^ ]*/||" >&2; exit 1',
  )
  const { images, own } = await openImages({ tools: new DiskTools(() => `${directory}:/bin:/usr/bin`) })
  const input = { path: 'a disk', format: 'qcow2', size: 5, preallocation: 'off', cluster_size: 4096 } as const
  await expect(images.createDisk(kind, { ...input, qemu_img: join(directory, 'qemu-img') })).rejects.toMatchObject({
    status: 409,
    message: 'create -q -f qcow2 -o cluster_size=4096 -o preallocation=off a disk 5M',
  })
  expect(await readdir(own)).toEqual([])
})

test('the end of the service ends a running tool, and removes its file', async () => {
  const directory = await scripted(
    '[ "$1" = --version ] && echo "qemu-img version 1.0" && exit\nfor it; do file=$size size=$it; done\necho half > "$file"; exec sleep 60',
  )
  const { images, own } = await openImages({ tools: new DiskTools(() => `${directory}:/bin:/usr/bin`) })
  const making = images.createDisk(kind, { path: 'disk', format: 'raw', size: 1 })
  await expect.poll(() => readdir(own)).toHaveLength(1)
  await images.close()
  await expect(making).rejects.toEqual(status(409))
  expect(await readdir(own)).toEqual([])
})
