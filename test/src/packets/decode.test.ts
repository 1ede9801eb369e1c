import { execFile } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { Captured } from '../../../src/packets/decode.ts'
import { dissect, summarize } from '../../../src/packets/decode.ts'
import type { Field } from '../../../src/packets/dissection.ts'
import { freshDirectory } from '../../support/directory.ts'
import { type Sample, samples } from '../../support/packet-samples.ts'
import { requireProgram } from '../../support/require.ts'
import { testWith } from '../../support/test-with.ts'
import { alone, tshark } from '../../support/tshark.ts'

const captured = ({ linkType, frame }: Sample, length = frame.length): Captured => ({ bytes: frame, length, linkType })

testWith(requireProgram('tshark'))('source, destination, protocol and summary are those of tshark', async () => {
  const columns = ['Source', 'Destination', 'Protocol', 'Info'].map((column) => `_ws.col.${column}`)
  const theirs = await tshark(await captureOfAll(), columns, '', alone)
  const ours = samples.map((it) => {
    const { source, destination, protocol, info } = summarize(captured(it))
    return [it.name, source, destination, protocol, info.trimEnd()]
  })
  expect(ours).toEqual(samples.map(({ name }, index) => [name, ...(theirs[index] ?? []).map(withoutHistory)]))
})

/** Without what Wireshark adds from other frames, and the second form of an address that `-n` leaves as it is. */
const withoutHistory = (column: string): string =>
  column
    .replace(/ \((?:reply|request) in \d+\)| \(no response found!\)/, '')
    .replace(/ \((?:[0-9a-f]{2}:){5}[0-9a-f]{2}\)$/, '')
    .trimEnd()

/** The names of fields in tshark and here. */
const fieldNames: Readonly<Record<string, string>> = {
  'eth.dst': 'Ethernet II/Destination',
  'eth.src': 'Ethernet II/Source',
  'eth.type': 'Ethernet II/Type',
  'vlan.priority': '802.1Q Virtual LAN/Priority',
  'vlan.id': '802.1Q Virtual LAN/ID',
  'arp.opcode': 'Address Resolution Protocol/Operation',
  'arp.src.hw_mac': 'Address Resolution Protocol/Sender MAC',
  'arp.src.proto_ipv4': 'Address Resolution Protocol/Sender IP',
  'arp.dst.proto_ipv4': 'Address Resolution Protocol/Target IP',
  'stp.root.cost': 'Spanning Tree Protocol/Root path cost',
  'stp.port': 'Spanning Tree Protocol/Port identifier',
  'ip.len': 'Internet Protocol Version 4/Total length',
  'ip.id': 'Internet Protocol Version 4/Identification',
  'ip.ttl': 'Internet Protocol Version 4/Time to live',
  'ip.proto': 'Internet Protocol Version 4/Protocol',
  'ip.src': 'Internet Protocol Version 4/Source',
  'ip.dst': 'Internet Protocol Version 4/Destination',
  'ipv6.plen': 'Internet Protocol Version 6/Payload length',
  'ipv6.nxt': 'Internet Protocol Version 6/Next header',
  'ipv6.hlim': 'Internet Protocol Version 6/Hop limit',
  'ipv6.src': 'Internet Protocol Version 6/Source',
  'ipv6.fraghdr.ident': 'Fragment Header for IPv6/Identification',
  'icmp.type': 'Internet Control Message Protocol/Type',
  'icmp.code': 'Internet Control Message Protocol/Code',
  'icmp.seq': 'Internet Control Message Protocol/Sequence number',
  'icmpv6.type': 'Internet Control Message Protocol v6/Type',
  'icmpv6.nd.ns.target_address': 'Internet Control Message Protocol v6/Target',
  'icmpv6.nd.ra.router_lifetime': 'Internet Control Message Protocol v6/Router lifetime',
  'udp.srcport': 'User Datagram Protocol/Source port',
  'udp.dstport': 'User Datagram Protocol/Destination port',
  'udp.length': 'User Datagram Protocol/Length',
  'tcp.srcport': 'Transmission Control Protocol/Source port',
  'tcp.dstport': 'Transmission Control Protocol/Destination port',
  'tcp.seq_raw': 'Transmission Control Protocol/Sequence number',
  'tcp.ack_raw': 'Transmission Control Protocol/Acknowledgment number',
  'tcp.window_size_value': 'Transmission Control Protocol/Window',
  'dhcp.hw.mac_addr': 'Dynamic Host Configuration Protocol/Client MAC address',
  'dhcp.ip.your': 'Dynamic Host Configuration Protocol/Your (client) IP address',
  'dhcp.id': 'Dynamic Host Configuration Protocol/Transaction ID',
  'dns.id': 'Domain Name System/Transaction ID',
  'dns.flags': 'Domain Name System/Flags',
  'dns.count.answers': 'Domain Name System/Answers',
  'ospf.msg': 'Open Shortest Path First/Type',
  'ospf.srcrouter': 'Open Shortest Path First/Router ID',
  'ospf.area_id': 'Open Shortest Path First/Area ID',
  'ospf.hello.hello_interval': 'Hello Packet/Hello interval',
  'ospf.hello.router_dead_interval': 'Hello Packet/Router dead interval',
  'ospf.hello.active_neighbor': 'Hello Packet/Active neighbor',
  'bgp.open.myas': 'Border Gateway Protocol - OPEN Message/My AS',
  'bgp.open.holdtime': 'Border Gateway Protocol - OPEN Message/Hold time',
  'bgp.open.identifier': 'Border Gateway Protocol - OPEN Message/BGP identifier',
  'cdp.ttl': 'Cisco Discovery Protocol/Time to live',
  'chdlc.address': 'Cisco HDLC/Address',
  'slarp.mysequence': 'Cisco SLARP/Outgoing sequence number',
  'chap.identifier': 'PPP CHAP/Identifier',
}

