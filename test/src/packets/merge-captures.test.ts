import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lossRecord, pcapHeader } from '../../../runtime/node/dataplane/capture/pcap-file.ts'
import { type CapturedFrame, CaptureReader } from '../../../src/packets/capture-reader.ts'
import { mergeCaptures } from '../../../src/packets/merge-captures.ts'
import { packetBlocks, pcapngHead } from '../../../src/packets/pcapng.ts'
import { recordHead } from '../../support/pcap.ts'

/** A capture whose pieces the test gives. */
function source(name: string) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let isCancelled = false
  const pcap = new ReadableStream<Uint8Array>({
    start(it) {
      controller = it
      it.enqueue(pcapHeader(1))
    },
    cancel() {
      isCancelled = true
    },
  })
  return {
    ...{ name, linkType: 1, pcap },
    /** Frames that passed at these times, in microseconds, in one piece. */
    frames: (...micros: number[]) =>
      controller?.enqueue(
        Buffer.concat(
          micros.flatMap((at) => [recordHead(1, at, 4), Buffer.from(`${name}${at}`.padEnd(4).slice(0, 4))]),
        ),
      ),
    loses: (frames: number) => controller?.enqueue(lossRecord(frames)),
    end: () => controller?.close(),
    /** After all of it was read: a failure drops what waits. */
    async fail(reason: string) {
      await expect.poll(() => controller?.desiredSize).toBe(1)
      controller?.error(new Error(reason))
    },
    get isCancelled() {
      return isCancelled
    },
  }
}

/** Reads a capture to its end, or until there are so many frames. */
async function read(stream: ReadableStream<Uint8Array>, most = Number.POSITIVE_INFINITY) {
  const reader = new CaptureReader()
  const frames: CapturedFrame[] = []
  for await (const piece of stream) {
    frames.push(...reader.push(piece))
    if (frames.length >= most) break
  }
  return { frames, reader }
}
const place = ({ interfaceNumber, nanos }: CapturedFrame) => `${interfaceNumber}@${nanos / 1000}`

test('frames of several links are in the order of their times, each with its link', async () => {
  const [a, b] = [source('a'), source('b')]
  const merged = read(mergeCaptures([a, b], 'two links'))
  a.frames(10, 30, 50)
  b.frames(20, 40)
  a.end()
  b.frames(60)
  b.end()
  const { frames, reader } = await merged
  expect(frames.map(place)).toEqual(['0@10', '1@20', '0@30', '1@40', '0@50', '1@60'])
  expect(frames.map(({ bytes }) => String(Buffer.from(bytes)).trim())).toContain('b40')
  expect(reader.interfaces.map(({ name }) => name)).toEqual(['a', 'b'])
})

test('any number of links with any times come out whole and ordered', async () => {
  const times = fc.uniqueArray(fc.nat(999_999), { maxLength: 30 })
  await fc.assert(
    fc.asyncProperty(fc.array(times, { minLength: 1, maxLength: 6 }), async (all) => {
      const sources = all.map((_, index) => source(String(index)))
      const merged = read(mergeCaptures(sources, 'links'))
      for (const [index, it] of sources.entries()) {
        for (const at of all[index]?.toSorted((x, y) => x - y) ?? []) it.frames(at)
        it.end()
      }
      const { frames } = await merged
      expect(frames).toHaveLength(all.flat().length)
      const micros = frames.map(({ nanos }) => nanos / 1000)
      expect(micros).toEqual(micros.toSorted((x, y) => x - y))
    }),
    { numRuns: 50 },
  )
})

test('a link without frames does not hold the others up', async () => {
  const [busy, quiet] = [source('busy'), source('quiet')]
  const merged = read(mergeCaptures([quiet, busy], 'links'), 2)
  busy.frames(1, 2)
  expect((await merged).frames.map(place)).toEqual(['1@1', '1@2'])
  // The reader had enough: the captures end.
  await expect.poll(() => busy.isCancelled && quiet.isCancelled).toBe(true)
})

test('lost frames are counted for each link', async () => {
  const [a, b] = [source('a'), source('b')]
  const merged = read(mergeCaptures([a, b], 'links'))
  a.loses(3)
  b.loses(40)
  a.loses(4)
  for (const it of [a, b]) it.end()
  expect((await merged).reader.lost).toBe(47)
})

test('the end of a link is said, and the others go on', async () => {
  const [a, b] = [source('a'), source('b')]
  const merged = read(mergeCaptures([a, b], 'links'))
  a.frames(1)
  await a.fail('the compute R cannot be reached')
  b.frames(2)
  b.end()
  const { frames, reader } = await merged
  expect(frames.map(place)).toEqual(['0@1', '1@2'])
  expect(reader.notes).toEqual([
    'a: the capture ended: the compute R cannot be reached',
    'b: the capture ended: the link is gone',
  ])
})

test('a reader that does not read holds a bounded number of bytes', async () => {
  const it = source('a')
  const stream = mergeCaptures([it], 'links').getReader()
  const many = Array.from({ length: 5000 }, (_, index) => index)
  let pieces = 0
  for (; pieces < 50; pieces++) it.frames(...many)
  it.end()
  const reader = new CaptureReader()
  let frames = 0
  for (;;) {
    const { done, value } = await stream.read()
    if (done) break
    expect(value.length).toBeLessThan(200_000)
    frames += reader.push(value).length
  }
  expect(frames).toBe(pieces * many.length)
})

test('frames belong to the link whose capture they came with, whatever that says itself', async () => {
  const own = new CaptureReader().push(Buffer.concat([pcapHeader(1), recordHead(1, 5, 4), Buffer.from('abcd')]))
  const both = ['a', 'b'].map((name) => ({ name, linkType: 1 }))
  const frames = own.map((it) => ({ ...it, interfaceNumber: 1 }))
  const lying = Buffer.concat([pcapngHead(both, ''), packetBlocks(frames)])
  const pcap = new Blob([lying]).stream()
  const merged = await read(mergeCaptures([{ name: 'a', linkType: 1, pcap }], 'one link'))
  expect(merged.frames.map(place)).toEqual(['0@5'])
})
