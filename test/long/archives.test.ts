import { createRequire } from 'node:module'
import { crc32 } from 'node:zlib'
import { describe, expect, it } from 'vitest'
import { FileZipArchives } from '../../runtime/node/service/labs/zip-archives.ts'
import type { ArchiveMember } from '../../src/labs/archives/zip-archives.ts'
import { openRecords } from '../support/service-records.ts'

// As in the bundle (scripts/bundle.js): the CRC-32 of yazl itself takes as long as all else of four gigabytes.
const ofYazl: { unsigned: typeof crc32 } = createRequire(import.meta.url)('buffer-crc32')
ofYazl.unsigned = crc32

const archives = async () => {
  const { records } = await openRecords()
  return new FileZipArchives({ records, minFreeMb: () => 0, bodyTimeoutMs: 60_000 })
}

const member = (name: string, text: string): ArchiveMember => ({
  ...{ name, size: Buffer.byteLength(text), modified: Date.now() },
  // A Blob for each of them takes longer than all that is proved here.
  content: new ReadableStream({
    start(controller) {
      if (text !== '') controller.enqueue(new TextEncoder().encode(text))
      controller.close()
    },
  }),
})

describe('a zip archive (zip64)', () => {
  it('has more files than 16 bits count', async () => {
    const zip = await archives()
    const count = 65_540
    async function* members() {
      for (let at = 0; at < count; at++) yield member(`${at}`, at === count - 1 ? 'last' : '')
    }
    await using archive = await zip.open(zip.write(members(), 0))
    expect(archive.members.size).toBe(count)
    expect(await new Response(await archive.read(`${count - 1}`)).text()).toBe('last')
  })

  it('has a file larger than 32 bits count', async () => {
    const zip = await archives()
    const [size, piece] = [2 ** 32 + 1, new Uint8Array(2 ** 20)]
    let left = size
    const content = new ReadableStream<Uint8Array>({
      pull(controller) {
        const now = Math.min(left, piece.length)
        left -= now
        if (now > 0) controller.enqueue(piece.subarray(0, now))
        else controller.close()
      },
    })
    async function* members() {
      yield { name: 'disk.img', size, modified: Date.now(), content }
      yield member('after', 'last')
    }
    // Stored: zeros would be refused as a bomb.
    await using archive = await zip.open(zip.write(members(), 0))
    expect([...archive.members]).toEqual([
      ['disk.img', size],
      ['after', 4],
    ])
    let read = 0
    for await (const bytes of (await archive.read('disk.img')) as unknown as AsyncIterable<Uint8Array>)
      read += bytes.length
    expect(read).toBe(size)
    expect(await new Response(await archive.read('after')).text()).toBe('last')
  })
})
