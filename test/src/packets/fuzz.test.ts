import fc from 'fast-check'
import { expect, test } from 'vitest'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import { type Captured, dissect, summarize } from '../../../src/packets/decode.ts'
import type { Field } from '../../../src/packets/dissection.ts'
import { samples } from '../../support/packet-samples.ts'
import { pcapOf } from '../../support/pcap.ts'

const linkType = fc.constantFrom(1, 9, 50, 104, 107)
const someSample = fc.constantFrom(...samples)

test('any bytes are decoded without an exception, within the frame', () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), fc.nat(100), linkType, (bytes, cut, type) => {
      check({ bytes, length: bytes.length + cut, linkType: type })
    }),
    { numRuns: 1500 },
  )
})

test('so are the beginnings of valid frames, whether the capture or the sender cut them', () => {
  for (const { frame, linkType } of samples)
    for (let size = 0; size < frame.length; size++)
      for (const length of [size, frame.length]) check({ bytes: frame.subarray(0, size), length, linkType })
})

test('so are valid frames with wrong bytes', () => {
  const changes = fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(someSample, changes, fc.nat(200), ({ frame, linkType }, wrong, more) => {
      const bytes = Buffer.concat([frame, Buffer.alloc(more)])
      for (const [at, value] of wrong) bytes[at % frame.length] = value
      check({ bytes, length: bytes.length, linkType })
    }),
    { numRuns: 3000 },
  )
})

test('a byte beyond the end of the frame does not change the result', () => {
  fc.assert(
    fc.property(
      someSample,
      fc.nat(),
      fc.uint8Array({ minLength: 64, maxLength: 64 }),
      ({ frame, linkType }, cut, rest) => {
        const size = cut % (frame.length + 1)
        const alone = Uint8Array.from(frame.subarray(0, size))
        const among = Buffer.concat([rest, alone, rest]).subarray(64, 64 + size)
        expect(dissect({ bytes: among, length: size, linkType })).toEqual(
          dissect({ bytes: alone, length: size, linkType }),
        )
      },
    ),
    { numRuns: 600 },
  )
})

test('work is bounded: names that point to names, tags in tags, options without an end', () => {
  const tags = Buffer.alloc(65_000)
  for (let at = 12; at < tags.length; at += 4) tags.writeUInt16BE(0x8100, at)
  // Records of two bytes each, whose names all walk the same chain of pointers.
  const { frame } = samples.find(({ name }) => name === 'DNS answer') as (typeof samples)[number]
  const names = Buffer.concat([frame, Buffer.alloc(60_000, 0xc0)])
  for (const place of [16, 38]) names.writeUInt16BE(names.length - (place === 16 ? 14 : 34), place)
  for (const place of [46, 48, 50, 52]) names.writeUInt16BE(0xffff, place)
  for (const bytes of [tags, names, Buffer.alloc(65_000, 1), Buffer.alloc(65_000, 255)]) {
    const { layers, info } = check({ bytes, length: bytes.length, linkType: 1 })
    expect(count(layers)).toBeLessThan(5000)
    expect(info.length).toBeLessThan(1100)
  }
})

test('a capture that comes in pieces of any size gives the same frames', () => {
  const frames = samples.filter(({ linkType }) => linkType === 1).map(({ frame }) => frame)
  const pcap = pcapOf(1, frames)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 40 }), (sizes) => {
      const reader = new CaptureReader()
      const read: Uint8Array[] = []
      let whole = 0
      for (let at = 0, index = 0; at < pcap.length; index++) {
        const size = sizes[index % sizes.length] as number
        read.push(...reader.push(pcap.subarray(at, at + size)).map(({ bytes }) => bytes))
        at += size
        whole += reader.whole.length
      }
      expect(read.map((bytes) => Buffer.from(bytes))).toEqual(frames)
      expect(whole).toBe(pcap.length)
    }),
  )
})

test('any bytes after the beginning of a capture are frames, a wait for more, or a TypeError', () => {
  const begins = [
    pcapOf(1, []),
    pcapOf(1, []).swap32(),
    Buffer.from('0a0d0d0a1c0000004d3c2b1a01000000ffffffffffffffff1c000000', 'hex'),
  ]
  fc.assert(
    fc.property(fc.constantFrom(...begins), fc.uint8Array({ maxLength: 300 }), (begin, rest) => {
      try {
        new CaptureReader().push(Buffer.concat([begin, rest]))
      } catch (error) {
        expect(error).toBeInstanceOf(TypeError)
      }
    }),
    { numRuns: 1000 },
  )
})

/** Decodes a frame in both ways; all ranges must be within it, and those of fields within what they are a part of. */
function check(captured: Captured): ReturnType<typeof dissect> {
  const columns = summarize(captured)
  const result = dissect(captured)
  const { layers, ...same } = result
  expect(same).toEqual(columns)
  expect(
    Object.values(same).every(
      (text) => typeof text === 'string' && !text.includes('undefined') && !text.includes('NaN'),
    ),
  ).toBe(true)
  within(layers, 0, captured.bytes.length)
  return result
}

function within(fields: readonly Field[], from: number, to: number): void {
  for (const field of fields) {
    if (field.from < from || field.to > to || field.from > field.to)
      throw new Error(`${field.name} is at ${field.from} to ${field.to}, and not within ${from} to ${to}`)
    if (/undefined|NaN/.test(field.value)) throw new Error(`${field.name} is ${field.value}`)
    within(field.fields, field.from, field.to)
  }
}

const count = (fields: readonly Field[]): number => fields.reduce((sum, field) => sum + 1 + count(field.fields), 0)
