import { expect, onTestFinished, test, vi } from 'vitest'
import { formatIp4, parseMac, withInterfaceId } from '../../../../runtime/node/keeper/simulator/stack/address.ts'
import {
  checksum,
  fold,
  read16,
  read32,
  sum16,
  write16,
  write32,
} from '../../../../runtime/node/keeper/simulator/stack/bytes.ts'
import { ethernetHead, etherType, newFrame } from '../../../../runtime/node/keeper/simulator/stack/ethernet.ts'
import type { Packet } from '../../../../runtime/node/keeper/simulator/stack/host-stack.ts'
import { Ip4, protocol } from '../../../../runtime/node/keeper/simulator/stack/ip4.ts'
import { Net } from '../../../../runtime/node/keeper/simulator/stack/net.ts'
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

/** A DHCP server of the test, which answers in its own way: to an address and a MAC address, with these options. */
function dhcpServer(wire: Wire, optionsFor: (type: number) => number[], isUnicast: boolean) {
  const seen: Uint8Array[] = []
  const mac = parseMac('02:00:00:00:00:fd')
  const send = wire.join((frame) => {
    const packet = read16(frame, 12) === etherType.ip4 ? new Ip4(mac, () => {}).parse(frame) : undefined
    if (packet?.protocol !== protocol.udp || read16(packet.payload, 2) !== 67) return
    const data = packet.payload.slice(8)
    seen.push(data)
    const type = data[242] === 1 ? 2 : 5
    const message = new Uint8Array(300)
    message.set(data.subarray(0, 240))
    message[0] = 2
    write32(message, 16, ip('10.0.0.50'))
    message.set(options([53, 1, type], [54, 4, 10, 0, 0, 1], optionsFor(type), [255]), 240)
    const payload = new Uint8Array(8 + message.length)
    write16(payload, 0, 67)
    write16(payload, 2, 68)
    write16(payload, 4, payload.length)
    payload.set(message, 8)
    const [to, destination] = isUnicast
      ? [data.slice(28, 34), ip('10.0.0.50')]
      : [new Uint8Array(6).fill(255), 0xffffffff]
    new Ip4(mac, send).send(to, 1500, { protocol: protocol.udp, source: ip('10.0.0.1'), destination, payload })
  })
  return seen
}

