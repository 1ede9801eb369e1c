import { describe, expect, test } from 'vitest'
import { bpfAvailable, compileBpf } from '../../../../runtime/node/dataplane/bpf/compile.ts'
import { requireLibpcap } from '../../../support/require.ts'
import { testWith } from '../../../support/test-with.ts'

const ethernet = 1
const libpcap = requireLibpcap()

const refusal = (message: string) => expect.objectContaining({ status: 400, message })

testWith(libpcap)('an expression becomes the program that tcpdump would make of it', () => {
  expect(bpfAvailable()).toBe(true)
  expect(compileBpf('arp', ethernet)).toEqual([
    [0x28, 0, 0, 12],
    [0x15, 0, 1, 0x0806],
    [0x06, 0, 0, 65_535],
    [0x06, 0, 0, 0],
  ])
  // DLT_PPP: another link type, other offsets.
  expect(compileBpf('ip', 9)).not.toEqual(compileBpf('ip', ethernet))
})

testWith(libpcap).for([
  ['foo', 1, 'foo'],
  ['TCP', 1, 'TCP'],
  ['tcp AND udp', 5, 'AND'],
  ['tcp and foo', 9, 'foo'],
  ['(tcp or udp))', 13, ')'],
  ['host 10.0.0.1 tcp', 15, 'tcp'],
  ['ip[ip] = 1', 6, ']'],
  ['1 + (tcp[0] + 2) = = 3', 20, '='],
  ['src or port 1', 8, 'port'],
  ['port @', 6, '@'],
  ['\u{1f60e}tcp', 1, '\u{1f60e}'],
  ['icmp[icmptype] = icmp-ech', 18, 'icmp-ech'],
] as const)('a syntax error is reported at its token: %s', ([expression, character, token]) => {
  expect(() => compileBpf(expression, ethernet)).toThrow(
    expect.objectContaining({
      status: 400,
      message: expect.stringMatching(/syntax error.* at character \d+ \(near ".+"\)$/),
    }),
  )
  expect(() => compileBpf(expression, ethernet)).toThrow(`at character ${character} (near "${token}")`)
})

testWith(libpcap).for([
  ['tcp port http and port nosuch and udp', 24, 'nosuch'],
  ['ip proto \\foo', 10, '\\foo'],
  ['net 10.0.0.5/24', 14, '24'],
  ['host 10.0.0.0/24', 14, '/'],
  ['tcp[0] / 0 = 1', 10, '0'],
  ['tcp[0:3] = 1', 7, '3'],
  ['vlan 5000', 6, '5000'],
  ['tcp and udp', 1, 'tcp'],
] as const)('what is well written and still wrong is reported the same way: %s', ([expression, character, token]) => {
  expect(() => compileBpf(expression, ethernet)).toThrow(
    expect.objectContaining({
      status: 400,
      message: expect.stringMatching(/^(?!.*syntax error).+ at character \d+ \(near ".+"\)$/),
    }),
  )
  expect(() => compileBpf(expression, ethernet)).toThrow(`at character ${character} (near "${token}")`)
})

testWith(libpcap).for(['tcp and', '(tcp and udp', 'len', 'host', '1 + (tcp[0] + 2'])(
  'an expression that ends too early is told at its end: %s',
  (expression) => {
    expect(() => compileBpf(expression, ethernet)).toThrow(
      expect.objectContaining({
        message: expect.stringContaining(`at character ${expression.length + 1} (near the end)`),
      }),
    )
  },
)

testWith(libpcap).for([
  'host 10.0.0.1 and not (tcp port 22 or udp port domain) and ip[8] > 3',
  'tcp[tcpflags] & (tcp-syn|tcp-ack) != 0 and (len - 4) * 2 >= 100',
  'ether src or dst host 00:11:22:33:44:55 or ether proto 0x88cc',
  'net 10.1.0.0 mask 255.255.0.0 or net 192.168.7.0/24 or net fe80::/10',
  'tcp src or dst portrange 1000-2000 or port (http or https)',
  '((ip[2:2] - ((ip[0] & 0xf) << 2)) - ((tcp[12] & 0xf0) >> 2)) != 0',
  'vlan 7 and ip6 host fe80::1 or src net 10 and dst ::1',
  'byte 3 & 1 or less 64 or greater 1000 or ether multicast or ip multicast',
  'udp[4 + (8 - 4)] = 1 || !(icmp[icmptype] == icmp-echo) && -len < 4',
])('whatever follows a valid beginning is what is told: %s', (expression) => {
  compileBpf(expression, ethernet)
  for (const { index, 0: word } of expression.matchAll(/[\w.:-]+/g)) {
    const cut = index + word.length
    const found = () => compileBpf(`${expression.slice(0, cut)} @ ${expression.slice(cut)}`, ethernet)
    // Cut within what is one token to libpcap, the rest is another word.
    if (!/^[0-9a-f:]*:/.test(word)) expect(found).toThrow(`at character ${cut + 2} (near "@")`)
  }
})

