import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lossRecord, pcapHeader } from '../../../runtime/node/dataplane/capture/pcap-file.ts'
import { CaptureReader } from '../../../src/packets/capture-reader.ts'
import { pcapng } from '../../../src/packets/pcapng.ts'
import { freshDirectory } from '../../support/directory.ts'
import { recordHead } from '../../support/pcap.ts'
import { requireProgram } from '../../support/require.ts'
import { testWith } from '../../support/test-with.ts'

const tshark = requireProgram('tshark')
const capinfos = requireProgram('capinfos')

const names = { interfaceName: 'PC1 0/0', comment: 'Adapter 0, port 0 of the pc PC1' }
const frames = fc.array(fc.record({ micros: fc.nat(999_999), bytes: fc.uint8Array({ maxLength: 80 }) }), {
  maxLength: 12,
})

test('pieces may be cut anywhere: the frames come out with their times, and nothing else', async () => {
  await fc.assert(
    fc.asyncProperty(frames, fc.array(fc.nat()), fc.string({ unit: 'grapheme' }), async (made, cuts, comment) => {
      const pcap = Buffer.concat([pcapHeader(1), ...made.map(({ micros, bytes }) => record(12, micros, bytes))])
      const whole = Buffer.concat(await through(pieces(pcap, cuts), { ...names, comment }))
      const [section, description, ...packets] = blocks(whole)
      expect([section?.type, description?.type]).toEqual([0x0a0d0d0a, 1])
      // Byte order, version, length not known; then the comment.
      expect(section?.body.subarray(0, 16)).toEqual(Buffer.from('4d3c2b1a01000000ffffffffffffffff', 'hex'))
      expect(section?.body.readUInt16LE(18)).toBe(Buffer.byteLength(comment))
      expect(section?.body.subarray(20).toString()).toMatch(comment)
      expect(description?.body.readUInt16LE(0)).toBe(1)
      expect(packets).toEqual(made.map(({ micros, bytes }) => ({ type: 6, body: expectedPacket(12, micros, bytes) })))
    }),
    { numRuns: 100 },
  )
})

test('lost frames are in the statistics of the interface, and are not frames', async () => {
  const made = [record(12, 1, Buffer.from('one')), lossRecord(40), record(13, 1, Buffer.from('two')), lossRecord(2)]
  const whole = Buffer.concat(await through([pcapHeader(1), ...made], names))
  const found = blocks(whole).slice(2)
  expect(found.map(({ type }) => type)).toEqual([6, 5, 6, 5])
  // The option isb_ifdrop, 8 bytes, counts from the beginning.
  const drops = found
    .filter(({ type }) => type === 5)
    .map(({ body }) => [body.readUInt16LE(12), body.readBigUInt64LE(16)])
  expect(drops).toEqual([
    [5, 40n],
    [5, 42n],
  ])
})

test('a name that is too long is cut at a character, and the blocks stay whole', async () => {
  const long = 'é'.repeat(40_000)
  const whole = Buffer.concat(await through([pcapHeader(1)], { interfaceName: `x${long}`, comment: long }))
  expect(blocks(whole).map(({ type }) => type)).toEqual([0x0a0d0d0a, 1])
  const reader = new CaptureReader()
  reader.push(whole)
  expect(reader.interfaces).toMatchObject([{ name: `x${'é'.repeat(127)}` }])
})

test('an incomplete frame waits; frames before it do not', async () => {
  const one = record(1, 2, Buffer.from('first'))
  const two = record(3, 4, Buffer.from('second'))
  const out = await through([Buffer.concat([pcapHeader(104), one, two.subarray(0, 20)])])
  const [, description, ...packets] = blocks(Buffer.concat(out))
  expect(description?.body.readUInt16LE(0)).toBe(104)
  expect(packets.map(({ body }) => body)).toEqual([expectedPacket(1, 2, Buffer.from('first'))])
})

test('the beginning comes with the header, before any frame', async () => {
  const { readable, writable } = pcapng(names)
  const writer = writable.getWriter()
  const reader = readable.getReader()
  void writer.write(pcapHeader(1))
  const { value } = await reader.read()
  expect(blocks(Buffer.from(value ?? [])).map(({ type }) => type)).toEqual([0x0a0d0d0a, 1])
  await Promise.all([writer.close(), reader.read()])
})

