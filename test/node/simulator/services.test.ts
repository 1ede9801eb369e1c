import { expect, test } from 'vitest'
import { formatIp4, parseMac, withInterfaceId } from '../../../runtime/node/simulator/stack/address.ts'
import { checksum, fold, read16, read32, sum16, write16, write32 } from '../../../runtime/node/simulator/stack/bytes.ts'
import { ethernetHead, etherType, newFrame } from '../../../runtime/node/simulator/stack/ethernet.ts'
import type { Packet } from '../../../runtime/node/simulator/stack/host-stack.ts'
import { Ip4, protocol } from '../../../runtime/node/simulator/stack/ip4.ts'
import { Net } from '../../../runtime/node/simulator/stack/net.ts'
import { ip, server } from './server.ts'
import { Wire as NewWire, TestPc, type Wire } from './wire.ts'

const options = (...list: readonly (readonly number[])[]) => list.flat()

function dhcp(
  reply: 'offers' | 'refuses',
): (from: number, fromPort: number, toPort: number, data: Uint8Array) => [number, Uint8Array] | undefined {
  return (_, __, toPort, data) => {
    if (toPort !== 67) return undefined
    const type = data[242] === 1 ? 2 : reply === 'offers' ? 5 : 6
    const message = new Uint8Array(300)
    message.set(data.subarray(0, 240))
    message[0] = 2
    write32(message, 16, ip('10.0.0.50'))
    message.set(
      options(
        [53, 1, type],
        [54, 4, 10, 0, 0, 1],
        [51, 4, 0, 0, 14, 16],
        [1, 4, 255, 255, 255, 0],
        [3, 4, 10, 0, 0, 1],
        [6, 4, 10, 0, 0, 1],
        [15, 3, 108, 97, 98],
        [255],
      ),
      240,
    )
    return [67, message]
  }
}

test('an address is obtained by DHCP, with its options', async () => {
  const wire = new NewWire()
  server(wire, '10.0.0.1', dhcp('offers'))
  const pc = await TestPc.boot(wire, 1)
  expect(await pc.run('dhcp')).toBe('DORA IP 10.0.0.50/24 GW 10.0.0.1\r\n')
  const shown = await pc.run('show ip')
  expect(shown).toContain('IP/MASK     : 10.0.0.50/24')
  expect(shown).toContain('DNS         : 10.0.0.1')
  expect(shown).toContain('DHCP SERVER : 10.0.0.1')
  expect(shown).toContain('DOMAIN NAME : lab')
  expect(await pc.run('ping 10.0.0.1 -c 1')).toContain('84 bytes from 10.0.0.1')
  await pc.run('dhcp -x')
  expect(await pc.run('show ip')).toContain('IP/MASK     : 0.0.0.0/0')
})

test('a refusal of a DHCP server, and a missing server, are reported', async () => {
  const wire = new NewWire()
  server(wire, '10.0.0.1', dhcp('refuses'))
  const pc = await TestPc.boot(wire, 1)
  expect(await pc.run('ip dhcp')).toBe("DORDORDOR\r\nCan't find dhcp server\r\n")
  const alone = await TestPc.boot(new NewWire(), 2)
  expect(await alone.run('dhcp')).toBe("DDD\r\nCan't find dhcp server\r\n")
})

test('names are resolved', async () => {
  const wire = new NewWire()
  server(wire, '10.0.0.53', (_, __, toPort, data) => {
    if (toPort !== 53) return undefined
    const question = data.slice(12)
    const name = new TextDecoder().decode(question)
    const found = name.includes('www') && question.at(-3) === 1
    const answer = found ? options([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 0, 0, 53]) : []
    return [
      53,
      Uint8Array.from([
        data[0] ?? 0,
        data[1] ?? 0,
        0x81,
        0x80,
        0,
        1,
        0,
        found ? 1 : 0,
        0,
        0,
        0,
        0,
        ...question,
        ...answer,
      ]),
    ]
  })
  const pc = await TestPc.boot(wire, 1, 'ip 10.0.0.1/24', 'ip dns 10.0.0.53', 'ip domain lab.example')
  expect(await pc.run('ping www -c 1')).toMatch(/www resolved to 10\.0\.0\.53\r\n\r\n84 bytes from 10\.0\.0\.53/)
  expect(await pc.run('ping missing.example -c 1')).toContain('Cannot resolve missing.example')
})

