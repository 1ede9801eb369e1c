import { mkdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bodyOf } from '../../../support/bodies.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { kind, openImages } from '../../../support/images.ts'

const missing = (image: string, message = '') =>
  expect.objectContaining({
    status: 409,
    extra: { image, exception: 'ImageMissingError' },
    message: expect.stringContaining(message),
  })
const forbidden = expect.objectContaining({ status: 403 })

async function filled(...paths: readonly string[]): Promise<string> {
  const directory = await freshDirectory()
  for (const path of paths) {
    await mkdir(join(directory, path, '..'), { recursive: true })
    await writeFile(join(directory, path), path)
  }
  return directory
}

test('the list has our own images first, then other names of the additional directories, at any depth', async () => {
  const one = await filled('disk.qcow2', 'cisco/vios/vios.qcow2', 'router.bin', 'x.MD5SUM', '.hidden', '.d/deep')
  const two = await filled('vios.qcow2', 'two.qcow2')
  const { images, own } = await openImages({ additional: () => [one, '/no/such/directory', two] })
  await images.write(kind, 'disk.qcow2', bodyOf('ours'), { digests: [] })
  await images.write(kind, 'vendor/disk.qcow2', bodyOf('vendor'), { digests: [] })
  await mkdir(join(own, 'a/b'), { recursive: true })
  await writeFile(join(own, 'a/b/deeper'), 'one level is looked into')
  const listed = await images.list(kind)
  expect(listed.map(({ path }) => path)).toEqual([
    'disk.qcow2',
    'vendor/disk.qcow2',
    'cisco/vios/vios.qcow2',
    'two.qcow2',
  ])
  expect(listed[2]).toMatchObject({ filename: 'vios.qcow2', filesize: 21 })
  for (const { path } of listed) expect((await images.library.lookup(kind, path)).name).toBe(path)
})

test('a name is looked up in each directory in turn, with the directories that are part of it', async () => {
  const additional = await filled('cisco/vios/vios.qcow2', 'juniper/vios.qcow2', 'disk')
  const project = await filled('mine.qcow2', 'deep/own.qcow2')
  const { images, own } = await openImages({ additional: () => [additional] })
  await writeFile(join(own, 'disk'), '')
  const file = async (name: string) => (await images.library.lookup(kind, name, project)).file
  expect(await file('disk')).toBe(join(own, 'disk'))
  expect(await file('vios.qcow2')).toBe(join(additional, 'cisco/vios/vios.qcow2'))
  expect(await file('juniper/vios.qcow2')).toBe(join(additional, 'juniper/vios.qcow2'))
  expect(await file('vios/vios.qcow2')).toBe(join(additional, 'cisco/vios/vios.qcow2'))
  expect(await file('mine.qcow2')).toBe(join(project, 'mine.qcow2'))
  expect((await images.library.lookup(kind, 'own.qcow2', project)).name).toBe(join(project, 'deep/own.qcow2'))
  for (const name of ['ios/vios.qcow2', 'other/disk', '../machine-emulator/disk', 'a//disk', '', '.', 'C:disk', 'x\0'])
    await expect(images.library.lookup(kind, name, project)).rejects.toEqual(missing(name))
})

test('an absolute path is any file in local mode, else one inside the directories of images', async () => {
  const additional = await filled('deep/disk')
  const outside = await filled('disk')
  const { images, own, data } = await openImages({ additional: () => [additional] })
  await writeFile(join(own, 'disk'), '')
  await mkdir(`${own}-other`)
  await writeFile(join(`${own}-other`, 'disk'), '')
  const name = async (path: string) => (await images.library.lookup(kind, path)).name
  expect(await name(join(own, 'disk'))).toBe('disk')
  expect(await name(join(additional, 'deep/disk'))).toBe('deep/disk')
  expect(await name(join(outside, 'disk'))).toBe(join(outside, 'disk'))
  await expect(name(outside)).rejects.toEqual(missing(outside, 'does not exist'))
  const { images: remote } = await openImages({
    data,
    additional: () => [additional],
    isLocal: () => false,
  })
  expect((await remote.library.lookup(kind, join(own, 'disk'))).name).toBe('disk')
  expect((await remote.library.lookup(kind, join(additional, 'deep/disk'))).name).toBe('deep/disk')
  for (const path of [join(outside, 'disk'), join(`${own}-other`, 'disk'), join(own, '../../../etc/passwd')]) {
    await expect(remote.library.lookup(kind, path)).rejects.toEqual(missing(path))
  }
})

test('a symbolic link that leaves the images is for nodes in local mode only, and is never sent', async () => {
  const outside = await filled('disk')
  const { images, own, data } = await openImages()
  await symlink(join(outside, 'disk'), join(own, 'link'))
  await symlink(outside, join(own, 'vendor'))
  await symlink('nowhere', join(own, 'dangling'))
  await writeFile(join(own, 'real'), 'x')
  await symlink('real', join(own, 'within'))
  const paths = async (it = images) => (await it.list(kind)).map(({ path }) => path)
  expect(await paths()).toEqual(['link', 'real', 'within'])
  expect((await images.library.lookup(kind, 'link')).file).toBe(join(own, 'link'))
  const { images: remote } = await openImages({ data, isLocal: () => false })
  expect(await paths(remote)).toEqual(['real', 'within'])
  for (const name of ['link', 'vendor/disk']) {
    await expect(remote.library.lookup(kind, name)).rejects.toEqual(missing(name, 'local mode'))
    for (const it of [images, remote]) await expect(it.read(kind, name, {})).rejects.toEqual(forbidden)
  }
  await expect(images.read(kind, 'dangling', {})).rejects.toEqual(missing('dangling'))
  const { content } = await images.read(kind, 'within', {})
  expect(await new Response(content).text()).toBe('x')
})

test('checksums are stored over restarts, until the size or the time of a file changes', async () => {
  const { images, data, own } = await openImages()
  const file = join(own, 'disk')
  await writeFile(file, 'hello')
  await utimes(file, 1000, 1000)
  const hello = { md5sum: '5d41402abc4b2a76b9719d911017c592' }
  expect(await images.list(kind)).toMatchObject([hello])
  await images.close()
  const kept = await readFile(join(data, 'images/sums.json'), 'utf8')
  await writeFile(join(data, 'images/sums.json'), kept.replace(hello.md5sum, 'f'.repeat(32)))
  const { images: next } = await openImages({ data })
  expect(await next.list(kind)).toMatchObject([{ md5sum: 'f'.repeat(32) }])
  await utimes(file, 1001, 1001)
  expect(await next.list(kind)).toMatchObject([hello])
  await writeFile(file, 'jello')
  expect(await next.list(kind)).toMatchObject([{ md5sum: expect.not.stringContaining(hello.md5sum) }])
})

test('the checksum that an upload was verified with is not computed again', async () => {
  const { images, data } = await openImages()
  const digest = { algorithm: 'md5' as const, hex: '5d41402abc4b2a76b9719d911017c592' }
  await images.write(kind, 'disk', bodyOf('hello'), { digests: [digest] })
  await images.close()
  expect(await readFile(join(data, 'images/sums.json'), 'utf8')).toContain(digest.hex)
})
