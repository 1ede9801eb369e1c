import { mac } from './frames.ts'

/** A frame of each protocol that is decoded, and what makes each of them special. */
export interface Sample {
  readonly name: string
  readonly linkType: number
  readonly frame: Buffer
}

const ethernetLink = 1
const pppLink = 50
const hdlcLink = 104

const hex = (text: string): Buffer => Buffer.from(text.replaceAll(/\s/g, ''), 'hex')
const text = (value: string): Buffer => Buffer.from(value, 'latin1')
const u8 = (...values: number[]): Buffer => Buffer.from(values)
const u16 = (...values: number[]): Buffer => Buffer.from(values.flatMap((value) => [value >> 8, value & 255]))
const u32 = (...values: number[]): Buffer => Buffer.concat(values.map((value) => u16(value >>> 16, value & 0xffff)))
const join = (...parts: (Buffer | readonly number[])[]): Buffer =>
  Buffer.concat(parts.map((part) => (Buffer.isBuffer(part) ? part : Buffer.from(part))))

const one = mac(1)
const two = mac(2)
const everyone = [255, 255, 255, 255, 255, 255]
const four = (last: number): readonly number[] => [10, 0, 0, last]
const six = (last: number): Buffer => hex(`fd00 0001 0000 0000 0000 0000 0000 00${last.toString(16).padStart(2, '0')}`)
const local = (last: number): Buffer =>
  hex(`fe80 0000 0000 0000 0000 00ff fe00 00${last.toString(16).padStart(2, '0')}`)
const group6 = (end: string): Buffer => hex(`ff02 0000 0000 0000 0000 ${end}`)

const ether = (type: number, payload: Buffer, to: readonly number[] = two): Buffer => join(to, one, u16(type), payload)
const llc = (payload: Buffer, to: readonly number[]): Buffer => join(to, one, u16(payload.length), payload)
const cisco = (protocol: number, payload: Buffer, to: readonly number[]): Buffer =>
  llc(join(hex('aaaa03 00000c'), u16(protocol), payload), to)

interface Four {
  readonly id?: number
  readonly fragment?: number
  readonly options?: Buffer
  readonly from?: readonly number[]
  readonly to?: readonly number[]
  readonly ttl?: number
}
function ip4(protocol: number, payload: Buffer, it: Four = {}): Buffer {
  const { id = 0x1234, fragment = 0x4000, options = u8(), from = four(1), to = four(2), ttl = 64 } = it
  const size = 20 + options.length
  return join(
    [0x40 + size / 4, 0],
    u16(size + payload.length, id, fragment),
    [ttl, protocol, 0, 0],
    from,
    to,
    options,
    payload,
  )
}
const ip6 = (next: number, payload: Buffer, from = six(1), to = six(2), hops = 64): Buffer =>
  join(hex('60012345'), u16(payload.length), [next, hops], from, to, payload)
const udp = (from: number, to: number, payload: Buffer): Buffer =>
  join(u16(from, to, 8 + payload.length, 0xffff), payload)
const tcp = (from: number, to: number, flags: number, payload = u8(), options = u8()): Buffer =>
  join(
    u16(from, to),
    u32(1_000_000, flags & 0x10 ? 2_000_000_000 : 0),
    u16(((20 + options.length) << 10) | flags, 64_240, 0, 0),
    options,
    payload,
  )
const over4 = (protocol: number, payload: Buffer, it?: Four): Buffer => ether(0x800, ip4(protocol, payload, it))
const over6 = (next: number, payload: Buffer): Buffer => ether(0x86dd, ip6(next, payload))

const arp = (
  operation: number,
  sender: readonly number[],
  target: readonly number[],
  targetMac: readonly number[] = [0, 0, 0, 0, 0, 0],
): Buffer => ether(0x806, join(u16(1, 0x800, 0x604, operation), one, sender, targetMac, target), everyone)
const echo = (type: number): Buffer => join([type, 0, 0, 0], u16(0x4242, 7), text('abcdefgh'))
const discovery = (type: number, body: Buffer): Buffer =>
  ether(0x86dd, ip6(58, join([type, 0, 0, 0], body), local(1), group6('000000000001'), 255))

