import { expect, test } from 'vitest'
import { bytesOf } from '../../../../runtime/node/drivers/nat/addresses.ts'
import { FrameWriter } from '../../../../runtime/node/drivers/nat/frame-writer.ts'
import { NatGate } from '../../../../runtime/node/drivers/nat/gate.ts'
import { Policy } from '../../../../runtime/node/drivers/nat/policy.ts'
import { subnetOf } from '../../../../src/model/kinds/nat-subnet.ts'

const mac = Uint8Array.from([2, 0, 0, 0, 0, 1])
const prefix = bytesOf('fd00:1:2:3::')
const guest = { four: '10.0.0.20', six: 'fd00:1:2:3::20' } as const

function gate(reach: readonly string[] = []) {
  const bytes = new Uint8Array(4096)
  const writer = new FrameWriter(bytes, new DataView(bytes.buffer))
  const policy = new Policy({ reach, isLocal: true, isElsewhere: () => true })
  const six = { prefix: prefix.subarray(0, 8), gateway: bytesOf('fd00:1:2:3::1'), host: bytesOf('fd00:1:2:3::2') }
  const subnet = subnetOf('10.0.0.0/24') ?? expect.unreachable()
  const it = new NatGate({ subnet, six, policy, isForwardedUdp: (port) => port === 7 }, bytes)
  const write = (to: string, port: number, from = '', payload = new Uint8Array(16)) => {
    const source = from !== '' ? from : to.includes(':') ? guest.six : guest.four
    return writer.udp({ fromMac: mac, toMac: mac, from: bytesOf(source), to: bytesOf(to) }, 4000, port, payload)
  }
  /** What becomes of a datagram, changed by hand. */
  const judge = (to: string, port: number, change: (bytes: Uint8Array) => void = () => {}, from = '') => {
    const length = write(to, port, from)
    change(bytes)
    return it.judge(0, length)
  }
  return { it, bytes, judge, write }
}

test('passes frames that the policy allows, and refuses others with an error for the guest', () => {
  const { judge } = gate()
  for (const to of ['192.88.99.2', '2620:4f:8000::2']) expect(judge(to, 80)).toBe('pass')
  for (const to of ['127.0.0.1', '10.0.0.2', '::ffff:c058:6302', 'fd00:1:2:3::2']) expect(judge(to, 80)).toBe('refuse')
  for (const to of ['10.0.0.3', '10.0.0.255', '224.0.0.1', '255.255.255.255', 'fd00:1:2:3::3', 'ff02::1', 'fe80::2']) {
    expect(judge(to, 80)).toBe('drop')
  }
})

test('answers names and addresses itself, at the addresses of the nat alone', () => {
  const { judge } = gate()
  for (const to of ['10.0.0.1', 'fd00:1:2:3::1']) expect([judge(to, 53), judge(to, 54)]).toEqual(['dns', 'refuse'])
  expect([judge('10.0.0.1', 67), judge('255.255.255.255', 67, () => {}, '0.0.0.0')]).toEqual(['dhcp', 'dhcp'])
  expect(judge('ff02::1:2', 547)).toBe('pass')
  expect(judge('192.88.99.2', 53)).toBe('pass')
})

test('is not deceived by source addresses of other networks, or of the nat itself', () => {
  const { judge } = gate()
  for (const from of ['10.0.1.20', '10.0.0.1', '10.0.0.2', '10.0.0.0', '10.0.0.255', '127.0.0.1']) {
    expect(judge('192.88.99.2', 80, () => {}, from)).toBe('drop')
  }
  for (const from of ['fd00:1:2:4::20', 'fe80::20', '::1'])
    expect(judge('2620:4f:8000::2', 80, () => {}, from)).toBe('drop')
})

test('is not deceived by fragments, options, lengths and other protocols', () => {
  const { judge } = gate()
  const fragments = (bytes: Uint8Array) => void bytes.set([0x20, 0], 20)
  // The port in a fragment may be written over by the next one.
  expect([judge('10.0.0.1', 53, fragments), judge('10.0.0.2', 53, fragments)]).toEqual(['drop', 'refuse'])
  expect([judge('192.88.99.2', 80, fragments), judge('127.0.0.1', 80, fragments)]).toEqual(['pass', 'refuse'])
  expect(judge('192.88.99.2', 80, (bytes) => void bytes.set([0x44], 14))).toBe('drop')
  expect(judge('192.88.99.2', 80, (bytes) => void bytes.set([0xff, 0xff], 16))).toBe('drop')
  expect(judge('192.88.99.2', 80, (bytes) => void bytes.set([0x65], 14))).toBe('drop')
  expect(judge('10.0.0.1', 53, (bytes) => void bytes.set([132], 23))).toBe('drop')
  // A routing header (43), a fragment header (44) and IPv4 in IPv6 (4).
  for (const next of [0, 4, 41, 43, 44, 50, 60]) {
    expect(judge('2620:4f:8000::2', 80, (bytes) => void bytes.set([next], 20))).toBe('drop')
  }
  // VLAN tags, and the management of network cards that libslirp plays (NC-SI).
  for (const type of [
    [0x81, 0],
    [0x88, 0xf8],
    [0x88, 0xb5],
  ]) {
    expect(judge('192.88.99.2', 80, (bytes) => void bytes.set(type, 12))).toBe('drop')
  }
  for (let length = 0; length < 40; length++) expect(gate().it.judge(0, length)).toBe('drop')
})

test('passes answers to connections of a forwarded port, and nothing else to these addresses', () => {
  for (const [host, at] of [
    ['10.0.0.2', guest.four],
    ['fd00:1:2:3::2', guest.six],
    ['127.0.0.9', guest.four],
  ] as const) {
    const { it, bytes, judge, write } = gate()
    expect(judge(host, 5000)).toBe('refuse')
    // A datagram to the forwarded port 7 of the guest, from port 4000 there.
    write(at, 7, host)
    it.sent(bytes, new DataView(bytes.buffer), 0)
    const start = host.includes(':') ? 54 : 34
    const fromPort = (port: number) => (frame: Uint8Array) => void frame.set([port >> 8, port & 255], start)
    expect(judge(host, 4000, fromPort(7))).toBe('pass')
    expect([judge(host, 4000, fromPort(8)), judge(host, 4001, fromPort(7))]).toEqual(['refuse', 'refuse'])
    // Another datagram of libslirp is no beginning.
    write(at, 9, host)
    it.sent(bytes, new DataView(bytes.buffer), 0)
    expect(judge(host, 4000, fromPort(9))).toBe('refuse')
  }
})

test('opens the loopback of the host where the setting names it', () => {
  const { judge } = gate(['127.0.0.0/8', '::1'])
  for (const to of ['10.0.0.2', 'fd00:1:2:3::2']) expect(judge(to, 80)).toBe('pass')
  for (const to of ['10.0.0.1', 'fd00:1:2:3::1']) expect(judge(to, 80)).toBe('refuse')
})
