import { createHash } from 'node:crypto'
import { lstat, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { Checksums } from '../../../../runtime/node/engine/storage/checksums.ts'
import { freshDirectory } from '../../../support/directory.ts'

const md5 = (text: string) => createHash('md5').update(text).digest('hex')

async function openChecksums(): Promise<{ directory: string; sum: (path: string) => Promise<string | undefined> }> {
  const checksums = new Checksums()
  onTestFinished(() => checksums.close())
  const sum = async (path: string) => checksums.of(path, await lstat(path, { bigint: true }))
  return { directory: await freshDirectory(), sum }
}

test('the checksum of a file is its MD5, also for many files at once', async () => {
  const { directory, sum } = await openChecksums()
  const texts = ['', 'a', 'b'.repeat(3_000_000), ...Array.from({ length: 50 }, (_, n) => `file ${n}`)]
  await Promise.all(texts.map((text, n) => writeFile(join(directory, String(n)), text)))
  const sums = await Promise.all(texts.map((_, n) => sum(join(directory, String(n)))))
  expect(sums).toEqual(texts.map(md5))
})

test('a changed file has a new checksum: with another length, other bytes, at once, or with its old time', async () => {
  const { directory, sum } = await openChecksums()
  const path = join(directory, 'file')
  await writeFile(path, 'one')
  const { atime, mtime } = await lstat(path)
  expect(await sum(path)).toBe(md5('one'))
  await writeFile(path, 'longer')
  expect(await sum(path)).toBe(md5('longer'))
  for (let round = 0; round < 30; round++) {
    const text = String(100 + round)
    await writeFile(path, text)
    expect(await sum(path)).toBe(md5(text))
  }
  for (const text of ['two', 'six', 'ten']) {
    await writeFile(path, text)
    await utimes(path, atime, mtime)
    await settled(path)
    expect(await sum(path)).toBe(md5(text))
  }
  await writeFile(join(directory, 'new'), 'new')
  await rename(join(directory, 'new'), path)
  expect(await sum(path)).toBe(md5('new'))
})

/** Resolves when the file has not changed for a moment, so that its sum is kept. */
async function settled(path: string): Promise<void> {
  const { ctimeMs } = await lstat(path)
  await expect.poll(() => Date.now() - ctimeMs, { interval: 10 }).toBeGreaterThan(25)
}

test('a known checksum is not computed again', async () => {
  const checksums = new Checksums()
  onTestFinished(() => checksums.close())
  const path = join(await freshDirectory(), 'file')
  await writeFile(path, 'text')
  await settled(path)
  const stats = await lstat(path, { bigint: true })
  expect(await checksums.of(path, stats)).toBe(md5('text'))
  await rm(path)
  expect(await checksums.of(path, stats)).toBe(md5('text'))
})

test('an unreadable file has no checksum, and the next one has', async () => {
  const { directory, sum } = await openChecksums()
  const path = join(directory, 'file')
  await writeFile(path, 'text')
  const checksums = new Checksums()
  onTestFinished(() => checksums.close())
  const stats = await lstat(path, { bigint: true })
  expect(await checksums.of(join(directory, 'gone'), stats)).toBeUndefined()
  expect(await checksums.of(directory, stats)).toBeUndefined()
  expect(await sum(path)).toBe(md5('text'))
})