const tlv = (type: number, value: Buffer): Buffer => join(u16((type << 9) | value.length), value)
const cdpTlv = (type: number, value: Buffer): Buffer => join(u16(type, 4 + value.length), value)
const cdp = join(
  [2, 180, 0, 0],
  cdpTlv(1, text('R1')),
  cdpTlv(2, join(u32(1), hex('0101cc0004'), four(1))),
  cdpTlv(3, text('GigabitEthernet0/1')),
  cdpTlv(4, u32(0x29)),
  cdpTlv(5, text('IOS 15.2')),
  cdpTlv(6, text('Linux Unix')),
  cdpTlv(10, u16(5)),
  cdpTlv(11, u8(1)),
)

const bridge = (priority: number, last: number): Buffer => join(u16(priority), mac(last))
const bpdu = (version: number, type: number, flags: number): Buffer =>
  join(
    u16(0),
    [version, type, flags],
    bridge(0x8001, 1),
    u32(4),
    bridge(0x8001, 2),
    u16(0x8002, 256, 20 * 256, 512, 15 * 256),
    u8(0),
  )
const spanningGroup = hex('0180c2000000')
const pvstGroup = hex('01000ccccccd')

const dhcpHead = (operation: number, yours = four(0)): Buffer =>
  join(
    [operation, 1, 6, 0],
    u32(0x3903f326),
    u16(1, 0x8000),
    four(0),
    yours,
    four(254),
    four(0),
    one,
    Buffer.alloc(10 + 64 + 128),
    u32(0x63825363),
  )
const option = (code: number, ...value: number[]): Buffer => u8(code, value.length, ...value)

const label = (name: string): Buffer => join(...name.split('.').flatMap((part) => [u8(part.length), text(part)]), [0])
const dnsHead = (flags: number, ...counts: number[]): Buffer => u16(0xbeef, flags, ...counts)
const question = (name: string, type: number): Buffer => join(label(name), u16(type, 1))
const pointer = u16(0xc00c)
const answer = (type: number, data: Buffer, name = pointer): Buffer =>
  join(name, u16(type, 1), u32(300), u16(data.length), data)
const dnsAnswer = join(
  dnsHead(0x8180, 1, 2, 1, 1),
  question('www.example.org', 1),
  answer(5, join([3], text('web'), u16(0xc010))),
  answer(1, u8(192, 0, 2, 80)),
  answer(2, join([2], text('ns'), u16(0xc010)), u16(0xc010)),
  join([0], u16(41, 4096), u32(0), u16(0)),
)

const ospf2 = (type: number, body: Buffer): Buffer =>
  ip4(89, join([2, type], u16(24 + body.length), [1, 1, 1, 1], [0, 0, 0, 0], Buffer.alloc(12), body), {
    to: [224, 0, 0, 5],
    ttl: 1,
  })
const ospf3 = (type: number, body: Buffer): Buffer =>
  ip6(
    89,
    join([3, type], u16(16 + body.length), [1, 1, 1, 1], [0, 0, 0, 0], u16(0, 0), body),
    local(1),
    group6('000000000005'),
    1,
  )
const lsaHeader = (size: number): Buffer =>
  join(u16(10), [2, 1], [1, 1, 1, 1], [1, 1, 1, 1], u32(0x80000001), u16(0, size))
const routerLsa = join(lsaHeader(36), u16(0, 1), four(0), [255, 255, 255, 0], [3, 0], u16(10))
const lsaHeader3 = (type: number, size: number): Buffer =>
  join(u16(10, type), four(9), [1, 1, 1, 1], u32(0x80000001), u16(0, size))

const bgpMessage = (type: number, body: Buffer): Buffer =>
  join(Buffer.alloc(16, 255), u16(19 + body.length), [type], body)
const bgpOpen = bgpMessage(1, join([4], u16(65001, 180), [1, 1, 1, 1], [8, 2, 6, 65, 4], u32(65001)))
const bgpUpdate = bgpMessage(
  2,
  join(
    u16(0, 31),
    hex('40010100'),
    hex('40020a 0202 0000fde9 0000fdea'),
    hex('400304'),
    four(1),
    hex('80040400000064'),
    [24, 10, 1, 0, 16, 172, 16],
  ),
)

const http = (lines: string): Buffer => text(lines.replaceAll('\n', '\r\n'))
const hdlc = (type: number, payload: Buffer, address = 0x0f): Buffer => join([address, 0], u16(type), payload)
const ppp = (protocol: number, payload: Buffer): Buffer => join([0xff, 3], u16(protocol), payload)
const control = (code: number, body: Buffer): Buffer => join([code, 7], u16(4 + body.length), body)

