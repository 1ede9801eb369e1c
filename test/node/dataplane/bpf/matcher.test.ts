import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import { compileBpf } from '../../../../runtime/node/dataplane/bpf/compile.ts'
import { bpfMatcher } from '../../../../runtime/node/dataplane/bpf/matcher.ts'
import type { BpfInstruction, BpfProgram } from '../../../../runtime/node/dataplane/bpf/program.ts'
import { requireProgram } from '../../../support/require.ts'
import { describeWith } from '../../../support/test-with.ts'
import { Random, randomFrame } from '../switch/random-frames.ts'

const tcpdump = requireProgram('tcpdump')
const ethernet = 1

const random = new Random(20_260)
const frames = Array.from({ length: 2000 }, () => randomFrame(random))

/** A pcap file whose frames are stamped with their number. */
function capture(): Buffer {
  const header = Buffer.alloc(24)
  header.writeUInt32LE(0xa1b2c3d4, 0)
  header.writeUInt16LE(2, 4)
  header.writeUInt16LE(4, 6)
  header.writeUInt32LE(65_535, 16)
  header.writeUInt32LE(ethernet, 20)
  const records = frames.flatMap((frame, number) => {
    const record = Buffer.alloc(16)
    record.writeUInt32LE(number, 0)
    record.writeUInt32LE(frame.length, 8)
    record.writeUInt32LE(frame.length, 12)
    return [record, frame]
  })
  return Buffer.concat([header, ...records])
}

/** The numbers of the frames that tcpdump lets through. */
function tcpdumpOf(expression: string): number[] {
  const written = execFileSync('tcpdump', ['-r', '-', '-w', '-', '--', expression], {
    input: capture(),
    stdio: ['pipe', 'pipe', 'ignore'],
    maxBuffer: 1 << 26,
  })
  const numbers: number[] = []
  for (let at = 24; at < written.length; at += 16 + written.readUInt32LE(at + 8)) numbers.push(written.readUInt32LE(at))
  return numbers
}

describeWith(tcpdump)('the frames that match are those that tcpdump shows', () => {
  test.for([
    'arp',
    'ip',
    'ip6',
    'not ip and not ip6',
    'tcp',
    'udp port 53',
    'tcp port 80 or tcp port 443',
    'src port 1000',
    'dst portrange 1000-2000',
    'port domain or https',
    'host 10.0.0.1',
    'src host 10.0.0.1 and dst host 10.0.1.2',
    'net 10.0.1.0/24',
    'ip6 host fe80::2',
    'ether src 02:00:00:00:00:01',
    'ether broadcast',
    'ether multicast and not ip',
    'vlan',
    'vlan 7 and udp',
    'arp or (vlan and arp)',
    'icmp[icmptype] = icmp-echo',
    'icmp6',
    'tcp[tcpflags] & (tcp-syn|tcp-ack) = tcp-syn',
    'less 64',
    'greater 100 and len < 120',
    'ip[6:2] & 0x1fff != 0',
    '((ip[2:2] - ((ip[0] & 0xf) << 2)) - ((tcp[12] & 0xf0) >> 2)) != 0',
    'ether[len - 1] > 127',
    'ip[8] * 3 % 5 = 1 or ip[8] / 7 ^ 3 = 1',
    'ether[100 % ether[20]] > 64',
    '1 << (ip[8] & 63) > 4096',
    '-ip[8] > 0xffffffe0',
    'ether[14:4] >= 0x80000000 or ip[12:4] = 0x0a000001',
  ])('%s', (expression) => {
    const matches = bpfMatcher(compileBpf(expression, ethernet))
    const found = tcpdumpOf(expression)
    expect(frames.flatMap((frame, number) => (matches(frame, 0, frame.length) ? [number] : []))).toEqual(found)
    expect(found.length).toBeGreaterThan(0)
    expect(found.length).toBeLessThan(frames.length)
  })

  test('at any position of the frame in its buffer, with any bytes around it', () => {
    const matches = bpfMatcher(compileBpf('udp port 53 or greater 100', ethernet))
    for (const frame of frames.slice(0, 200)) {
      const around = Uint8Array.from([...random.bytes(33), ...frame, ...random.bytes(80)])
      expect(matches(around, 33, frame.length)).toBe(matches(frame, 0, frame.length))
    }
  })
})

const ret = (k: number): BpfInstruction => [0x06, 0, 0, k]
const load = (k: number): BpfInstruction => [0x00, 0, 0, k]
const index = (k: number): BpfInstruction => [0x01, 0, 0, k]
const verdict = (...program: BpfProgram) => bpfMatcher(program)(Uint8Array.of(1, 2, 3, 0x84), 0, 4)
/** What is in the accumulator after the instructions. */
const isLeft = (value: number, ...before: BpfProgram) => verdict(...before, [0x15, 0, 1, value], ret(1), ret(0))

