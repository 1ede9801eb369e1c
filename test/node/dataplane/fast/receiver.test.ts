import { expect, onTestFinished } from 'vitest'
import { Memory } from '../../../../runtime/node/dataplane/fast/memory.ts'
import { Receiver } from '../../../../runtime/node/dataplane/fast/receiver.ts'
import { remaining, vnetHeaderBytes } from '../../../../runtime/node/dataplane/fast/vnet-header.ts'
import { linux, loadLibc } from '../../../../runtime/node/os/system/libc.ts'
import { dissect, superFrame } from '../../../support/frames.ts'
import { provided, testWith } from '../../../support/test-with.ts'
import { Random } from '../switch/random-frames.ts'

const onLinux = testWith(provided(process.platform === 'linux', 'the fast path is for Linux'))
const rounds = 3000

/** Hands a receiver what a TAP would: each `send` is a frame after its header, and `receive` takes those that wait. */
function tap() {
  const libc = loadLibc()
  const pair = new Memory(libc, 8)
  // socketpair(2) is not among the functions: a named socket with one sender is as good.
  const [to, from] = [0, 1].map(() => libc.socket(linux.AF_UNIX, linux.SOCK_DGRAM | linux.SOCK_NONBLOCK, 0)) as [
    number,
    number,
  ]
  onTestFinished(() => void [to, from].map((fd) => libc.close(fd)))
  // An abstract name of the kernel's choice (unix(7)).
  pair.u16(0, linux.AF_UNIX)
  expect(libc.bind(to, pair.address, 2)).toBe(0)
  const name = new Memory(libc, 128)
  const size = new Memory(libc, 4)
  size.u32(0, 110)
  libc.getsockname(to, name.address, size.address)
  expect(libc.connect(from, name.address, size.view.getUint32(0, true))).toBe(0)
  const receiver = new Receiver(libc)
  const frame = new Memory(libc, 70_000)
  return {
    receiver,
    send(bytes: Uint8Array) {
      frame.bytes.set(bytes)
      expect(libc.send(from, frame.address, bytes.length, 0)).toBe(bytes.length)
    },
    receive: () => receiver.tap(to, true),
  }
}

const frameAt = ({ bytes, offsets, lengths }: Receiver, index: number): Buffer =>
  Buffer.from(bytes.subarray(offsets[index], (offsets[index] ?? 0) + (lengths[index] ?? 0)))

onLinux('a super-frame says how many frames it stands for, and is cut once', () => {
  const { receiver, send, receive } = tap()
  const payload = Buffer.alloc(10_001, 'super')
  const { frame, header } = superFrame({ isSix: false, protocol: 6, payload, segment: 1000 })
  send(Buffer.concat([header, frame]))
  expect(receive()).toBe(1)
  const { remains, counts, totals, longest, segments, lengths, offsets, bytes } = receiver
  expect([remains[0], counts[0], totals[0], longest[0]]).toEqual([
    ...[remaining.segments, 11, frame.length + 10 * 54, 1054],
  ])
  expect(frameAt(receiver, 0)).toEqual(frame)
  const whole = offsets[0] ?? 0
  receiver.finish(0)
  expect([remains[0], segments[0], lengths[0]]).toEqual([remaining.noHeader, 1054, totals[0]])
  const cut = frameAt(receiver, 0)
  const packets = Array.from({ length: 11 }, (_, at) => dissect(cut.subarray(at * 1054, (at + 1) * 1054)))
  expect(packets.every((packet) => packet?.isSound)).toBe(true)
  expect(Buffer.concat(packets.map((packet) => packet?.payload ?? Buffer.alloc(0)))).toEqual(payload)
  // It is still there for an output that takes it.
  expect(Buffer.from(bytes.subarray(whole - vnetHeaderBytes, whole + frame.length))).toEqual(
    Buffer.concat([header, frame]),
  )
  const before = offsets[0]
  receiver.finish(0)
  expect(offsets[0]).toBe(before)
})

