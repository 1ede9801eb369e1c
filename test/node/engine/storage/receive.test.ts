import { randomBytes } from 'node:crypto'
import { type FileHandle, open, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { receive } from '../../../../runtime/node/engine/storage/receive.ts'
import { contentOf } from '../../../../runtime/node/engine/storage/stored-file.ts'
import { freshDirectory } from '../../../support/directory.ts'

const mb = 2 ** 20

/** Two files in a directory: one with content, and an empty one. */
async function files(bytes: number) {
  const directory = await freshDirectory()
  const content = randomBytes(bytes)
  const [from, to] = [join(directory, 'from'), join(directory, 'to')]
  const source = await open(from, 'w+')
  await source.writeFile(content)
  const target = await open(to, 'w')
  onTestFinished(() => target.close())
  const options = { directory, minFreeMb: () => 0, bodyTimeoutMs: 60_000, fate: 'nothing was written' }
  return { content, source, target, to, options }
}

/** Counts the syncs of a file. */
function syncsOf(handle: FileHandle): { count: number } {
  const syncs = { count: 0 }
  for (const name of ['sync', 'datasync'] as const) {
    const run = handle[name].bind(handle)
    handle[name] = () => {
      syncs.count += 1
      return run()
    }
  }
  return syncs
}

test('the content of a file of any length arrives, and is synced while it comes', async () => {
  for (const bytes of [0, 1, mb - 1, mb, 40 * mb + 5]) {
    const { content, source, target, to, options } = await files(bytes)
    const syncs = syncsOf(target)
    await receive(contentOf(source, bytes), target, options)
    expect((await readFile(to)).equals(content)).toBe(true)
    expect(syncs.count).toBeGreaterThan(bytes > 32 * mb ? 1 : 0)
  }
})

test('a part of a file can be read, and a file that became shorter ends early', async () => {
  const { content, source, target, to, options } = await files(3 * mb)
  await receive(contentOf(source, 2 * mb, 1000), target, options)
  expect((await readFile(to)).equals(content.subarray(1000, 2 * mb + 1000))).toBe(true)
  const short = await files(mb)
  await receive(contentOf(short.source, 2 * mb), short.target, short.options)
  expect((await readFile(short.to)).equals(short.content)).toBe(true)
})

test('a temporary file is not synced', async () => {
  const { source, target, options } = await files(20 * mb)
  const syncs = syncsOf(target)
  await receive(contentOf(source, 20 * mb), target, { ...options, lasts: false })
  expect(syncs.count).toBe(0)
})

test('a failure of the disk during the body is an error', async () => {
  const { source, target, options } = await files(40 * mb)
  target.datasync = () => Promise.reject(Object.assign(new Error('EIO'), { code: 'EIO' }))
  await expect(receive(contentOf(source, 40 * mb), target, options)).rejects.toThrow('EIO')
})

test('a stream that is cancelled closes its file', async () => {
  const { source } = await files(3 * mb)
  const reader = contentOf(source, 3 * mb).getReader()
  await reader.read()
  await reader.cancel()
  expect(source.fd).toBe(-1)
})
