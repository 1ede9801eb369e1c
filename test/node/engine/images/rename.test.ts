import { mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { ImageUser } from '../../../../runtime/node/engine/images/users.ts'
import { Checksums } from '../../../../runtime/node/engine/storage/checksums.ts'
import { bodyOf, slowBody, textOf } from '../../../support/bodies.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { kind, openImages } from '../../../support/images.ts'

const none = { digests: [] }
const project_id = '11111111-2222-4333-8444-555555555555'
const refusal = (status: number, message: string) =>
  expect.objectContaining({ status, message: expect.stringContaining(message) })
/** Checksums that note the files whose sums they make. */
class NotedChecksums extends Checksums {
  readonly made: string[] = []
  override hashes(...[file, algorithms]: Parameters<Checksums['hashes']>): ReturnType<Checksums['hashes']> {
    this.made.push(file)
    return super.hashes(file, algorithms)
  }
}

test('a renamed image keeps its file, and its sums are not made again, also by the next service', async () => {
  const checksums = new NotedChecksums()
  onTestFinished(() => checksums.close())
  const { images, own, data } = await openImages({ checksums })
  const digest = { algorithm: 'md5' as const, hex: '5d41402abc4b2a76b9719d911017c592' }
  await images.write(kind, 'old.img', bodyOf('hello'), { digests: [digest] })
  const before = await stat(join(own, 'old.img'))
  const [listed] = await images.list(kind)
  const made = checksums.made.length
  await images.rename(kind, 'old.img', 'new.img')
  expect(await readdir(own)).toEqual(['new.img'])
  expect(await stat(join(own, 'new.img'))).toMatchObject({ ino: before.ino, nlink: 1, mtimeMs: before.mtimeMs })
  expect(await images.list(kind)).toEqual([{ ...listed, filename: 'new.img', path: 'new.img' }])
  await images.close()
  const later = await openImages({ checksums, data })
  expect(await later.images.list(kind)).toMatchObject([{ path: 'new.img', md5sum: digest.hex }])
  expect(checksums.made.length).toBe(made)
})

test('of several renamings to one name one is done, and no image is lost', async () => {
  const { images } = await openImages()
  const names = Array.from({ length: 10 }, (_, index) => `disk${index}.img`)
  for (const name of names) await images.write(kind, name, bodyOf(name), none)
  const results = await Promise.allSettled(names.map((name) => images.rename(kind, name, 'one.img')))
  expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
  for (const result of results)
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ status: 409, code: 'name-taken' })
  expect(await images.list(kind)).toHaveLength(names.length)
})

test('an upload that ends while its old image is renamed is not lost', async () => {
  const { images, own } = await openImages()
  for (let round = 0; round < 80; round++) {
    await images.write(kind, 'disk.img', bodyOf('old'), none)
    const { stream, wanted, more } = slowBody('the new ')
    const writing = images.write(kind, 'disk.img', stream, none)
    await wanted
    more('one')
    // So that each step of the one meets each step of the other.
    for (let turn = 0; turn < round % 40; turn++) await new Promise(setImmediate)
    await Promise.all([writing, images.rename(kind, 'disk.img', 'before.img')])
    // It was renamed before the upload ended, or afterwards.
    const all = await Promise.all((await readdir(own)).map((name) => readFile(join(own, name), 'utf8')))
    expect(all).toContain('the new one')
    for (const name of await readdir(own)) await images.remove(kind, name)
  }
})

test('no image gets a name by which an upload has begun, whole or in parts', async () => {
  const { images, own } = await openImages()
  await images.write(kind, 'old.img', bodyOf('old'), none)
  const rename = () => images.rename(kind, 'old.img', 'new.img')
  const begun = refusal(409, 'path: an unfinished upload of "new.img" would replace the image')
  const { stream, wanted, fail } = slowBody('half')
  const writing = images.write(kind, 'new.img', stream, none)
  await wanted
  await expect(rename()).rejects.toEqual(begun)
  fail()
  await expect(writing).rejects.toThrow()
  const part = (first: number, text: string) =>
    images.write(kind, 'new.img', bodyOf(text), {
      digests: [],
      part: { first, last: first + text.length - 1, total: 8 },
    })
  await part(0, 'half')
  await expect(rename()).rejects.toEqual(begun)
  // One of a longer name is another one.
  await images.rename(kind, 'old.img', 'new.img.old')
  await part(4, 'half')
  expect((await readdir(own)).sort()).toEqual(['new.img', 'new.img.old'])
})

