import { describe, expect, test } from 'vitest'
import { compileBpf } from '../../../runtime/node/bpf/compile.ts'
import { compileFilters } from '../../../runtime/node/nodes/filters.ts'
import type { Filters } from '../../../src/model/filters.ts'
import { requireProgram } from '../../support/require.ts'

// libpcap comes with it.
const { skip } = requireProgram('tcpdump')

const refusal = (message: string) => expect.objectContaining({ status: 400, message: expect.stringContaining(message) })

test('no filters are none', () => {
  expect(compileFilters()).toEqual([])
  expect(compileFilters({})).toEqual([])
})

test('a first parameter of 0 or "" means off, whatever follows', () => {
  const off: Required<Filters> = {
    frequency_drop: [0],
    packet_loss: [0],
    delay: [0, 10],
    corrupt: [0],
    bpf: ['', 'no link type'],
    rate: [0, 16, 100],
    duplicate: [0],
    reorder: [0, 10],
  }
  expect(compileFilters(off)).toEqual([])
  expect(compileFilters({ ...off, packet_loss: [5] })).toEqual([{ type: 'packet_loss', percent: 5 }])
})

test('parameters that are left out have their defaults', () => {
  expect(compileFilters({ delay: [20], rate: [2000], reorder: [25] })).toEqual([
    { type: 'delay', ms: 20, jitter_ms: 0 },
    { type: 'rate', kbps: 2000, burst_kb: 16, queue_ms: 100 },
    { type: 'reorder', percent: 25, ms: 10 },
  ])
  expect(compileFilters({ rate: [2000, 32] })).toEqual([{ type: 'rate', kbps: 2000, burst_kb: 32, queue_ms: 100 }])
})

test('parameters that are given count, also those that are 0', () => {
  expect(
    compileFilters({
      frequency_drop: [-1],
      packet_loss: [0.5],
      delay: [20, 5],
      corrupt: [100],
      rate: [64, 0, 0],
      duplicate: [1],
      reorder: [100, 0],
    }),
  ).toEqual([
    { type: 'frequency_drop', every: -1 },
    { type: 'packet_loss', percent: 0.5 },
    { type: 'delay', ms: 20, jitter_ms: 5 },
    { type: 'corrupt', percent: 100 },
    { type: 'rate', kbps: 64, burst_kb: 0, queue_ms: 0 },
    { type: 'duplicate', percent: 1 },
    { type: 'reorder', percent: 100, ms: 0 },
  ])
})

test('filters keep the order of the object', () => {
  const types = (filters: Filters) => compileFilters(filters).map(({ type }) => type)
  expect(types({ corrupt: [1], delay: [1], packet_loss: [1] })).toEqual(['corrupt', 'delay', 'packet_loss'])
  expect(types({ packet_loss: [1], delay: [1], corrupt: [1] })).toEqual(['packet_loss', 'delay', 'corrupt'])
})

test('a chance of more than 100 and an unknown filter are refused', () => {
  expect(() => compileFilters({ reorder: [101] })).toThrow(refusal('filters.reorder[0]'))
  expect(() => compileFilters({ teleport: [1] } as Filters)).toThrow(refusal('filters.teleport: unknown filter'))
})

describe.skipIf(skip)('bpf', () => {
  test('every line is a program, lines without text are none', () => {
    expect(compileFilters({ bpf: ['arp\n\n  \nicmp or tcp port 22\n'] })).toEqual([
      { type: 'bpf', programs: [compileBpf('arp', 1), compileBpf('icmp or tcp port 22', 1)] },
    ])
    expect(compileFilters({ bpf: ['\n  \n'] })).toEqual([])
  })

  test.for([
    // The numbers of libpcap (pcap/dlt.h), which are not always those in a file.
    ['DLT_EN10MB', 1],
    ['EN10MB', 1],
    ['DLT_PPP_SERIAL', 50],
    ['DLT_ATM_RFC1483', 11],
    ['DLT_C_HDLC', 104],
    ['FRELAY', 107],
  ] as const)('expressions are compiled for the link type %s', ([name, number]) => {
    expect(compileFilters({ bpf: ['ip', name] })).toEqual([{ type: 'bpf', programs: [compileBpf('ip', number)] }])
  })

  test('an expression or a link type that is wrong is refused', () => {
    expect(() => compileFilters({ bpf: ['arp\ntcp and foo'] })).toThrow(refusal('foo'))
    for (const name of ['DLT_NONE', '1', '', 'toString']) {
      expect(() => compileFilters({ bpf: ['ip', name] }), name).toThrow(refusal('filters.bpf[1]: unknown link type'))
    }
  })
})