test('a stream that is not a capture fails', async () => {
  const other = Buffer.from(pcapHeader(1))
  other.writeUInt32LE(0xa1b2c3d5)
  await expect(through([other])).rejects.toThrow('this is neither pcap nor pcapng')
  const long = record(0, 0, Buffer.alloc(0))
  long.writeUInt32LE(2 ** 20 + 1, 8)
  await expect(through([pcapHeader(1), long])).rejects.toThrow('the capture holds a record that is too long')
})

testWith(tshark, capinfos)('Wireshark reads frames, their times, the interface and the comment', async () => {
  const interfaceName = 'Bürorechner 0/0'
  const comment = 'Adapter 0, port 0 of the pc Bürorechner (é)'
  const arp = Buffer.from(
    'ffffffffffff00507966680008060001080006040001005079666800 0a000001000000000000 0a000002'.replaceAll(' ', ''),
    'hex',
  )
  const pcap = [pcapHeader(1), record(1_700_000_000, 123_456, arp), record(1_700_000_001, 7, arp.subarray(0, 41))]
  const file = join(await freshDirectory(), 'two.pcapng')
  writeFileSync(file, Buffer.concat(await through(pcap, { interfaceName, comment })))
  const fields = ['frame.time_epoch', 'frame.len', 'frame.interface_name', 'eth.src', 'arp.dst.proto_ipv4']
  const read = execFileSync('tshark', ['-r', file, '-T', 'fields', ...fields.flatMap((field) => ['-e', field])], {
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  const rows = String(read).trimEnd().split('\n')
  expect(rows.map((row) => row.split('\t').slice(0, 4))).toEqual([
    ['1700000000.123456000', '42', interfaceName, '00:50:79:66:68:00'],
    ['1700000001.000007000', '41', interfaceName, '00:50:79:66:68:00'],
  ])
  expect(rows[0]).toMatch('10.0.0.2')
  const infos = String(execFileSync('capinfos', [file]))
  expect(infos).toMatch(/File type: +Wireshark\/\.\.\. - pcapng/)
  expect(infos).toMatch(/Number of packets: +2\n/)
  expect(infos).toContain(comment)
  expect(infos).toContain(`Name = ${interfaceName}`)
  expect(infos).toContain('Patchbay')
})

const record = (seconds: number, micros: number, bytes: Uint8Array): Buffer =>
  Buffer.concat([recordHead(seconds, micros, bytes.length), bytes])

/** The body of an enhanced packet block. */
function expectedPacket(seconds: number, micros: number, bytes: Uint8Array): Buffer {
  const head = Buffer.alloc(20)
  const time = BigInt(seconds) * 1_000_000n + BigInt(micros)
  head.writeUInt32LE(Number(time >> 32n), 4)
  head.writeUInt32LE(Number(time & 0xffffffffn), 8)
  head.writeUInt32LE(bytes.length, 12)
  head.writeUInt32LE(bytes.length, 16)
  return Buffer.concat([head, bytes, Buffer.alloc((4 - (bytes.length % 4)) % 4)])
}

function pieces(whole: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...new Set(cuts.map((cut) => cut % (whole.length + 1)))].sort((a, b) => a - b)
  return [0, ...ends].map((from, index) => whole.subarray(from, ends[index] ?? whole.length))
}

async function through(input: readonly Uint8Array[], options = names): Promise<Uint8Array[]> {
  const out: Uint8Array[] = []
  const stream = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of input) controller.enqueue(piece)
      controller.close()
    },
  })
  for await (const piece of stream.pipeThrough(pcapng(options))) out.push(piece)
  return out
}

/** The blocks of a pcapng, which must follow each other without a gap. */
function blocks(bytes: Buffer): { type: number; body: Buffer }[] {
  const all: { type: number; body: Buffer }[] = []
  let place = 0
  while (place < bytes.length) {
    const total = bytes.readUInt32LE(place + 4)
    expect(total % 4).toBe(0)
    expect(bytes.readUInt32LE(place + total - 4)).toBe(total)
    all.push({ type: bytes.readUInt32LE(place), body: bytes.subarray(place + 8, place + total - 4) })
    place += total
  }
  expect(place).toBe(bytes.length)
  return all
}