testWith(libpcap).for([
  ['host example.com', 6, 'example.com'],
  ['not src gw', 9, 'gw'],
  ['dst a or src b', 5, 'a'],
  ['net loopback', 5, 'loopback'],
  ['ether host gw', 12, 'gw'],
  ['gateway gw', 9, 'gw'],
  ['host 10.0.0.1 or gw', 18, 'gw'],
  ['host (10.0.0.1 or (gw))', 20, 'gw'],
  ['host 10.0.0.1 and (port 80) or gw', 32, 'gw'],
  ['host 1.2.3.4.5', 6, '1.2.3.4.5'],
  ['host ab:cd', 6, 'ab'],
  ['host \\tcp', 6, '\\tcp'],
] as const)('names of hosts are refused before libpcap asks the DNS: %s', ([expression, character, name]) => {
  expect(() => compileBpf(expression, ethernet)).toThrow(
    refusal(
      `names of hosts and networks are not looked up, write an address at character ${character} (near "${name}")`,
    ),
  )
})

testWith(libpcap).for([
  'port http',
  'port 80 or http',
  'port (80 or http)',
  'port 80 or (host 10.0.0.1) or http',
  'udp portrange ntp-snmp',
  'ip proto \\tcp or \\udp',
  'host 10.0.0.1 and tcp',
  'host 10.0.0.1 and icmp[icmptype] = icmp-echo',
  'host 10.0.0.1 or ip6 host ::ffff:10.0.0.1 or ether host aa-bb-cc-dd-ee-ff or ether host aabb.ccdd.eeff',
])('names of ports, protocols and constants are welcome: %s', (expression) => {
  expect(compileBpf(expression, ethernet).length).toBeGreaterThan(1)
})

testWith(libpcap)('loops are refused, which neither the kernel nor the switch would run', () => {
  expect(() => compileBpf('ip6 protochain 6', ethernet)).toThrow(
    expect.objectContaining({ status: 400, message: expect.stringContaining('cannot be used') }),
  )
})

testWith(libpcap)('expressions that would keep libpcap busy for seconds are refused soon', () => {
  const ports = (count: number) => Array.from({ length: count }, (_, index) => index).join(' or ')
  expect(compileBpf(`port ${ports(60)}`, ethernet).length).toBeGreaterThan(60)
  const begin = process.cpuUsage()
  expect(() => compileBpf(`port ${ports(120)}`, ethernet)).toThrow('too complex')
  expect(() => compileBpf(`port ${ports(500)}`, ethernet)).toThrow('at most 300 words')
  expect(() => compileBpf(`port ${ports(140)} or nosuch`, ethernet)).toThrow('near "nosuch"')
  const { user, system } = process.cpuUsage(begin)
  expect((user + system) / 1000).toBeLessThan(5000)
})

describe('a text that is not an expression', () => {
  test.for(['', '   '])('is empty: "%s"', (expression) => {
    expect(() => compileBpf(expression, ethernet)).toThrow(refusal('a filter expression cannot be empty'))
  })

  test.for(['tcp\0', 'tcp\nand udp', '\x1b[1mtcp', 'tcp\x7f'])('holds control characters: %j', (expression) => {
    expect(() => compileBpf(expression, ethernet)).toThrow(
      refusal(
        `a filter expression holds no control characters: one is character ${/\p{Cc}/u.exec(expression)?.index === 0 ? 1 : 4}`,
      ),
    )
  })

  test('is too long', () => {
    expect(() => compileBpf(' '.repeat(4097), ethernet)).toThrow(
      refusal('a filter expression has at most 4096 characters'),
    )
  })
})
