import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { bodyOf, slowBody } from '../../../support/bodies.ts'
import { freshDirectory } from '../../../support/directory.ts'
import { kind, openImages } from '../../../support/images.ts'

const status = (code: number, message = '') =>
  expect.objectContaining({ status: code, message: expect.stringContaining(message) })
const none = { digests: [] }
const part = (first: number, last: number, total: number) => ({ digests: [], part: { first, last, total } })
const md5 = (text: string) => ({ algorithm: 'md5' as const, hex: createHash('md5').update(text).digest('hex') })

test('a reader sees the old image until the new one is complete', async () => {
  const { images, own } = await openImages()
  await images.write(kind, 'disk', bodyOf('old'), none)
  const { stream, wanted, more } = slowBody('the new ')
  const writing = images.write(kind, 'disk', stream, none)
  await wanted
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('old')
  expect(await images.list(kind)).toMatchObject([{ path: 'disk', filesize: 3 }])
  more('one')
  expect(await writing).toEqual({ received: 11, done: true })
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('the new one')
  expect(await readdir(own)).toEqual(['disk'])
})

test('a whole upload of unknown length that breaks off or stalls leaves nothing', async () => {
  const { images, own } = await openImages({ bodyTimeoutMs: 100 })
  const { stream, wanted, fail } = slowBody('half')
  const writing = images.write(kind, 'disk', stream, none)
  await wanted
  fail()
  await expect(writing).rejects.toEqual(status(400, 'nothing was stored'))
  await expect(images.write(kind, 'disk', slowBody('half').stream, none)).rejects.toEqual(status(408))
  expect(await readdir(own)).toEqual([])
})

test('a whole upload that breaks off is continued as a part, with its digests', async () => {
  const { images, own } = await openImages()
  const broken = async (digests: { algorithm: 'md5'; hex: string }[]) => {
    const { stream, wanted, fail } = slowBody('half')
    const writing = images.write(kind, 'disk', stream, { digests, size: 8 })
    await wanted
    fail()
    await expect(writing).rejects.toEqual(
      status(400, 'the received bytes are kept for a day: ask for their number with Content-Range: bytes */8'),
    )
  }
  await broken([md5('halfhalf')])
  expect(await images.list(kind)).toEqual([])
  expect(await images.progress(kind, 'disk', 8)).toEqual({ received: 4, done: false })
  await expect(images.write(kind, 'disk', bodyOf('HALF'), part(4, 7, 8))).rejects.toEqual(status(400, 'md5: expected'))
  expect(await images.progress(kind, 'disk', 8)).toEqual({ received: 0, done: false })
  await broken([md5('halfhalf')])
  expect(await images.write(kind, 'disk', bodyOf('half'), part(4, 7, 8))).toEqual({ received: 8, done: true })
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('halfhalf')
  expect(await readdir(own)).toEqual(['disk'])
})

test('an interrupted whole upload does not replace an upload in parts that has more bytes', async () => {
  const { images, own } = await openImages()
  await images.write(kind, 'disk', bodyOf('abcdef'), part(0, 7, 8))
  const { stream, wanted, fail } = slowBody('zz')
  const writing = images.write(kind, 'disk', stream, { digests: [], size: 8 })
  await wanted
  fail()
  await expect(writing).rejects.toEqual(status(400))
  expect(await images.write(kind, 'disk', bodyOf('gh'), part(6, 7, 8))).toEqual({ received: 8, done: true })
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('abcdefgh')
})

test('parts of an upload have one digest of each algorithm, and repetitions take no memory', async () => {
  const { images, own } = await openImages()
  const named = (first: number, of: string) => ({ ...part(first, 7, 8), digests: [md5(of)] })
  await images.write(kind, 'disk', bodyOf('half'), named(0, 'halfhalf'))
  await images.write(kind, 'disk', bodyOf('f'), named(3, 'halfhalf'))
  const other = images.write(kind, 'disk', bodyOf('half'), named(4, 'other'))
  await expect(other).rejects.toEqual(status(400, 'an earlier part named'))
  expect(await images.write(kind, 'disk', bodyOf('half'), named(4, 'halfhalf'))).toMatchObject({ done: true })
  expect(await readdir(own)).toEqual(['disk'])
})