/** A router between two wires: it only counts down, forwards and complains. */
function router(left: Wire, right: Wire): void {
  const sides = [
    { wire: left, mac: parseMac('02:00:00:00:01:01'), address: ip('10.0.0.254') },
    { wire: right, mac: parseMac('02:00:00:00:01:02'), address: ip('10.0.1.254') },
  ].map(({ wire, mac, address }) => {
    const net: Net = new Net(
      mac,
      wire.join((frame) => receive(frame)),
    )
    net.ip4.config = { address, prefix: 24, gateway: 0 }
    const receive = (frame: Uint8Array) => {
      net.receive(frame)
      const packet = read16(frame, 12) === etherType.ip4 ? new Ip4(mac, () => {}).parse(frame) : undefined
      if (packet !== undefined && packet.destination !== address) forward(net, packet)
    }
    return net
  })
  function forward(from: Net, packet: Packet<number>): void {
    if (packet.ttl <= 1) {
      const error = new Uint8Array(8 + 28)
      error[0] = 11
      error.set(packet.whole.subarray(0, 28), 8)
      write16(error, 2, checksum(error, 0, error.length))
      void from.ip4.send(packet.source, protocol.icmp, error)
      return
    }
    const out = sides.find((net) => (net.ip4.config?.address ?? 0) >>> 8 === packet.destination >>> 8)
    if (out === undefined) return
    void out.ip4.neighbours.resolve(String(packet.destination)).then((to) => {
      if (to === undefined) return
      const frame = newFrame(to, out.mac, etherType.ip4, packet.whole.length)
      frame.set(packet.whole, ethernetHead)
      frame[ethernetHead + 8] = packet.ttl - 1
      write16(frame, ethernetHead + 10, 0)
      write16(frame, ethernetHead + 10, checksum(frame, ethernetHead, ethernetHead + 20))
      ;(out === sides[0] ? toLeft : toRight)(frame)
    })
  }
  const toLeft = left.join(() => {})
  const toRight = right.join(() => {})
}

test('a gateway is used, and a trace shows it', async () => {
  const [left, right] = [new NewWire(), new NewWire()]
  router(left, right)
  const [one] = await Promise.all([
    TestPc.boot(left, 1, 'ip 10.0.0.1/24 10.0.0.254'),
    TestPc.boot(right, 2, 'ip 10.0.1.1/24 10.0.1.254'),
  ])
  expect(await one.run('ping 10.0.1.1 -c 1')).toContain('84 bytes from 10.0.1.1 icmp_seq=1 ttl=63')
  expect(await one.run('ping 10.0.1.1 -c 1 -T 1')).toContain('*10.0.0.254 icmp_seq=1 ttl=64')
  const traced = await one.run('trace 10.0.1.1')
  expect(traced).toMatch(/^trace to 10\.0\.1\.1, 8 hops max, press Ctrl\+C to stop\r\n 1 {2}10\.0\.0\.254 {2}\d/)
  expect(traced).toMatch(/ 2 {2}\*10\.0\.1\.1 {2}[\d.]+ ms \(ICMP type:3, code:3, Destination port unreachable\)\r\n$/)
})

test('a router advertisement gives an address, a router and an MTU', async () => {
  const wire = new NewWire()
  const mac = parseMac('02:00:00:00:00:99')
  const linkLocal = withInterfaceId(Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0), mac)
  const send = wire.join((frame) => {
    if (read16(frame, 12) !== etherType.ip6 || frame[ethernetHead + 40] !== 133) return
    const message = Uint8Array.from([
      134,
      0,
      0,
      0,
      64,
      0,
      0x07,
      0x08,
      ...new Array(8).fill(0),
      ...[5, 1, 0, 0, 0, 0, 0x05, 0x78],
      ...[3, 4, 64, 0xc0, ...new Array(12).fill(0), 0x20, 1, 0xd, 0xb8, 0, 7, 0, 0, ...new Array(8).fill(0)],
    ])
    const all = Uint8Array.of(0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    const answer = newFrame(Uint8Array.of(0x33, 0x33, 0, 0, 0, 1), mac, etherType.ip6, 40 + message.length)
    answer[ethernetHead] = 0x60
    write16(answer, ethernetHead + 4, message.length)
    answer.set([58, 255, ...linkLocal, ...all], ethernetHead + 6)
    const pseudo = sum16(linkLocal, 0, 16) + sum16(all, 0, 16) + message.length + 58
    write16(message, 2, fold(sum16(message, 0, message.length, pseudo)))
    answer.set(message, ethernetHead + 40)
    send(answer)
  })
  const pc = await TestPc.boot(wire, 1)
  expect(await pc.run('ip auto')).toBe('GLOBAL SCOPE      : 2001:db8:7:0:250:79ff:fe66:6801/64\r\n')
  const shown = await pc.run('show ipv6')
  expect(shown).toContain('ROUTER LINK-LAYER : 02:00:00:00:00:99')
  expect(shown).toContain('MTU               : 1400')
})

test('the checksum is that of RFC 1071', () => {
  const example = Uint8Array.of(0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7)
  expect(checksum(example, 0, 8)).toBe(0x220d)
  expect(read32(Uint8Array.of(255, 255, 255, 255), 0)).toBe(0xffffffff)
  expect(formatIp4(0xc0a80001)).toBe('192.168.0.1')
})