testWith(requireProgram('tshark'))('fields have the values and the bytes that tshark gives them', async () => {
  const compared = new Set<string>()
  const [ours, expected]: [string[], string[]] = [[], []]
  const packets = await pdmlOf(await captureOfAll())
  for (const [index, it] of samples.entries()) {
    // Of a protocol that is there twice, as in a tunnel or an error, the first is looked at.
    const fields = new Map<string, Field>()
    for (const layer of dissect(captured(it)).layers)
      for (const field of layer.fields) {
        const key = `${layer.name.replace('IEEE 802.3 Ethernet', 'Ethernet II')}/${field.name}`
        if (!fields.has(key)) fields.set(key, field)
      }
    for (const [name, theirs] of packets[index] ?? []) {
      const key = fieldNames[name]
      if (key === undefined || theirs.size === 0) continue
      const field = fields.get(key)
      ours.push(`${it.name}: ${name} ${field?.from}+${sizeOf(field)} ${plain(field?.value)}`)
      expected.push(`${it.name}: ${name} ${theirs.at}+${theirs.size} ${plain(theirs.value)}`)
      compared.add(name)
    }
  }
  expect(ours).toEqual(expected)
  expect([...compared].sort()).toEqual(Object.keys(fieldNames).sort())
})

const sizeOf = (field: Field | undefined): number => (field === undefined ? -1 : field.to - field.from)

/** The number of `TCP (6)`, `0x0800` or `64 s`; an address as it is. */
function plain(value = ''): string {
  const number = /\((\d+|0x[0-9a-f]+)\)$/.exec(value)?.[1] ?? /^(\d+|0x[0-9a-f]+)(?: \w+| \(.*\))?$/.exec(value)?.[1]
  return number === undefined ? value : String(Number(number))
}

test('without a tree nothing but the four columns is made, and with it they are the same', () => {
  for (const it of samples) {
    const { layers, ...columns } = dissect(captured(it))
    expect(summarize(captured(it))).toEqual(columns)
    expect(layers.length).toBeGreaterThan(0)
  }
})

test('an error of ICMP shows the packet that it quotes in the tree, and keeps the line', () => {
  const it = samples.find(({ name }) => name === 'ICMP port unreachable') as Sample
  const { info, layers } = dissect(captured(it))
  expect(info).toBe('Destination unreachable (Port unreachable)')
  expect(layers.map(({ name }) => name)).toEqual([
    'Ethernet II',
    'Internet Protocol Version 4',
    'Internet Control Message Protocol',
    'Internet Protocol Version 4',
    'User Datagram Protocol',
    'Data',
  ])
})