test('a wrong upload that did not break off leaves no part', async () => {
  const { images, own } = await openImages()
  const wrong = images.write(kind, 'disk', bodyOf('halfhalf'), { digests: [md5('other')], size: 8 })
  await expect(wrong).rejects.toEqual(status(400, 'md5: expected'))
  expect(await readdir(own)).toEqual([])
})

test('the received bytes of a part that breaks off are stored, and the upload continues after them', async () => {
  const { images, own } = await openImages()
  const { stream, wanted, fail } = slowBody('half')
  const writing = images.write(kind, 'disk', stream, part(0, 9, 10))
  await wanted
  fail()
  await expect(writing).rejects.toEqual(status(400, 'the received bytes are kept'))
  expect(await images.progress(kind, 'disk', 10)).toEqual({ received: 4, done: false })
  expect(await images.list(kind)).toEqual([])
  // From further back than what is there, as a client may count otherwise.
  expect(await images.write(kind, 'disk', bodyOf('lf and'), part(2, 9, 10))).toEqual({ received: 8, done: false })
  await expect(images.write(kind, 'disk', bodyOf('x'), part(9, 9, 10))).rejects.toMatchObject({
    status: 409,
    headers: { Range: 'bytes=0-7' },
  })
  expect(await images.write(kind, 'disk', bodyOf('..'), part(8, 9, 10))).toEqual({ received: 10, done: true })
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('half and..')
  expect(await readdir(own)).toEqual(['disk'])
})

test('a later upload of a part takes over from one that hangs', async () => {
  const { images, own } = await openImages()
  const { stream, wanted } = slowBody('ha')
  const hanging = images.write(kind, 'disk', stream, part(0, 3, 4))
  await wanted
  const second = images.write(kind, 'disk', bodyOf('lf'), part(2, 3, 4))
  await expect(hanging).rejects.toEqual(status(409, 'replaced this one'))
  expect(await second).toEqual({ received: 4, done: true })
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('half')
})

test('a body that is longer than its part is refused', async () => {
  const { images, own } = await openImages()
  await images.write(kind, 'disk', bodyOf('ab'), part(0, 1, 6))
  await expect(images.write(kind, 'disk', bodyOf('cdef'), part(2, 3, 6))).rejects.toEqual(status(400))
  expect((await images.progress(kind, 'disk', 6)).received).toBe(2)
  expect(await readdir(own)).toHaveLength(1)
})

test('a wrong digest removes the stored parts, also one that came with an early part', async () => {
  const { images, own } = await openImages()
  await images.write(kind, 'disk', bodyOf('old'), none)
  await expect(images.write(kind, 'disk', bodyOf('new'), { digests: [md5('other')] })).rejects.toEqual(
    status(400, 'nothing was stored'),
  )
  await images.write(kind, 'disk', bodyOf('n'), { ...part(0, 0, 3), digests: [md5('other')] })
  await expect(images.write(kind, 'disk', bodyOf('ew'), part(1, 2, 3))).rejects.toEqual(status(400))
  expect(await readdir(own)).toEqual(['disk'])
  // Begun anew, it is not held to the digest of the one before.
  await images.write(kind, 'disk', bodyOf('n'), { ...part(0, 0, 3), digests: [md5('other')] })
  await images.write(kind, 'disk', bodyOf('n'), { ...part(0, 0, 3), digests: [md5('new')] })
  expect(await images.write(kind, 'disk', bodyOf('ew'), part(1, 2, 3))).toMatchObject({ done: true })
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('new')
})

