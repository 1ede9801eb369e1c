import { inflateSync } from 'node:zlib'
import { expect, test } from 'vitest'
import StoredDeflate from '../../../runtime/browser/console/stored-deflate.ts'

test.each([0, 1, 5, 0xffff, 0x10000, 200_000])('%i bytes for a clipboard are read as they were by zlib', (length) => {
  const data = Uint8Array.from({ length }, (_, index) => (index * 7919) & 0xff)
  expect(Buffer.compare(inflateSync(new StoredDeflate().deflate(data)), data)).toBe(0)
})
