import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import { pcapngHead } from '../../../src/packets/pcapng.ts'
import { freshDirectory } from '../../support/directory.ts'
import { samples } from '../../support/packet-samples.ts'
import { pcapOf, recordHead } from '../../support/pcap.ts'
import { requireProgram } from '../../support/require.ts'
import { testWith } from '../../support/test-with.ts'

const frames = samples.filter(({ linkType }) => linkType === 1).map(({ frame }) => frame)

testWith(requireProgram('editcap')).for(['pcap', 'nsecpcap', 'pcapng'])(
  'reads %s as Wireshark writes it',
  async (format) => {
    const directory = await freshDirectory()
    const [from, to] = [join(directory, 'from.pcap'), join(directory, `to.${format}`)]
    writeFileSync(from, pcapOf(1, frames))
    execFileSync('editcap', ['-F', format, from, to], { stdio: 'ignore' })
    const reader = new CaptureReader()
    const file = readFileSync(to)
    const read = reader.push(file)
    expect(read.map(({ bytes }) => Buffer.from(bytes))).toEqual(frames)
    expect(read.map(({ seconds, nanos }) => [seconds, nanos])).toEqual(frames.map((_, index) => [index, 0]))
    expect([reader.linkType, reader.whole.length]).toEqual([1, file.length])
  },
)

test('reads big-endian captures, and times in nanoseconds', () => {
  const big = (...values: number[]): Buffer => {
    const bytes = Buffer.alloc(values.length * 4)
    for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, index * 4)
    return bytes
  }
  const pcap = Buffer.concat([
    big(0xa1b23c4d, 0x00020004, 0, 0, 65_535, 104),
    big(7, 123_456_789, 2, 60),
    Buffer.from('ab'),
  ])
  expect(new CaptureReader().push(pcap)).toEqual([
    { seconds: 7, nanos: 123_456_789, length: 60, linkType: 104, interfaceNumber: 0, bytes: Buffer.from('ab') },
  ])
})

test('frames are not copied when their piece holds them whole', () => {
  const pcap = pcapOf(1, frames)
  const read = new CaptureReader().push(pcap)
  expect(read.every(({ bytes }) => bytes.buffer === pcap.buffer)).toBe(true)
})

test('a capture has a bounded number of interfaces, each with a short name', () => {
  const name = 'x'.repeat(300)
  const head = (count: number) =>
    pcapngHead(
      Array.from({ length: count }, () => ({ name, linkType: 1 })),
      '',
    )
  const reader = new CaptureReader()
  reader.push(head(1000))
  expect(reader.interfaces).toHaveLength(1000)
  expect(reader.interfaces[0]?.name).toHaveLength(255)
  expect(() => new CaptureReader().push(head(1001))).toThrow('the capture has more than 1000 interfaces')
})

test('a damaged capture is a TypeError that says what is wrong', () => {
  const long = Buffer.concat([pcapOf(1, []), recordHead(0, 0, 2 ** 20 + 1)])
  expect(() => new CaptureReader().push(long)).toThrow('the capture holds a record that is too long')
  expect(() => new CaptureReader().push(Buffer.from('<html>'))).toThrow('this is neither pcap nor pcapng')
})
