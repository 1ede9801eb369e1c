import fc from 'fast-check'
import { expect, test } from 'vitest'
import { encodeFrame, FrameReader, frameType } from '../../../../runtime/node/keeper/process/frames.ts'
import { LineEnds } from '../../../../runtime/node/keeper/process/line-ends.ts'
import { Scrollback } from '../../../../runtime/node/keeper/process/scrollback.ts'
import { LineReader } from '../../../../runtime/node/os/system/line-reader.ts'

const chunks = fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 30 })

function split(whole: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set(cuts.map((cut) => cut % (whole.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((from, index) => whole.subarray(from, ends[index] ?? whole.length))
}

test('a scroll-back has exactly the last bytes, for pieces of any size', () => {
  fc.assert(
    fc.property(chunks, fc.integer({ min: 1, max: 64 }), (pieces, capacity) => {
      const scrollback = new Scrollback(capacity)
      let all = Buffer.alloc(0)
      for (const piece of pieces) {
        scrollback.push(piece)
        all = Buffer.concat([all, piece])
        expect(scrollback.read()).toEqual(all.subarray(-capacity))
      }
    }),
    { numRuns: 200 },
  )
})

test('output that was read from a scroll-back does not change later', () => {
  const scrollback = new Scrollback(4)
  scrollback.push(Buffer.from('abcd'))
  const read = scrollback.read()
  scrollback.push(Buffer.from('efgh'))
  expect(read.toString()).toBe('abcd')
})

test('every line feed gets its carriage return once, also when the two come apart', () => {
  fc.assert(
    fc.property(fc.array(fc.constantFrom(13, 10, 65)), fc.array(fc.nat()), (text, cuts) => {
      const lineEnds = new LineEnds()
      const completed = split(Buffer.from(text), cuts).map((piece) => lineEnds.complete(piece))
      const expected = Buffer.from(text)
        .toString('latin1')
        .replace(/(?<!\r)\n/g, '\r\n')
      expect(Buffer.concat(completed).toString('latin1')).toBe(expected)
    }),
    { numRuns: 300 },
  )
})

test('frames are unchanged, wherever the stream was split', () => {
  const frame = fc.record({
    type: fc.constantFrom(...Object.values(frameType)),
    pc: fc.integer({ min: 0, max: 0xffffffff }),
    payload: fc.uint8Array({ maxLength: 60 }).map((it) => Buffer.from(it)),
  })
  fc.assert(
    fc.property(fc.array(frame), fc.array(fc.nat()), (frames, cuts) => {
      const whole = Buffer.concat(frames.map(({ type, pc, payload }) => encodeFrame(type, pc, payload)))
      const reader = new FrameReader()
      expect(split(whole, cuts).flatMap((piece) => reader.push(piece))).toEqual(frames)
    }),
    { numRuns: 200 },
  )
})

test('a frame with an impossible length is an error, not a wait for gigabytes', () => {
  expect(() => new FrameReader().push(Buffer.from([255, 255, 255, 255]))).toThrow(/frame of 4294967295/)
  expect(() => new FrameReader().push(Buffer.from([4, 0, 0, 0]))).toThrow(/frame of 4/)
})

test('lines are unchanged, wherever the stream and its characters were split', () => {
  const line = fc.string({ unit: 'grapheme', maxLength: 30 }).filter((it) => !it.includes('\n'))
  fc.assert(
    fc.property(fc.array(line), line, fc.array(fc.nat()), (lines, rest, cuts) => {
      const reader = new LineReader(1000)
      const whole = Buffer.from(lines.map((it) => `${it}\n`).join('') + rest)
      expect(split(whole, cuts).flatMap((piece) => reader.push(piece))).toEqual(lines)
      expect(reader.rest.toString()).toBe(rest)
    }),
    { numRuns: 200 },
  )
})

test('a line that never ends is an error at the limit', () => {
  const reader = new LineReader(10)
  expect(reader.push(Buffer.from('0123456789'))).toEqual([])
  expect(() => reader.push(Buffer.from('x'))).toThrow(/more than 10 bytes/)
})
