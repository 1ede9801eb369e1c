import { expect, test } from 'vitest'
import { compileBpf } from '../../runtime/node/dataplane/bpf/compile.ts'
import { compileFilters } from '../../runtime/node/dataplane/filters/compile.ts'
import type { Filters } from '../../src/model/schema/filters.ts'
import { requireLibpcap } from '../support/require.ts'
import { describeWith } from '../support/test-with.ts'

const libpcap = requireLibpcap()

const refusal = (message: string) => expect.objectContaining({ status: 400, message: expect.stringContaining(message) })

test('without filters there are no stages', () => {
  expect(compileFilters()).toEqual([])
  expect(compileFilters({})).toEqual([])
})

test('a filter is off when its first parameter is 0 or ""', () => {
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

test('given parameters are used, also when they are 0', () => {
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

describeWith(libpcap)('bpf', () => {
  test('each line with text is a program', () => {
    expect(compileFilters({ bpf: ['arp\n\n  \nicmp or tcp port 22\n'] })).toEqual([
      { type: 'bpf', programs: [compileBpf('arp', 1), compileBpf('icmp or tcp port 22', 1)] },
    ])
    expect(compileFilters({ bpf: ['\n  \n'] })).toEqual([])
  })

  test.for([
    // The numbers of libpcap (pcap/dlt.h), which are not always those in a file.
    ['ethernet', 'DLT_EN10MB', 1],
    ['ethernet', 'EN10MB', 1],
    ['ethernet', undefined, 1],
    ['serial', 'DLT_PPP_SERIAL', 50],
    ['serial', 'DLT_ATM_RFC1483', 11],
    ['serial', 'DLT_C_HDLC', 104],
    ['serial', 'FRELAY', 107],
    ['serial', undefined, 104],
  ] as const)('expressions for a line that is %s are compiled for the link type %s', ([line, name, number]) => {
    const bpf = name === undefined ? ['ip'] : ['ip', name]
    expect(compileFilters({ bpf }, line)).toEqual([{ type: 'bpf', programs: [compileBpf('ip', number)] }])
  })

  test('a link type that the line does not have is refused', () => {
    expect(() => compileFilters({ bpf: ['ip', 'DLT_C_HDLC'] })).toThrow(
      refusal('filters.bpf[1]: an Ethernet port has no DLT_C_HDLC frames, expected DLT_EN10MB'),
    )
    expect(() => compileFilters({ bpf: ['ip', 'EN10MB'] }, 'serial')).toThrow(
      refusal('filters.bpf[1]: a serial port has no DLT_EN10MB frames, expected one of DLT_C_HDLC'),
    )
  })

  test.for([
    ['ether host 00:11:22:33:44:55', 'DLT_C_HDLC'],
    ['vlan 3', 'DLT_PPP_SERIAL'],
    ['arp', 'DLT_FRELAY'],
  ] as const)('%s is refused on a serial line, and the message says how it was read', ([expression, name]) => {
    expect(() => compileFilters({ bpf: [expression, name] }, 'serial')).toThrow(
      refusal(`frames of this port are read as ${name}`),
    )
  })

  test('an expression or a link type that is wrong is refused', () => {
    expect(() => compileFilters({ bpf: ['arp\ntcp and foo'] })).toThrow(refusal('foo'))
    for (const name of ['DLT_NONE', '1', '', 'toString']) {
      expect(() => compileFilters({ bpf: ['ip', name] }), name).toThrow(refusal('filters.bpf[1]: unknown link type'))
    }
  })
})