const sample =
  (linkType: number) =>
  (name: string, frame: Buffer): Sample => ({ name, linkType, frame })
const wire = sample(ethernetLink)
const serial = sample(hdlcLink)
const dialled = sample(pppLink)

/** Sound frames of every protocol. Wireshark shows each in the same words when it takes each for itself. */
export const samples: readonly Sample[] = [
  wire('ARP request', arp(1, four(1), four(2))),
  wire('gratuitous ARP request', arp(1, four(1), four(1), two)),
  wire('ARP reply', arp(2, four(1), four(2), two)),
  wire('ARP probe', arp(1, [0, 0, 0, 0], four(1))),
  wire('ARP announcement', arp(1, four(1), four(1))),
  wire('gratuitous ARP reply', arp(2, four(1), four(1), two)),
  wire('ARP in a VLAN', ether(0x8100, join(u16(0xa00a, 0x806), arp(1, four(1), four(3)).subarray(14)))),
  wire('ICMP in two VLAN tags', ether(0x88a8, join(u16(100, 0x8100, 200, 0x800), ip4(1, echo(8))))),
  wire(
    'LLDP',
    ether(
      0x88cc,
      join(
        tlv(1, join([4], one)),
        tlv(2, join([5], text('eth0'))),
        tlv(3, u16(120)),
        tlv(4, text('uplink')),
        tlv(5, text('R1')),
        tlv(6, text('Debian')),
        tlv(7, u16(0x14, 0x10)),
        tlv(8, join([5, 1], four(1), hex('02 00000001 00'))),
        tlv(0, u8()),
      ),
      [...hex('0180c200000e')],
    ),
  ),
  wire('CDP', cisco(0x2000, cdp, [...hex('01000ccccccc')])),
  wire('STP', llc(join(hex('424203'), bpdu(0, 0, 0).subarray(0, 35)), [...spanningGroup])),
  wire('STP with a changed topology', llc(join(hex('424203'), bpdu(0, 0, 1).subarray(0, 35)), [...spanningGroup])),
  wire('RSTP', llc(join(hex('424203'), bpdu(2, 2, 0x3c)), [...spanningGroup])),
  wire('STP, topology change notification', llc(join(hex('424203'), hex('0000 00 80')), [...spanningGroup])),
  wire('STP of Cisco for one VLAN', cisco(0x010b, join(bpdu(2, 2, 0x3c), hex('000000020001')), [...pvstGroup])),
  wire('keepalive of Cisco', ether(0x9000, join(hex('0000 0100 0000'), Buffer.alloc(40)), one)),
  wire('ICMP echo request', over4(1, echo(8))),
  wire('ICMP echo reply', over4(1, echo(0))),
  wire('ICMP port unreachable', over4(1, join(hex('03030000 00000000'), ip4(17, udp(33000, 33434, text('probe')))))),
  wire(
    'ICMP time exceeded',
    over4(1, join(hex('0b000000 00000000'), ip4(17, udp(33000, 33435, text('probe')), { ttl: 1 }))),
  ),
  wire('ICMP redirect', over4(1, join(hex('05010000'), four(254), ip4(1, echo(8))))),
  wire('IPv4 with options', over4(17, udp(1000, 2000, text('hello')), { options: hex('94040000') })),
  wire('IPv4 fragment', over4(17, Buffer.alloc(64, 1), { id: 0x4711, fragment: 0x2000 | 185 })),
  wire('IPv4 with an unknown protocol', over4(253, text('experiment'))),
  wire('IPv6 in IPv4', over4(41, ip6(17, udp(40_020, 40_021, text('hello'))))),
  wire('GRE', over4(47, join(u16(0, 0x800), ip4(1, echo(8), { from: four(11), to: four(12) })))),
  wire('VXLAN', over4(17, udp(50_000, 4789, join(hex('08000000 00002a00'), arp(1, four(21), four(22)))))),
  wire('UDP over IPv4', over4(17, udp(40_000, 40_001, text('hello')))),
  wire('UDP over IPv6', over6(17, udp(40_000, 40_001, text('hello')))),
  wire(
    'UDP behind extension headers',
    over6(
      0,
      join(
        [60, 0, 5, 2, 0, 0, 1, 0],
        [43, 0, 1, 4, 0, 0, 0, 0],
        [17, 2, 0, 1, 0, 0, 0, 0],
        six(9),
        udp(40_002, 40_003, text('hello')),
      ),
    ),
  ),
  wire('IPv6 fragment', over6(44, join([17, 0], u16(1448 | 1), u32(0xdeadbeef), Buffer.alloc(32, 2)))),
  wire('IPv6 without a next header', over6(59, u8())),
  wire(
    'TCP SYN with options',
    over4(6, tcp(40_100, 22, 2, u8(), hex('020405b4 0402 080a 00000001 00000000 01 030307'))),
  ),
  wire('TCP SYN, ACK', over4(6, tcp(40_101, 22, 0x12, u8(), hex('020405b4')))),
  wire('TCP data', over4(6, tcp(40_102, 4444, 0x18, text('\x01data')))),
  wire('TCP with SACK', over4(6, tcp(40_103, 4444, 0x10, u8(), hex('0101050a 000f4240 000f4640')))),
  wire('TCP FIN over IPv6', over6(6, tcp(40_104, 4444, 0x11))),
  wire('TCP RST', over4(6, tcp(40_105, 4444, 0x14))),
  wire('HTTP request', over4(6, tcp(40_106, 80, 0x18, http('GET /index.html HTTP/1.1\nHost: www.example.org\n\n')))),
  wire('HTTP response', over4(6, tcp(80, 40_107, 0x18, http('HTTP/1.1 204 No Content\nServer: test\n\n')))),
  wire(
    'DHCP discover',
    over4(17, udp(68, 67, join(dhcpHead(1), option(53, 1), option(50, ...four(5)), option(55, 1, 3, 6), [255])), {
      from: [0, 0, 0, 0],
      to: [255, 255, 255, 255],
    }),
  ),
  wire(
    'DHCP ACK',
    over4(
      17,
      udp(
        67,
        68,
        join(
          dhcpHead(2, four(5)),
          option(53, 5),
          option(54, ...four(254)),
          option(51, 0, 0, 14, 16),
          option(1, 255, 255, 255, 0),
          option(3, ...four(254)),
          option(6, ...four(254), 9, 9, 9, 9),
          option(15, ...text('lab')),
          [255],
        ),
      ),
    ),
  ),
  wire('BOOTP request', over4(17, udp(68, 67, join(dhcpHead(1).subarray(0, 236), Buffer.alloc(64))))),
  wire('DNS query', over4(17, udp(50_100, 53, join(dnsHead(0x0100, 1, 0, 0, 0), question('www.example.org', 28))))),
  wire('DNS answer', over4(17, udp(53, 50_101, dnsAnswer))),
  wire('DNS over TCP', over4(6, tcp(53, 50_102, 0x18, join(u16(dnsAnswer.length), dnsAnswer)))),
  wire(
    'DNS without such a name',
    over6(
      17,
      udp(
        53,
        50_103,
        join(
          dnsHead(0x8183, 1, 0, 1, 0),
          question('none.example.org', 1),
          answer(6, join(label('ns.example.org'), label('root.example.org'), u32(1, 2, 3, 4, 5)), u16(0xc011)),
        ),
      ),
    ),
  ),
  wire(
    'DNS mail, service and text',
    over4(
      17,
      udp(
        53,
        50_104,
        join(
          dnsHead(0x8180, 1, 4, 0, 0),
          question('example.org', 255),
          answer(15, join(u16(10), label('mx.example.org'))),
          answer(33, join(u16(1, 2, 5060), label('sip.example.org'))),
          answer(16, join([5], text('v=one'))),
          answer(28, six(80)),
        ),
      ),
    ),
  ),
  wire(
    'multicast DNS',
    over4(17, udp(5353, 5353, join(dnsHead(0, 1, 0, 0, 0).fill(0, 0, 2), question('printer.local', 1))), {
      to: [224, 0, 0, 251],
    }),
  ),
  wire('router solicitation', discovery(133, join(u32(0), [1, 1], one))),
  wire(
    'router advertisement',
    discovery(
      134,
      join(
        [64, 0xc0],
        u16(1800),
        u32(0, 0),
        [1, 1],
        one,
        [3, 4, 64, 0xc0],
        u32(86_400, 14_400, 0),
        hex('fd000001000000000000000000000000'),
        [5, 1, 0, 0],
        u32(1500),
        [25, 3, 0, 0],
        u32(600),
        six(53),
      ),
    ),
  ),
  wire('neighbor solicitation', discovery(135, join(u32(0), local(2), [1, 1], one))),
  wire('neighbor advertisement', discovery(136, join(u32(0xe0000000), local(1), [2, 1], one))),
  wire('ICMPv6 echo request', over6(58, echo(128))),
  wire('ICMPv6 echo reply', over6(58, echo(129))),
  wire('ICMPv6 unreachable', over6(58, join(hex('01040000 00000000'), ip6(17, udp(33_000, 33_434, text('probe')))))),
  wire('ICMPv6 packet too big', over6(58, join(hex('02000000 00000500'), ip6(17, udp(33_000, 33_435, text('probe')))))),
  wire('multicast listener report', discovery(143, join(u16(0, 1), [4, 0], u16(0), group6('0001ff000001')))),
  wire(
    'OSPF hello',
    ether(0x800, ospf2(1, join([255, 255, 255, 0], u16(10), [2, 1], u32(40), four(1), four(2), [2, 2, 2, 2]))),
  ),
  wire('OSPF database description', ether(0x800, ospf2(2, join(u16(1500), [2, 7], u32(0x1234), lsaHeader(36))))),
  wire('OSPF request', ether(0x800, ospf2(3, join(u32(1), [1, 1, 1, 1], [1, 1, 1, 1])))),
  wire('OSPF update', ether(0x800, ospf2(4, join(u32(1), routerLsa)))),
  wire('OSPF acknowledgment', ether(0x800, ospf2(5, lsaHeader(36)))),
  wire('OSPFv3 hello', ether(0x86dd, ospf3(1, join(u32(4), [1, 0, 0, 0x13], u16(10, 40), four(0), four(0))))),
  wire('OSPFv3 acknowledgment', ether(0x86dd, ospf3(5, lsaHeader3(0x2001, 40)))),
  wire('BGP OPEN', over4(6, tcp(50_200, 179, 0x18, bgpOpen))),
  wire('BGP KEEPALIVE', over4(6, tcp(50_201, 179, 0x18, bgpMessage(4, u8())))),
  wire('BGP UPDATE and KEEPALIVE', over4(6, tcp(50_202, 179, 0x18, join(bgpUpdate, bgpMessage(4, u8()))))),
  wire('BGP NOTIFICATION', over4(6, tcp(50_203, 179, 0x18, bgpMessage(3, u8(6, 2))))),
  wire('BGP ROUTE-REFRESH', over4(6, tcp(50_204, 179, 0x18, bgpMessage(5, u8(0, 1, 0, 1))))),
  wire('a frame with padding', join(over4(17, udp(40_010, 40_011, text('x'))), Buffer.alloc(17))),
  serial('keepalive of a serial line', hdlc(0x8035, join(u32(2, 5, 4), u16(0xffff, 0)), 0x8f)),
  serial(
    'address request of a serial line',
    hdlc(0x8035, join(u32(0), four(1), [255, 255, 255, 0], u16(0xffff)), 0x8f),
  ),
  serial('ICMP over HDLC', hdlc(0x800, ip4(1, echo(8)))),
  serial(
    'OSPF over HDLC',
    hdlc(0x800, ospf2(1, join([255, 255, 255, 252], u16(10), [2, 1], u32(40), four(0), four(0)))),
  ),
  serial('CDP over HDLC', hdlc(0x2000, cdp, 0x8f)),
  serial('IPv6 over HDLC', hdlc(0x86dd, ip6(58, echo(128)))),
  dialled(
    'LCP configuration request',
    ppp(0xc021, control(1, join([1, 4], u16(1500), [3, 5, 0xc2, 0x23, 5], [5, 6], u32(0x12345678)))),
  ),
  dialled('LCP echo', ppp(0xc021, control(9, u32(0x12345678)))),
  dialled('IPCP', ppp(0x8021, control(1, join([3, 6], four(1))))),
  dialled('CHAP challenge', ppp(0xc223, control(1, join([4, 1, 2, 3, 4], text('R1'))))),
  dialled('CHAP success', ppp(0xc223, control(3, text('welcome')))),
  dialled('PAP request', ppp(0xc023, control(1, join([2], text('R1'), [5], text('cisco'))))),
  dialled('PAP acknowledgment', ppp(0xc023, control(2, join([2], text('ok'))))),
  dialled('ICMP over PPP', ppp(0x21, ip4(1, echo(0)))),
  dialled('IPv6 over PPP', ppp(0x57, ip6(58, echo(129)))),
  dialled('IPv6 control protocol', ppp(0x8057, control(1, hex('010a0200000000000001')))),
]
