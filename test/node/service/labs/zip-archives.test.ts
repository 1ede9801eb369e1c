import { readdir, readlink, stat } from 'node:fs/promises'
import { crc32, zstdCompressSync } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { FileZipArchives } from '../../../../runtime/node/service/labs/zip-archives.ts'
import type { ArchiveMember } from '../../../../src/labs/archives/zip-archives.ts'
import { openRecords } from '../../../support/service-records.ts'

const archives = async () => {
  const { records } = await openRecords()
  return new FileZipArchives({ records, minFreeMb: () => 0, bodyTimeoutMs: 60_000 })
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

/** A zip archive with one file that is compressed by zstd, method 93 of APPNOTE.TXT 4.4.5. */
function zstdArchive(name: string, content: Buffer, { size = content.length } = {}): ReadableStream<Uint8Array> {
  const packed = zstdCompressSync(content)
  const facts = Buffer.alloc(26)
  for (const [at, value] of [20, 0, 93, 0, 0].entries()) facts.writeUInt16LE(value, at * 2)
  facts.writeUInt32LE(crc32(content), 10)
  facts.writeUInt32LE(packed.length, 14)
  facts.writeUInt32LE(size, 18)
  facts.writeUInt16LE(name.length, 22)
  const local = Buffer.concat([Buffer.from('PK\x03\x04'), facts, Buffer.from(name), packed])
  const directory = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00'), facts, Buffer.alloc(14), Buffer.from(name)])
  const end = Buffer.alloc(22)
  end.write('PK\x05\x06')
  for (const at of [8, 10]) end.writeUInt16LE(1, at)
  end.writeUInt32LE(directory.length, 12)
  end.writeUInt32LE(local.length, 16)
  return new Blob([local, directory, end]).stream()
}

describe('an archive of GNS3 3.0, whose files are compressed by zstd', () => {
  it('is read', async () => {
    const zip = await archives()
    const content = Buffer.from('{"revision": 10}'.repeat(100_000))
    await using archive = await zip.open(zstdArchive('project.gns3', content))
    expect((await new Response(await archive.read('project.gns3')).text()) === content.toString()).toBe(true)
  })

  it('is refused when a file has more bytes than the archive says', async () => {
    const zip = await archives()
    await using archive = await zip.open(zstdArchive('bomb', Buffer.alloc(1 << 20), { size: 10 }))
    await expect(new Response(await archive.read('bomb')).text()).rejects.toThrow('too many bytes, expected 10')
  })
})
