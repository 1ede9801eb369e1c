import { readdir, readlink, stat } from 'node:fs/promises'
import { describe, expect, it } from 'vitest'
import { ZipArchives } from '../../../runtime/node/labs/zip-archives.ts'
import type { ArchiveMember } from '../../../src/controller/archives.ts'
import { openRecords } from '../../support/service-records.ts'

const archives = async () => {
  const { records } = await openRecords()
  return new ZipArchives({ records, minFreeMb: () => 0, bodyTimeoutMs: 60_000 })
}

const member = (name: string, text: string): ArchiveMember => ({
  ...{ name, size: Buffer.byteLength(text), modified: Date.now() },
  content: new Blob([text]).stream(),
})

describe('a zip archive', () => {
  it.each([0, 1, 9])('is read as it was written at level %i, also when it is empty', async (level) => {
    const zip = await archives()
    const texts = ['', 'x', 'text '.repeat(200_000)]
    async function* members() {
      for (const [at, text] of texts.entries()) yield member(`${at}`, text)
    }
    await using archive = await zip.open(zip.write(members(), level))
    expect([...archive.members]).toEqual(texts.map((text, at) => [`${at}`, text.length]))
    for (const [at, text] of texts.entries())
      expect((await new Response(await archive.read(`${at}`)).text()) === text).toBe(true)
  })

  it.runIf(process.platform === 'linux')('is freed on the disk while its members are read', async () => {
    const zip = await archives()
    const mb = 2 ** 20
    async function* members() {
      for (const name of ['a', 'b']) yield member(name, name.repeat(8 * mb))
    }
    await using archive = await zip.open(zip.write(members(), 0))
    const before = await blocksOfArchive()
    expect(await new Response(await archive.read('a')).text()).toBe('a'.repeat(8 * mb))
    const after = await blocksOfArchive()
    expect((before - after) * 512).toBeGreaterThanOrEqual(7 * mb)
    expect(await new Response(await archive.read('b')).text()).toBe('b'.repeat(8 * mb))
    await expect(archive.read('a')).rejects.toThrow('read before')
  })
})

/** Blocks (512 bytes) on the disk of the unlinked file of the open archive. */
async function blocksOfArchive(): Promise<number> {
  for (const fd of await readdir('/proc/self/fd')) {
    const path = `/proc/self/fd/${fd}`
    const target = await readlink(path).catch(() => '')
    if (/archive-.*\.tmp \(deleted\)$/.test(target)) return (await stat(path)).blocks
  }
  throw new Error('no archive is open')
}