test('an image gets no name by which nodes find another one', async () => {
  const additional = await freshDirectory()
  await writeFile(join(additional, 'shared.img'), 'shared')
  const project = await freshDirectory()
  await writeFile(join(project, 'mine.img'), 'mine')
  const nodes: ImageUser[] = []
  const { images } = await openImages({ additional: () => [additional], nodes: () => nodes })
  for (const name of ['a.img', 'vendor/b.img', 'other/c.img']) await images.write(kind, name, bodyOf(name), none)
  const user = { kind, name: 'R1', project_id, projectPath: project, images: ['mine.img', 'wanted.img'] }
  nodes.push(user)
  for (const [from, to, message] of [
    ['a.img', 'shared.img', 'an image "shared.img" already exists'],
    ['a.img', 'b.img', 'an image "b.img" already exists, "vendor/b.img"'],
    ['vendor/b.img', 'vendor/c.img', 'an image "vendor/c.img" already exists, "other/c.img"'],
    ['vendor/b.img', 'vendor/shared.img', 'an image "vendor/shared.img" already exists, "shared.img"'],
    ['a.img', 'mine.img', 'the node R1 has an image "mine.img" among the files of its project'],
  ] as const)
    await expect(images.rename(kind, from, to), to).rejects.toEqual(refusal(409, message))
  // By their exact names both are found.
  await images.rename(kind, 'vendor/b.img', 'vendor/a.img')
  expect(await textOf((await images.read(kind, 'a.img', {})).content)).toBe('a.img')
  // A node may lack the image that gets its name.
  await images.rename(kind, 'a.img', 'wanted.img')
  await expect(images.rename(kind, 'wanted.img', 'a.img')).rejects.toEqual(refusal(409, 'is needed by the node R1'))
})

test('a part of a disk in several files keeps its name and stays while its descriptor is there', async () => {
  const { images, own } = await openImages()
  const descriptor = [
    '# Disk DescriptorFile',
    'version=1',
    'createType="twoGbMaxExtentSparse"',
    '# Extent description',
    'RW 4192256 SPARSE "disk-s001.vmdk"',
    'RW 2048 FLAT "flat disk.vmdk" 0',
    'ddb.adapterType = "ide"',
    '',
  ].join('\n')
  const parts = ['disk-s001.vmdk', 'flat disk.vmdk']
  for (const name of [...parts, 'disk-s002.vmdk']) await images.write(kind, name, bodyOf(name), none)
  await images.write(kind, 'disk.vmdk', bodyOf(descriptor), none)
  for (const name of parts) {
    const needed = refusal(409, `${JSON.stringify(name)} is needed by the image disk.vmdk`)
    await expect(images.rename(kind, name, 'other.vmdk'), name).rejects.toEqual(needed)
    await expect(images.remove(kind, name), name).rejects.toEqual(needed)
  }
  await images.remove(kind, 'disk-s002.vmdk')
  await images.rename(kind, 'disk.vmdk', 'renamed.vmdk')
  await expect(images.remove(kind, parts[0] ?? '')).rejects.toEqual(refusal(409, 'by the image renamed.vmdk'))
  await images.remove(kind, 'renamed.vmdk')
  for (const name of parts) await images.remove(kind, name)
  expect(await readdir(own)).toEqual([])
})

test('a link among the images gets another name, and a directory or a file elsewhere gets none', async () => {
  const elsewhere = await freshDirectory()
  await writeFile(join(elsewhere, 'disk.img'), 'disk')
  await writeFile(join(elsewhere, 'own.img'), 'own')
  const { images, own } = await openImages({ additional: () => [elsewhere] })
  await symlink(join(elsewhere, 'disk.img'), join(own, 'link.img'))
  await mkdir(join(own, 'vendor'))
  await images.rename(kind, 'link.img', 'other.img')
  expect(await readlink(join(own, 'other.img'))).toBe(join(elsewhere, 'disk.img'))
  await mkdir(join(elsewhere, 'a/b'), { recursive: true })
  await writeFile(join(elsewhere, 'a/b/deep.img'), 'deep')
  for (const name of ['own.img', 'a/b/deep.img']) {
    const refused = (verb: string) =>
      refusal(
        403,
        `${JSON.stringify(name)} is not in the directory of uploads under this name; images elsewhere are ${verb} there`,
      )
    await expect(images.rename(kind, name, 'new.img')).rejects.toEqual(refused('renamed'))
    await expect(images.remove(kind, name)).rejects.toEqual(refused('deleted'))
  }
  await expect(images.remove(kind, 'a/b/none.img')).rejects.toEqual(refusal(400, 'at most 1 directory'))
  await expect(images.rename(kind, 'vendor', 'maker')).rejects.toEqual(refusal(404, 'there is no "vendor"'))
  await expect(images.rename(kind, 'other.img', 'vendor')).rejects.toEqual(
    refusal(409, 'a file or directory "vendor" already'),
  )
})

test('outside local mode only an administrator renames programs', async () => {
  let isAdmin = true
  const { images } = await openImages({ isLocal: () => false, mayExecute: () => isAdmin })
  const header = Buffer.alloc(64)
  Buffer.from('7f454c46010101', 'hex').copy(header)
  await images.write('iou', 'l3.bin', new Blob([header]).stream(), none)
  isAdmin = false
  await expect(images.rename('iou', 'l3.bin', 'l2.bin')).rejects.toEqual(
    refusal(403, 'only an administrator may rename it'),
  )
  isAdmin = true
  await expect(images.rename('iou', 'l3.bin', 'l3.img')).rejects.toEqual(refusal(400, 'not be an image of iou nodes'))
  await images.rename('iou', 'l3.bin', 'l2.bin')
  const file = (await images.library.lookup('iou', 'l2.bin')).file
  expect(await readFile(await images.executables.admit(file))).toEqual(header)
})