test('an upload ends when the disk gets full while it is written', async () => {
  let floor = 0
  const { images, own } = await openImages({ minFreeMb: () => floor })
  await images.write(kind, 'disk', bodyOf('old'), none)
  const { stream, wanted, more } = slowBody('x')
  const writing = images.write(kind, 'disk', stream, none)
  await wanted
  floor = Number.MAX_SAFE_INTEGER
  more('x'.repeat(17 << 20))
  await expect(writing).rejects.toEqual(status(507))
  expect(await readdir(own)).toEqual(['disk'])
  expect(await readFile(join(own, 'disk'), 'utf8')).toBe('old')
})

test('an upload that cannot fit is refused before its body is read', async () => {
  const { images, own } = await openImages({ maxGb: () => 1_000_000 })
  const tooMuch = { digests: [], size: 900_000 * 2 ** 30 }
  await expect(images.write(kind, 'disk', bodyOf('x'), tooMuch)).rejects.toEqual(status(507, 'min_free_space_mb'))
  await expect(images.write(kind, 'disk', bodyOf('x'), part(0, 0, tooMuch.size))).rejects.toEqual(status(507))
  const { images: small } = await openImages({ maxGb: () => 1 })
  const larger = 2 ** 30 + 1
  await expect(small.write(kind, 'disk', bodyOf('x'), { digests: [], size: larger })).rejects.toEqual(status(413))
  await expect(small.write(kind, 'disk', bodyOf('x'), part(0, 0, larger))).rejects.toEqual(status(413))
  expect(await readdir(own)).toEqual([])
})

test('the limit applies to an image of unknown length, too', async () => {
  const { images, own } = await openImages({ maxGb: () => 1e-5 })
  await expect(images.write(kind, 'disk', bodyOf('x'.repeat(20_000)), none)).rejects.toEqual(status(413))
  expect(await readdir(own)).toEqual([])
})

test('nothing is written through a symbolic link that leaves the images, and the link itself is replaced', async () => {
  const { images, own } = await openImages()
  const outside = await freshDirectory()
  await writeFile(join(outside, 'precious'), 'old')
  await symlink(outside, join(own, 'vendor'))
  await symlink(join(outside, 'precious'), join(own, 'link'))
  await expect(images.write(kind, 'vendor/disk', bodyOf('x'), none)).rejects.toEqual(status(403))
  await images.write(kind, 'link', bodyOf('new'), none)
  expect(await readFile(join(outside, 'precious'), 'utf8')).toBe('old')
  expect(await readFile(join(own, 'link'), 'utf8')).toBe('new')
  expect(await readdir(outside)).toEqual(['precious'])
})

test('a directory in the way is a conflict', async () => {
  const { images, own } = await openImages()
  await mkdir(join(own, 'vendor'))
  await writeFile(join(own, 'file'), '')
  await expect(images.write(kind, 'vendor', bodyOf('x'), none)).rejects.toEqual(status(409))
  await expect(images.write(kind, 'file/disk', bodyOf('x'), none)).rejects.toEqual(status(409))
  expect(await readdir(own, { recursive: true })).toEqual(['file', 'vendor'])
})

test('a name may be as long as the file system takes', async () => {
  const { images, own } = await openImages()
  const name = '面'.repeat(85)
  await images.write(kind, name, bodyOf('a'), part(0, 0, 2))
  await images.write(kind, name, bodyOf('b'), part(1, 1, 2))
  expect(await readFile(join(own, name), 'utf8')).toBe('ab')
})

test('parts that were not continued for a day are removed by the next upload; other files stay', async () => {
  const { images, own } = await openImages()
  await images.write(kind, 'disk', bodyOf('a'), part(0, 0, 2))
  await writeFile(join(own, '.mine'), '')
  const [gathered = ''] = (await readdir(own)).filter((name) => name.endsWith('.part'))
  await utimes(join(own, gathered), 0, 0)
  await images.write(kind, 'other', bodyOf('a'), none)
  expect(await readdir(own)).toEqual(['.mine', 'other'])
  expect((await stat(join(own, 'other'))).mode & 0o777).toBe(0o700)
})