onLinux('a checksum is completed, and its header then leaves nothing to do', () => {
  const { receiver, send, receive } = tap()
  const { frame, header } = superFrame({ isSix: true, protocol: 17, payload: Buffer.from('sum'), segment: 1000 })
  header.fill(0, 1, 6)
  send(Buffer.concat([header, frame]))
  receive()
  expect(receiver.remains[0]).toBe(remaining.checksum)
  receiver.finish(0)
  expect(receiver.remains[0]).toBe(remaining.nothing)
  expect(dissect(frameAt(receiver, 0))).toMatchObject({ isSound: true })
  const offset = receiver.offsets[0] ?? 0
  expect([...receiver.bytes.subarray(offset - vnetHeaderBytes, offset)]).toEqual(new Array(10).fill(0))
})

onLinux(
  'a super-frame without a checksum to complete is cut at once, because receivers would not take it whole',
  () => {
    const { receiver, send, receive } = tap()
    const { frame, header } = superFrame({ isSix: false, protocol: 6, payload: Buffer.alloc(3000), segment: 1000 })
    header[0] = 0
    send(Buffer.concat([header, frame]))
    receive()
    expect([receiver.remains[0], receiver.segments[0]]).toEqual([remaining.noHeader, 1054])
  },
)

onLinux('super-frames of more segments than a sender makes are lost, and do not keep the path busy', () => {
  const { receiver, send, receive } = tap()
  const { frame, header } = superFrame({ isSix: false, protocol: 6, payload: Buffer.alloc(60_000), segment: 1 })
  send(Buffer.concat([header, frame]))
  expect(receive()).toBe(1)
  expect([receiver.lost, receiver.lengths[0], receiver.counts[0]]).toEqual([1, 0, 0])
})

onLinux('headers and frames of any content are read and cut within their bounds', () => {
  const { receiver, send, receive } = tap()
  const random = new Random(20261130)
  const { bytes, offsets, lengths, segments, remains, counts, totals, longest } = receiver
  let cuts = 0
  for (let round = 0; round < rounds; round++) {
    const sent = Array.from({ length: 1 + random.below(4) }, () => hostile(random))
    for (const one of sent) send(one)
    let received = 0
    while (received < sent.length) {
      const count = receive()
      expect(count).toBeGreaterThan(0)
      const wholes: { offset: number; frame: Buffer }[] = []
      for (let index = 0; index < count; index++) {
        const one = sent[received++] ?? Buffer.alloc(0)
        const frame = one.subarray(vnetHeaderBytes)
        if (remains[index] !== remaining.noHeader) {
          expect(frameAt(receiver, index).equals(frame)).toBe(true)
          expect(longest[index]).toBeLessThanOrEqual(frame.length)
        }
        if (remains[index] === remaining.segments) wholes.push({ offset: offsets[index] ?? 0, frame })
        receiver.finish(index)
        const [offset = 0, length = 0, segment = 0] = [offsets[index], lengths[index], segments[index]]
        expect(offset + length).toBeLessThanOrEqual(bytes.length)
        if (length > 0) expect(totals[index]).toBe(length)
        if (segment > 0) {
          cuts += 1
          expect(Math.ceil(length / segment)).toBe(counts[index])
        }
      }
      // What was cut is still whole, and nothing was written over it.
      for (const { offset, frame } of wholes)
        expect(frame.equals(bytes.subarray(offset, offset + frame.length))).toBe(true)
    }
  }
  expect(cuts).toBeGreaterThan(rounds / 20)
})

/** A frame after a header, one or the other of which was tampered with. */
function hostile(random: Random): Buffer {
  if (random.below(4) === 0) return Buffer.from(random.bytes(1 + random.below(300)))
  const payload = Buffer.alloc(1 + random.below(random.pick([10, 3000, 60_000])))
  const { frame, header } = superFrame({
    ...{ isSix: random.below(2) === 0, protocol: random.pick([6, 17]), payload },
    segment: random.pick([1, 40, 536, 1448, 9000, 65_535]),
    ...(random.below(3) === 0 && { tag: 5 }),
    isEcn: random.below(4) === 0,
  })
  for (let times = random.below(3); times > 0; times--) header[random.below(10)] = random.below(256)
  for (let times = random.below(3); times > 0; times--) frame[12 + random.below(50)] = random.below(256)
  const end = random.below(4) === 0 ? random.below(frame.length) : frame.length
  return Buffer.concat([header, frame.subarray(0, end)])
}
