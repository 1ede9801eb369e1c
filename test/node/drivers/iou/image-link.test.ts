import { lstat, mkdir, readdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { linkImage, unlinkImage } from '../../../../runtime/node/drivers/iou/image-link.ts'
import { freshDirectory } from '../../../support/directory.ts'

const image = '/images/i86bi.bin'

test('the symbolic link has the name of the image, and can be removed', async () => {
  const directory = await freshDirectory()
  const link = await linkImage(directory, image, '')
  expect(link).toEqual({ path: join(directory, 'i86bi.bin'), name: 'i86bi.bin' })
  expect(await readlink(link.path)).toBe(image)
  await unlinkImage(directory, link.name)
  await unlinkImage(directory, link.name)
  await unlinkImage(directory, '')
  expect(await readdir(directory)).toEqual([])
})

test('a link that a killed service left is replaced, whatever its target', async () => {
  const directory = await freshDirectory()
  await linkImage(directory, '/images/old.bin', '')
  await linkImage(directory, image, 'old.bin')
  expect(await readdir(directory)).toEqual(['i86bi.bin'])
  // Its name was not written down any more.
  expect(await linkImage(directory, image, '')).toMatchObject({ name: 'i86bi.bin' })
})

test('another file of that name stays, and the link gets another name', async () => {
  const directory = await freshDirectory()
  await writeFile(join(directory, 'i86bi.bin'), 'mine')
  await symlink('/somewhere/else', join(directory, 'image-1-i86bi.bin'))
  await mkdir(join(directory, 'image-2-i86bi.bin'))
  const { name } = await linkImage(directory, image, 'i86bi.bin')
  expect(name).toBe('image-3-i86bi.bin')
  await unlinkImage(directory, 'i86bi.bin')
  expect(await readFile(join(directory, 'i86bi.bin'), 'utf8')).toBe('mine')
  expect(await readlink(join(directory, 'image-1-i86bi.bin'))).toBe('/somewhere/else')
})

test('an image in the directory itself is started without a link', async () => {
  const directory = await freshDirectory()
  const file = join(directory, 'i86bi.bin')
  await writeFile(file, 'the image')
  expect(await linkImage(directory, file, '')).toEqual({ path: file, name: '' })
  expect((await lstat(file)).isFile()).toBe(true)
})

test('when every name is in use there is a conflict', async () => {
  const directory = await freshDirectory()
  const names = Array.from({ length: 99 }, (_, index) => `image-${index + 1}-i86bi.bin`)
  for (const name of ['i86bi.bin', ...names]) await writeFile(join(directory, name), '')
  await expect(linkImage(directory, image, '')).rejects.toMatchObject({ status: 409 })
})
