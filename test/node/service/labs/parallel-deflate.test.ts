import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { deflateRawSync, inflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { parallelDeflate } from '../../../../runtime/node/service/labs/parallel-deflate.ts'

/** Half of it can be compressed. */
const content = Buffer.concat(
  Array.from({ length: 300 }, () => Buffer.concat([randomBytes(4096), Buffer.from('text '.repeat(800))])),
)

const pieces = (bytes: Buffer, size: number): Readable =>
  Readable.from(
    Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size)),
  )

test.each([
  ['one piece', content, content.length],
  ['pieces of a block and a half', content, 3 * 2 ** 17],
  ['small pieces', content, 1000],
  ['a byte', Buffer.from('x'), 1],
  ['nothing', Buffer.alloc(0), 1],
])('%s can be inflated, and is as short as from one thread', async (_, bytes, size) => {
  const packed = await buffer(pieces(bytes, size).pipe(parallelDeflate({ level: 1 })))
  expect(inflateRawSync(packed).equals(bytes)).toBe(true)
  expect(packed.length).toBeLessThanOrEqual(deflateRawSync(bytes, { level: 1 }).length * 1.01 + 8)
})

test('a block refers to the text before it', async () => {
  const bytes = Buffer.concat([content.subarray(0, 2 ** 18), content.subarray(2 ** 18 - 2 ** 14, 2 ** 18)])
  const packed = await buffer(pieces(bytes, bytes.length).pipe(parallelDeflate({ level: 9 })))
  const before = await buffer(pieces(bytes.subarray(0, 2 ** 18), 2 ** 18).pipe(parallelDeflate({ level: 9 })))
  expect(packed.length - before.length).toBeLessThan(1000)
})

test('it takes no more input while its output is not read, and ends when it is destroyed', async () => {
  const deflate = parallelDeflate({ level: 1 })
  let taken = 0
  const source = Readable.from(
    (async function* () {
      for (;;) {
        taken += 2 ** 20
        yield content.subarray(0, 2 ** 20)
      }
    })(),
  )
  source.pipe(deflate)
  await once(deflate, 'readable')
  const settled = async (before = -1): Promise<number> => {
    await new Promise((resolve) => setTimeout(resolve, 50))
    return taken === before ? taken : settled(taken)
  }
  expect(await settled()).toBeLessThan(64 * 2 ** 20)
  const closed = once(deflate, 'close')
  deflate.destroy()
  await closed
  source.destroy()
})