describe('the arithmetic is that of the kernel', () => {
  test('sums, products and negatives wrap at 32 bits, without a sign', () => {
    expect(isLeft(1, load(0xffff_ffff), [0x04, 0, 0, 2])).toBe(true)
    expect(isLeft(0xffff_ffff, load(1), [0x14, 0, 0, 2])).toBe(true)
    expect(isLeft(1, load(0xffff_ffff), [0x24, 0, 0, 0xffff_ffff])).toBe(true)
    expect(isLeft(0xffff_fffe, load(2), [0x84, 0, 0, 0])).toBe(true)
    expect(isLeft(0, load(0), [0x84, 0, 0, 0])).toBe(true)
    expect(isLeft(0x7fff_ffff, load(0xffff_ffff), [0x34, 0, 0, 2])).toBe(true)
    expect(isLeft(0xffff_fff0, load(0xffff_ffff), [0x54, 0, 0, 0xffff_fff0])).toBe(true)
    expect(isLeft(0x8000_0001, load(1), [0x44, 0, 0, 0x8000_0000])).toBe(true)
    expect(isLeft(0xffff_ffff, load(0x0f0f_0f0f), [0xa4, 0, 0, 0xf0f0_f0f0])).toBe(true)
  })

  test('shifts by 32 and more leave nothing', () => {
    expect(isLeft(0x8000_0000, load(1), [0x64, 0, 0, 31])).toBe(true)
    expect(isLeft(0, load(1), [0x64, 0, 0, 32])).toBe(true)
    expect(isLeft(0, load(0xffff_ffff), index(32), [0x7c, 0, 0, 0])).toBe(true)
    expect(isLeft(0, load(0xffff_ffff), index(0xffff_ffff), [0x6c, 0, 0, 0])).toBe(true)
  })

  test('a division by zero is no match', () => {
    for (const code of [0x34, 0x94]) expect(verdict(load(1), [code, 0, 0, 0], ret(1))).toBe(false)
    for (const code of [0x3c, 0x9c]) expect(verdict(load(1), index(0), [code, 0, 0, 0], ret(1))).toBe(false)
  })

  test('conditions compare without a sign, with numbers and with X', () => {
    expect(verdict(load(0x8000_0000), [0x25, 0, 1, 0x7fff_ffff], ret(1), ret(0))).toBe(true)
    expect(verdict(load(0x8000_0000), index(0x8000_0000), [0x3d, 0, 1, 0], ret(1), ret(0))).toBe(true)
    expect(verdict(load(0x8000_0000), [0x45, 0, 1, 0x8000_0000], ret(1), ret(0))).toBe(true)
  })

  test('scratch memory, transfers, lengths and the accumulator as the result', () => {
    expect(isLeft(7, load(7), [0x02, 0, 0, 15], load(0), [0x61, 0, 0, 15], [0x87, 0, 0, 0])).toBe(true)
    expect(isLeft(9, index(9), [0x03, 0, 0, 0], load(1), [0x07, 0, 0, 0], [0x60, 0, 0, 0])).toBe(true)
    expect(isLeft(4, [0x80, 0, 0, 0])).toBe(true)
    expect(isLeft(4, [0x81, 0, 0, 0], [0x87, 0, 0, 0])).toBe(true)
    expect(verdict(load(5), [0x16, 0, 0, 0])).toBe(true)
    expect(verdict(load(0), [0x16, 0, 0, 0])).toBe(false)
  })

  test('scratch memory holds nothing of the frame before', () => {
    const matches = bpfMatcher([[0x60, 0, 0, 3], [0x15, 0, 3, 0], load(1), [0x02, 0, 0, 3], ret(1), ret(0)])
    expect([matches(new Uint8Array(1), 0, 1), matches(new Uint8Array(1), 0, 1)]).toEqual([true, true])
  })
})

test('a load that reaches beyond the frame is no match, even where the buffer goes on', () => {
  const matches = (...program: BpfProgram) => bpfMatcher([...program, ret(1)])(new Uint8Array(64), 8, 4)
  expect(matches([0x20, 0, 0, 0])).toBe(true)
  expect(matches([0x20, 0, 0, 1])).toBe(false)
  expect(matches([0x28, 0, 0, 3])).toBe(false)
  expect(matches([0x30, 0, 0, 4])).toBe(false)
  expect(matches([0xb1, 0, 0, 4])).toBe(false)
  expect(matches(index(2), [0x48, 0, 0, 1])).toBe(false)
  expect(matches(index(0xffff_ffff), [0x50, 0, 0, 2])).toBe(true)
  expect(matches(index(0xffff_ffff), [0x50, 0, 0, 0])).toBe(false)
  // SKF_AD_VLAN_TAG_PRESENT: what only the kernel knows.
  expect(matches([0x30, 0, 0, 0xffff_f030])).toBe(false)
})

test('four times the low half of a byte is the length of an IP header', () => {
  expect(isLeft(16, [0xb1, 0, 0, 3], [0x87, 0, 0, 0])).toBe(true)
})

test.for<[string, BpfProgram]>([
  ['nothing', []],
  ['no return at the end', [load(1)]],
  ['a jump beyond the end', [[0x15, 0, 1, 0], ret(0)]],
  ['a jump backward', [load(1), [0x05, 0, 0, 0xffff_fffe], ret(0)]],
  ['an unknown code', [[0xff, 0, 0, 0], ret(0)]],
  ['memory that is not there', [[0x60, 0, 0, 16], ret(0)]],
  ['a fraction', [load(1.5), ret(0)]],
  ['a negative number', [load(-1), ret(0)]],
  ['too large a number', [load(2 ** 32), ret(0)]],
  ['a text', [JSON.parse('[0, 0, 0, "1;process.exit()"]') as BpfInstruction, ret(0)]],
  ['too few numbers', [JSON.parse('[6, 0, 0]') as BpfInstruction]],
  ['too many instructions', Array.from({ length: 4097 }, () => ret(0))],
])('a program is refused that has %s', ([, program]) => {
  expect(() => bpfMatcher(program)).toThrow(/BPF program/)
})

test('the longest possible program is compiled', () => {
  const steps = Array.from({ length: 2046 }, (): BpfInstruction[] => [
    [0x04, 0, 0, 1],
    [0x15, 0, 0, 5000],
  ]).flat()
  expect(isLeft(2046, ...steps)).toBe(true)
})
