import { zstdCompressSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { unpackedZstd, ZstdDecompressionStream } from '../../../../src/lib/zip/zstd.ts'

async function* inPieces(bytes: Uint8Array, length: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

async function unpacked(bytes: Uint8Array, length = 1000): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  for await (const piece of unpackedZstd(inPieces(bytes, length))) pieces.push(piece)
  return Buffer.concat(pieces)
}

const random = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * index * 31) % 251))
test.each([
  ['nothing', Buffer.alloc(0)],
  ['a few bytes', Buffer.from('x')],
  ['text', Buffer.from('{"name": "a"}'.repeat(1000))],
  ['zeros', Buffer.alloc(1 << 20)],
  ['what cannot be compressed', random],
])('%s comes out of zstd as it went in, in pieces of any length', async (_, content) => {
  const packed = zstdCompressSync(content)
  for (const length of [1, 7, 65_536])
    if (packed.length / length < 50_000) expect((await unpacked(packed, length)).equals(content)).toBe(true)
})

test('frames after one another are one stream, and skippable frames have no content', async () => {
  const skipped = Buffer.from([0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9])
  const packed = Buffer.concat([zstdCompressSync(Buffer.from('a')), skipped, zstdCompressSync(Buffer.from('b'))])
  expect(String(await unpacked(packed))).toBe('ab')
})

test('a bomb is unpacked in pieces of at most 128 KiB, so that its reader can end it', async () => {
  const packed = zstdCompressSync(Buffer.alloc(64 << 20))
  let count = 0
  for await (const piece of unpackedZstd(inPieces(packed, 1 << 20))) {
    expect(piece.length).toBeLessThanOrEqual(1 << 17)
    count += 1
    if (count === 3) break
  }
  expect(count).toBe(3)
})

test.each([
  ['an end within a frame', zstdCompressSync(random).subarray(0, -5), 'it ends within a frame'],
  ['something else', Buffer.from('PK is another format'), 'not a frame of Zstandard'],
  // Magic number, a frame header with a window of 2 GiB.
  [
    'a frame that needs 2 GiB',
    Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 1, 0, 0]),
    'a window of 2147483648 bytes is needed',
  ],
])('%s is refused', async (_, bytes, message) => {
  await expect(unpacked(bytes)).rejects.toThrow(message)
})

test('as a stream it unpacks the same, and a damaged one fails its reader', async () => {
  const through = (bytes: Uint8Array<ArrayBuffer>) =>
    new Response(new Blob([bytes]).stream().pipeThrough(new ZstdDecompressionStream())).bytes()
  const packed = new Uint8Array(zstdCompressSync(random))
  expect(Buffer.from(await through(packed)).equals(random)).toBe(true)
  await expect(through(packed.subarray(0, -9))).rejects.toThrow('it ends within a frame')
})