test('a DHCP server may answer to the offered address by unicast, and say in its offer what its acknowledgement lacks', async () => {
  const wire = new NewWire()
  const offered = options([1, 4, 255, 255, 255, 0], [6, 4, 10, 0, 0, 53], [15, 3, 108, 97, 98])
  const seen = dhcpServer(wire, (type) => (type === 2 ? offered : [51, 4, 0, 0, 14, 16]), true)
  const pc = await TestPc.boot(wire, 1)
  expect(await pc.run('dhcp')).toBe('DORA IP 10.0.0.50/24\r\n')
  const shown = await pc.run('show ip')
  expect(shown).toContain('DNS         : 10.0.0.53')
  expect(shown).toContain('DOMAIN NAME : lab')
  // Both requests name the pc (option 12).
  for (const data of seen) expect(String.fromCharCode(...data)).toContain('\x0c\x03PC1')
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

/** A prefix option of a router advertisement (RFC 4861, 4.6.2). `flags`: 0x80 on-link, 0x40 autonomous. */
const prefixOption = (subnet: number, flags = 0xc0, validS = 2_592_000, preferredS = validS): number[] => [
  ...[3, 4, 64, flags, ...bytes32(validS), ...bytes32(preferredS), 0, 0, 0, 0],
  ...[0x20, 1, 0xd, 0xb8, 0, subnet, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
]
const bytes32 = (value: number): number[] => [24, 16, 8, 0].map((shift) => (value >>> shift) & 255)

/** A router on the wire that answers solicitations; `say` advertises at any time. */
function ip6Router(wire: Wire, options: readonly number[], { lifetimeS = 1800, extension = [] as number[] } = {}) {
  const mac = parseMac('02:00:00:00:00:99')
  const linkLocal = withInterfaceId(Uint8Array.of(0xfe, 0x80, 0, 0, 0, 0, 0, 0), mac)
  const say = (given = options, lifetime = lifetimeS): void => {
    const message = Uint8Array.from([
      134,
      0,
      0,
      0,
      64,
      0,
      lifetime >> 8,
      lifetime & 255,
      ...new Array(8).fill(0),
      ...given,
    ])
    const all = Uint8Array.of(0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
    const length = extension.length + message.length
    const frame = newFrame(Uint8Array.of(0x33, 0x33, 0, 0, 0, 1), mac, etherType.ip6, 40 + length)
    frame[ethernetHead] = 0x60
    write16(frame, ethernetHead + 4, length)
    frame.set([extension.length > 0 ? 0 : 58, 255, ...linkLocal, ...all], ethernetHead + 6)
    const pseudo = sum16(linkLocal, 0, 16) + sum16(all, 0, 16) + message.length + 58
    write16(message, 2, fold(sum16(message, 0, message.length, pseudo)))
    frame.set([...extension, ...message], ethernetHead + 40)
    send(frame)
  }
  const send = wire.join((frame) => {
    if (read16(frame, 12) === etherType.ip6 && frame[ethernetHead + 40] === 133) say()
  })
  return { say }
}

test('a router advertisement gives an address, a router and an MTU', async () => {
  const wire = new NewWire()
  ip6Router(wire, [...[5, 1, 0, 0, 0, 0, 0x05, 0x78], ...prefixOption(7)])
  const pc = await TestPc.boot(wire, 1)
  expect(await pc.run('ip auto')).toBe('GLOBAL SCOPE      : 2001:db8:7:0:250:79ff:fe66:6801/64\r\n')
  const shown = await pc.run('show ipv6')
  expect(shown).toContain('ROUTER LINK-LAYER : 02:00:00:00:00:99')
  expect(shown).toContain('MTU               : 1400')
})

test.for([
  ['the first prefix is not valid any more', [...prefixOption(1, 0xc0, 0), ...prefixOption(2, 0xc0, 0xffffffff)]],
  ['the first prefix is for the link alone', [...prefixOption(1, 0x80), ...prefixOption(2)]],
  ['the first prefix is preferred longer than it is valid', [...prefixOption(1, 0xc0, 10, 20), ...prefixOption(2)]],
  ['the first prefix is deprecated', [...prefixOption(1, 0xc0, 100, 0), ...prefixOption(2)]],
] as const)('the address is made of the first usable prefix: %s', async ([, options]) => {
  const wire = new NewWire()
  ip6Router(wire, options)
  const pc = await TestPc.boot(wire, 1)
  expect(await pc.run('ip auto')).toContain('2001:db8:2:0:250:79ff:fe66:6801/64')
})

test('an advertisement of the link-local prefix gives no address', async () => {
  const wire = new NewWire()
  const option = prefixOption(1)
  option.splice(16, 16, 0xfe, 0x80, ...new Array(14).fill(0))
  const router = ip6Router(wire, option)
  const pc = await TestPc.boot(wire, 1)
  const shown = pc.run('ip auto')
  router.say()
  expect(await shown).toBe("Can't find router\r\n")
})

test('a router that says so is none any more; an address ends with the lifetime of its prefix', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const wire = new NewWire()
  const router = ip6Router(wire, prefixOption(7, 0xc0, 7200))
  const pc = await TestPc.boot(wire, 1)
  await pc.run('ip auto')
  router.say(prefixOption(7, 0xc0, 7200), 0)
  expect(await pc.run('ping 2001:db8:9::1 -c 1')).toContain('No gateway found')
  // A stranger cannot end the address at once (RFC 4862, 5.5.3 e).
  router.say(prefixOption(7, 0xc0, 1))
  vi.advanceTimersByTime(7000 * 1000)
  expect(await pc.run('show ipv6')).toContain('2001:db8:7:')
  vi.advanceTimersByTime(201 * 1000)
  expect(await pc.run('show ipv6')).toMatch(/GLOBAL SCOPE {6}: \r\n/)
})

test.for([
  ['a router alert', [58, 0, 5, 2, 0, 0, 1, 0], true],
  ['an unknown option that may be skipped', [58, 0, 0x1e, 4, 0, 0, 0, 0], true],
  ['an unknown option that may not be skipped', [58, 0, 0x9e, 4, 0, 0, 0, 0], false],
  ['options longer than the packet', [58, 200, 1, 4, 0, 0, 0, 0], false],
] as const)('an extension header is read: %s', async ([, extension, passes]) => {
  const wire = new NewWire()
  ip6Router(wire, prefixOption(7), { extension: [...extension] })
  const pc = await TestPc.boot(wire, 1)
  expect((await pc.run('ip auto')).includes('2001:db8:7:')).toBe(passes)
})

test('the checksum is that of RFC 1071', () => {
  const example = Uint8Array.of(0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7)
  expect(checksum(example, 0, 8)).toBe(0x220d)
  expect(read32(Uint8Array.of(255, 255, 255, 255), 0)).toBe(0xffffffff)
  expect(formatIp4(0xc0a80001)).toBe('192.168.0.1')
})
