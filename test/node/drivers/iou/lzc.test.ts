import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decompressLzc } from '../../../../runtime/node/drivers/iou/lzc.ts'
import { compressLzc } from './lzc-encoder.ts'

const config = `hostname R1
!
interface Ethernet0/0
 ip address 10.0.0.1 255.0.0.0
interface Ethernet0/1
 ip address 10.0.1.1 255.0.0.0
end
`
/** Of `compress -b 16` (ncompress 4.2.4.6). */
const golden = Buffer.from(
  `1f9d9068decca1e3264c9b3220a4c4501042411a3774cac83113660cc22274d0487453860e8c17301480480307441832
  64e494993307440c182e60c28c0142468d1a3173867c187162c58b193776fcb87064c9932957b67c9933860b9a3671ca
  8ca9a08c1b320a00`.replaceAll(/\s/g, ''),
  'hex',
)
const damage = (why: string) =>
  expect.objectContaining({ status: 409, message: `The compressed configuration is damaged: ${why}` })

test('output of compress is read', () => {
  expect(decompressLzc(golden, config.length).toString()).toBe(config)
  expect(compressLzc(Buffer.from(config))).toEqual(golden)
})

test('nothing, a byte, and a code that is made by its own use', () => {
  for (const text of ['', 'a', 'aaa', 'abababa', 'a'.repeat(5000)]) {
    expect(decompressLzc(compressLzc(Buffer.from(text)), text.length).toString()).toBe(text)
  }
})

test.for([10, 11, 12, 14, 16])('codes of up to %i bits, with and without a table that is emptied', (bits) => {
  const letters = fc.stringMatching(/^[a-d ]*$/, { maxLength: 4000, size: 'max' })
  const any = fc.oneof(
    fc.uint8Array({ maxLength: 3000, size: 'max' }),
    letters.map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(any, fc.boolean(), fc.constantFrom(1, 7, 100, 700, Infinity), (data, isBlockMode, clearEvery) => {
      const read = decompressLzc(compressLzc(data, { bits, isBlockMode, clearEvery }), data.length)
      expect(read.equals(data)).toBe(true)
    }),
    { numRuns: 30 },
  )
})

test('a full table does not change', () => {
  const data = Buffer.from(Array.from({ length: 20_000 }, (_, n) => (n * n * 7 + (n >> 3)) & 0xff))
  for (const bits of [10, 12, 16])
    expect(decompressLzc(compressLzc(data, { bits }), data.length).equals(data)).toBe(true)
})

test.for([
  ['', 'it has no compress header'],
  ['1f9d', 'it has no compress header'],
  ['1f8b9000', 'it has no compress header'],
  ['1f9d8861', 'its header is unknown'],
  ['1f9d9161', 'its header is unknown'],
  ['1f9df061', 'its header is unknown'],
  // 256 or more as the first code, and one that is not made yet.
  ['1f9d900001', 'it has an unknown code'],
  ['1f9d90ff01', 'it has an unknown code'],
  ['1f9d9061fe03', 'it has an unknown code'],
] as const)('%s is refused', ([hex, why]) => {
  expect(() => decompressLzc(Buffer.from(hex, 'hex'), 100)).toThrow(damage(why))
})

test('a table of 9 bits is read until it is full', () => {
  const short = Buffer.from('configure terminal')
  expect(decompressLzc(compressLzc(short, { bits: 9 }), 100).equals(short)).toBe(true)
  const long = Buffer.from(Array.from({ length: 600 }, (_, n) => (n * 31) & 0xff))
  expect(() => decompressLzc(compressLzc(long, { bits: 9 }), 600)).toThrow(damage('a table of 9 bits is full'))
})

test('the output has a limit', () => {
  const bomb = compressLzc(Buffer.alloc(200_000, 'a'))
  expect(bomb.length).toBeLessThan(1500)
  expect(() => decompressLzc(bomb, 1000)).toThrow(damage('it has more than 1000 bytes'))
})

test('any input is read or refused', () => {
  const header = fc.constantFrom('1f9d90', '1f9d10', '1f9d8c', '1f9d89', '').map((hex) => Buffer.from(hex, 'hex'))
  fc.assert(
    fc.property(header, fc.uint8Array({ maxLength: 300 }), (start, rest) => {
      try {
        expect(decompressLzc(Buffer.concat([start, rest]), 5000).length).toBeLessThanOrEqual(5000)
      } catch (error) {
        expect(error).toMatchObject({ status: 409 })
      }
    }),
    { numRuns: 200 },
  )
})