test('options and records are fields', () => {
  const fieldsOf = (name: string, layer: string) =>
    dissect(captured(samples.find((it) => it.name === name) as Sample))
      .layers.find((it) => it.name === layer)
      ?.fields.map((field) => `${field.name}: ${field.value}`)
  expect(fieldsOf('DHCP ACK', 'Dynamic Host Configuration Protocol')).toEqual(
    expect.arrayContaining([
      'DHCP message type: ACK (5)',
      'IP address lease time: 3600 s',
      'Domain name server: 10.0.0.254, 9.9.9.9',
      'Domain name: lab',
    ]),
  )
  expect(fieldsOf('DNS answer', 'Domain Name System')).toEqual(
    expect.arrayContaining([
      'Question: www.example.org: type A, class IN',
      'Answer: www.example.org: type CNAME, web.example.org',
      'Answer: www.example.org: type A, 192.0.2.80',
    ]),
  )
  expect(fieldsOf('BGP UPDATE and KEEPALIVE', 'Border Gateway Protocol - UPDATE Message')).toEqual(
    expect.arrayContaining(['AS_PATH: 65001 65002', 'NEXT_HOP: 10.0.0.1', 'NLRI: 10.1.0.0/24', 'NLRI: 172.16.0.0/16']),
  )
  expect(fieldsOf('OSPF update', 'LS Update')).toEqual(['Number of LSAs: 1', 'LSA: Router-LSA (1) 1.1.1.1'])
  expect(fieldsOf('LLDP', 'Link Layer Discovery Protocol')).toContain('Management address: 10.0.0.1')
  expect(fieldsOf('TCP SYN with options', 'Transmission Control Protocol')).toContain('Option: MSS=1460')
})

test('a frame that the capture cut is distinguished from a malformed one', () => {
  const { frame, linkType } = samples.find(({ name }) => name === 'TCP data') as Sample
  const bytes = frame.subarray(0, 40)
  expect(summarize({ bytes, length: frame.length, linkType }).info).toBe('[Packet size limited during capture]')
  expect(summarize({ bytes, length: 40, linkType }).info).toBe('[Malformed Packet]')
})

test('text of a frame cannot move the cursor of a terminal', () => {
  const frame = Buffer.from((samples.find(({ name }) => name === 'CDP') as Sample).frame)
  frame[frame.indexOf('R1')] = 0x1b
  expect(summarize({ bytes: frame, length: frame.length, linkType: 1 }).info).toBe(
    'Device ID: \\x1b1  Port ID: GigabitEthernet0/1',
  )
})

test('frames of a link type that is not decoded say so', () => {
  expect(summarize({ bytes: Buffer.from('abc'), length: 3, linkType: 107 })).toEqual({
    ...{ source: '', destination: '', protocol: 'Unknown', info: 'Frames of link type 107 are not decoded' },
  })
})

/** All samples, a second apart: pcapng has an interface for each link type, so that tshark starts once. */
async function captureOfAll(): Promise<string> {
  const linkTypes = [...new Set(samples.map(({ linkType }) => linkType))]
  const header = Buffer.alloc(16, 0xff)
  header.writeUInt32LE(0x1a2b3c4d, 0)
  header.writeUInt32LE(1, 4)
  const file = join(await freshDirectory(), 'samples.pcapng')
  await writeFile(
    file,
    Buffer.concat([
      block(0x0a0d0d0a, header),
      ...linkTypes.map((linkType) => block(1, words(linkType, 0))),
      ...samples.map(({ linkType, frame }, index) => {
        const micros = BigInt(index) * 1_000_000n
        const time = [Number(micros >> 32n), Number(micros & 0xffff_ffffn)]
        return block(6, Buffer.concat([words(linkTypes.indexOf(linkType), ...time, frame.length, frame.length), frame]))
      }),
    ]),
  )
  return file
}

const words = (...values: readonly number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer)

/** A block of pcapng: its type and length, what is in it up to a whole word, and its length again. */
function block(type: number, body: Buffer): Buffer {
  const padding = Buffer.alloc(-body.length & 3)
  const length = body.length + padding.length + 12
  return Buffer.concat([words(type, length), body, padding, words(length)])
}

interface PdmlField {
  readonly at: number
  readonly size: number
  readonly value: string
}

/** The first field of each name, with its place in the frame, of every packet. */
async function pdmlOf(file: string): Promise<Map<string, PdmlField>[]> {
  const { stdout } = await promisify(execFile)('tshark', ['-r', file, ...alone, '-T', 'pdml'], {
    maxBuffer: 64 << 20,
  })
  return stdout
    .split('<packet>')
    .slice(1)
    .map((packet) => {
      const fields = new Map<string, PdmlField>()
      for (const [, name = '', size, at, value = ''] of packet.matchAll(
        /<field name="([^"]+)"[^>]* size="(\d+)" pos="(\d+)" show="([^"]*)"/g,
      ))
        if (!fields.has(name)) fields.set(name, { at: Number(at), size: Number(size), value })
      return fields
    })
}
