import { expect, test } from 'vitest'
import { Memory } from '../../../../runtime/node/dataplane/fast/memory.ts'
import { Coalescer } from '../../../../runtime/node/drivers/nat/coalescer.ts'
import { loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { dissect, ones } from '../../../support/frames.ts'
import { requireFastPath } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'

interface Segment {
  readonly at: number
  readonly data: string
  readonly flags?: number
  readonly port?: number
  readonly acknowledges?: number
}

/** A segment of a guest, with right checksums. */
function frameOf({ at, data, flags = 0x10, port = 80, acknowledges = 1 }: Segment): Buffer {
  const segment = Buffer.alloc(20 + data.length)
  segment.writeUInt16BE(4000, 0)
  segment.writeUInt16BE(port, 2)
  segment.writeUInt32BE(at >>> 0, 4)
  segment.writeUInt32BE(acknowledges, 8)
  segment.writeUInt16BE(0x5000 | flags, 12)
  segment.writeUInt16BE(500, 14)
  segment.write(data, 20, 'latin1')
  const header = Buffer.from('4500000000004000400600000a0000140a000101', 'hex')
  header.writeUInt16BE(20 + segment.length, 2)
  header.writeUInt16BE(~ones(header) & 0xffff, 10)
  const pseudo = Buffer.concat([
    header.subarray(12, 20),
    Buffer.from([0, 6, segment.length >> 8, segment.length & 255]),
  ])
  segment.writeUInt16BE(~ones(Buffer.concat([pseudo, segment])) & 0xffff, 16)
  return Buffer.concat([Buffer.from('525500000001020000000001' + '0800', 'hex'), header, segment])
}

describeWith(requireFastPath())('segments', () => {
  /** The frames that come out of those that go in. */
  function joined(frames: readonly Buffer[]) {
    const libc = loadLibc()
    const memory = new Memory(libc, 1 << 18)
    const out = new Memory(libc, 65_536)
    const got: Buffer[] = []
    const it = new Coalescer(libc, memory, (frame, length) => {
      libc.memcpy(out.address, frame, length)
      got.push(Buffer.from(out.bytes.slice(0, length)))
    })
    let at = 100
    for (const frame of frames) {
      memory.bytes.set(frame, at)
      it.add(at, frame.length)
      at += frame.length
    }
    it.flush()
    return got
  }
  const payloads = (frames: readonly Buffer[]) => joined(frames).map((it) => dissect(it)?.payload.toString('latin1'))

  test('in a row become one, with right lengths and checksums', () => {
    const parts = ['some', 'thing to', '', 'send'].map((text) => text + 'xy'.repeat(600))
    let at = 0xffff_fff0
    const frames = parts.map((data, index) => {
      const frame = frameOf({ at, data, flags: index === 3 ? 0x18 : 0x10, acknowledges: index })
      at += data.length
      return frame
    })
    const [one, ...more] = joined(frames)
    expect(more).toEqual([])
    expect(dissect(one ?? Buffer.alloc(0))).toMatchObject({ isSound: true, sequence: 0xffff_fff0, flags: 0x18 })
    expect(dissect(one ?? Buffer.alloc(0))?.payload.toString('latin1')).toBe(parts.join(''))
    expect(one?.readUInt32BE(42)).toBe(3)
  })

  test('alone, of several connections, with gaps or flags stay as they are', () => {
    for (const frames of [
      [frameOf({ at: 1, data: 'ab' })],
      [frameOf({ at: 1, data: 'ab' }), frameOf({ at: 3, data: 'cd', port: 81 })],
      [frameOf({ at: 1, data: 'ab' }), frameOf({ at: 4, data: 'cd' })],
      [frameOf({ at: 1, data: 'ab' }), frameOf({ at: 3, data: 'cd', flags: 0x11 })],
      [frameOf({ at: 1, data: '', flags: 2 }), frameOf({ at: 1, data: '' })],
      [frameOf({ at: 1, data: 'ab' }), Buffer.alloc(60, 7), frameOf({ at: 3, data: 'cd' })],
    ]) {
      expect(joined(frames)).toEqual(frames)
    }
  })

  test('of an odd length end a joined segment', () => {
    const frames = ['ab', 'cde', 'fg'].map((data, index) => frameOf({ at: [1, 3, 6][index] ?? 0, data }))
    expect(payloads(frames)).toEqual(['abcde', 'fg'])
    expect(joined(frames).every((frame) => dissect(frame)?.isSound)).toBe(true)
  })

  test('with a wrong checksum do not get a right one', () => {
    const wrong = frameOf({ at: 3, data: 'cd' })
    wrong[55] = 0x65
    const [one] = joined([frameOf({ at: 1, data: 'ab' }), wrong])
    expect(dissect(one ?? Buffer.alloc(0))).toMatchObject({ isSound: false })
  })

  test('with acknowledgements only are replaced by a later one that acknowledges more', () => {
    const ack = (acknowledges: number, more: Partial<Segment> = {}) =>
      frameOf({ at: 1, data: '', acknowledges, ...more })
    const [first, second, third] = [ack(0xffff_ff00), ack(0xffff_fff0), ack(0x10)]
    expect(joined([first, second, third])).toEqual([third])
    const corrupt = ack(0x7000)
    corrupt[44] = 0x12
    for (const frames of [
      [second, second],
      [third, second],
      [first, ack(0x10, { port: 81 })],
      [first, ack(0x10, { at: 2 })],
      [first, ack(0x10, { flags: 0x18 + 0x40 })],
      [ack(0x10), corrupt],
      [first, frameOf({ at: 1, data: 'ab', acknowledges: 0x10 })],
      [frameOf({ at: 1, data: 'ab' }), third],
    ]) {
      expect(joined(frames)).toEqual(frames)
    }
  })

  test('are joined up to a limit', () => {
    const frames = Array.from({ length: 100 }, (_, index) => frameOf({ at: index * 1400, data: 'z'.repeat(1400) }))
    const all = payloads(frames)
    expect(all.join('')).toBe('z'.repeat(140_000))
    expect(all.length).toBe(Math.ceil(140_000 / (Math.floor((48_000 - 54) / 1400) * 1400)))
  })
})
