import { expect, test } from 'vitest'
import { maxFrames, PacketLog } from '../../../runtime/browser/packets/packet-log.ts'
import type { CapturedFrame } from '../../../src/packets/capture-reader.ts'

/** A frame of an Ethernet type and a length. */
function frame(type: number, length = 60): CapturedFrame {
  const bytes = new Uint8Array(length)
  bytes.set([type >> 8, type & 0xff], 12)
  return { bytes, length, linkType: 1, interfaceNumber: 0, seconds: 100, nanos: 500_000_000 }
}
const [arp, loopback] = [0x0806, 0x9000]
const frames = (type: number, count: number, length?: number) =>
  Array.from({ length: count }, () => frame(type, length))

test('the last frames are kept, and all are counted', () => {
  const log = new PacketLog()
  log.add(frames(arp, 3))
  log.add(frames(loopback, 20_000))
  expect(log.counts).toMatchObject({ total: 20_003, shown: maxFrames })
  expect(log.row(0)).toMatchObject({ number: 20_003 - maxFrames + 1, protocol: 'LOOP' })
  expect(log.row(maxFrames - 1)?.number).toBe(20_003)
  expect(log.begin).toBe(100.5)
})

test('lost frames are counted separately', () => {
  const log = new PacketLog()
  log.add([], 5)
  log.add(frames(arp, 2), 3)
  expect(log.counts).toMatchObject({ total: 2, lost: 8, shown: 2 })
})

test('large frames take no more memory', () => {
  const log = new PacketLog()
  for (let piece = 0; piece < 10; piece++) log.add(frames(arp, 100, 65_000))
  const bytes = log.frames.reduce((sum, it) => sum + it.bytes.byteLength, 0)
  expect(bytes).toBeLessThanOrEqual(8 << 20)
  expect(log.row(log.length - 1)?.number).toBe(1000)
})

test('one frame does not keep a whole piece of the stream in memory', () => {
  const log = new PacketLog()
  const piece = new Uint8Array(1 << 20)
  log.add([{ ...frame(arp), bytes: piece.subarray(0, 60) }])
  expect(log.frames[0]?.bytes.buffer.byteLength).toBe(60)
})

test('a filter applies to stored and new frames, and has names for protocols', () => {
  const log = new PacketLog()
  log.add([...frames(loopback, 5), frame(arp)])
  log.filter('ARP')
  expect([log.length, log.row(0)?.number]).toEqual([1, 6])
  log.add([...frames(loopback, 3000), frame(arp)])
  expect([log.length, log.row(1)?.number]).toEqual([2, 3007])
})

test('while it is paused, frames are only counted', () => {
  const log = new PacketLog()
  log.add(frames(arp, 2))
  log.isPaused = true
  log.add(frames(arp, 5))
  log.isPaused = false
  log.add(frames(arp, 1))
  expect(log.counts).toMatchObject({ total: 8, shown: 3 })
  expect(log.row(2)?.number).toBe(8)
})
