import { hexText, ip4Text } from './addresses.ts'
import { type DissectedPart, type Dissection, hex, maxInfo, u16, u32 } from './dissection.ts'

const ospfTypes = ['', 'Hello Packet', 'DB Description', 'LS Request', 'LS Update', 'LS Acknowledge']
const lsaTypes2: Readonly<Record<number, string>> = {
  1: 'Router-LSA',
  2: 'Network-LSA',
  3: 'Summary-LSA (IP network)',
  4: 'Summary-LSA (ASBR)',
  5: 'AS-External-LSA',
  7: 'NSSA AS-External-LSA',
  9: 'Opaque LSA, link-local',
  10: 'Opaque LSA, area-local',
  11: 'Opaque LSA, AS-wide',
}
const lsaTypes3: Readonly<Record<number, string>> = {
  8: 'Link-LSA',
  8193: 'Router-LSA',
  8194: 'Network-LSA',
  8195: 'Inter-Area-Prefix-LSA',
  8196: 'Inter-Area-Router-LSA',
  8199: 'NSSA-LSA',
  8201: 'Intra-Area-Prefix-LSA',
  16389: 'AS-External-LSA',
}
const options2 = ['MT', 'External routing', 'Multicast', 'NSSA', 'Link-local signaling', 'Demand circuits', 'Opaque']
const options3 = ['V6', 'External routing', '', 'NSSA', 'Router', 'Demand circuits']

/** OSPF, version 2 (RFC 2328) and 3 (RFC 5340). */
export function ospf(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('OSPF')
  const version = bytes[at] as number
  const headerSize = version === 3 ? 16 : 24
  const type = bytes[at + 1] as number
  const header = frame
    .layer('Open Shortest Path First', at, headerSize, end)
    ?.num('Version', at, 1)
    .num('Type', at + 1, 1, (value) => `${ospfTypes[value] ?? 'Unknown'} (${value})`)
    .num('Packet length', at + 2, 2)
    .ip4('Router ID', at + 4)
    .ip4('Area ID', at + 8)
    .hex('Checksum', at + 12, 2)
  if (!frame.holds('OSPF', at, headerSize, end)) return
  frame.info = ospfTypes[type] ?? `Unknown (${type})`
  if (version === 2)
    header?.num('Authentication type', at + 14, 2, { 0: 'Null', 1: 'Simple password', 2: 'Cryptographic' })
  else if (version === 3) header?.num('Instance ID', at + 14, 1)
  else {
    frame.info = `Unknown version of OSPF (${version})`
    return
  }
  const size = u16(bytes, at + 2)
  if (size < headerSize || at + size > end) return frame.fail('Malformed Packet', 'length of OSPF', at + 2)
  const from = at + headerSize
  const ends = at + size
  const part = frame.layer(frame.info, from, size - headerSize, end)
  if (type === 1) hello(frame, part, version, from, ends)
  else if (type === 2) {
    const fixed = version === 3 ? 12 : 8
    if (version === 2)
      part
        ?.num('Interface MTU', from, 2)
        .hex('Options', from + 2, 1, options2)
        .hex('Flags', from + 3, 1, ['Master', 'More', 'Init'])
    else
      part
        ?.hex('Options', from + 1, 3, options3)
        .num('Interface MTU', from + 4, 2)
        .hex('Flags', from + 7, 1, ['Master', 'More', 'Init'])
    part?.num('Sequence number', from + fixed - 4, 4)
    if (frame.holds('OSPF', from, fixed, ends)) lsaHeaders(frame, part, version, from + fixed, ends)
  } else if (type === 3) {
    for (let offset = from; offset + 12 <= ends; offset += 12)
      part
        ?.sub('Request', offset, 12, () => `${lsaName(bytes, version, offset + 2)} ${ip4Text(bytes, offset + 4)}`)
        ?.ip4('Link state ID', offset + 4)
        .ip4('Advertising router', offset + 8)
  } else if (type === 4) {
    part?.num('Number of LSAs', from, 4)
    if (frame.holds('OSPF', from, 4, ends)) updates(frame, part, version, from + 4, ends)
  } else if (type === 5) lsaHeaders(frame, part, version, from, ends)
}

function hello(frame: Dissection, part: DissectedPart | undefined, version: number, at: number, end: number): void {
  const neighbors = at + 20
  if (version === 2)
    part
      ?.ip4('Network mask', at)
      .num('Hello interval', at + 4, 2, 's')
      .hex('Options', at + 6, 1, options2)
      .num('Router priority', at + 7, 1)
      .num('Router dead interval', at + 8, 4, 's')
  else
    part
      ?.num('Interface ID', at, 4)
      .num('Router priority', at + 4, 1)
      .hex('Options', at + 5, 3, options3)
      .num('Hello interval', at + 8, 2, 's')
      .num('Router dead interval', at + 10, 2, 's')
  part?.ip4('Designated router', at + 12).ip4('Backup designated router', at + 16)
  if (!frame.holds('OSPF', at, 20, end)) return
  for (let offset = neighbors; part !== undefined && offset + 4 <= part.to; offset += 4)
    part.ip4('Active neighbor', offset)
}

function lsaHeaders(
  frame: Dissection,
  part: DissectedPart | undefined,
  version: number,
  from: number,
  end: number,
): void {
  for (let at = from; part !== undefined && at + 20 <= Math.min(end, part.to); at += 20)
    lsa(frame, part, version, at, 20)
}

/** Whole LSAs; the length of each is in its header. */
function updates(frame: Dissection, part: DissectedPart | undefined, version: number, from: number, end: number): void {
  for (let at = from; at + 20 <= end; ) {
    if (!frame.holds('LSA', at, 20, end)) return
    const size = u16(frame.bytes, at + 18)
    if (size < 20) return frame.fail('Malformed Packet', 'length of an LSA', at + 18)
    if (!frame.holds('LSA', at, size, end)) return
    if (part !== undefined) lsa(frame, part, version, at, size)
    at += size
  }
}

function lsa({ bytes }: Dissection, part: DissectedPart, version: number, at: number, size: number): void {
  const it = part.sub('LSA', at, size, () => `${lsaName(bytes, version, at + 2)} ${ip4Text(bytes, at + 4)}`)
  it?.num('Age', at, 2, (age) => `${age & 0x7fff} s`)
  if (version === 2) it?.hex('Options', at + 2, 1, options2)
  it?.ip4('Link state ID', at + 4)
    .ip4('Advertising router', at + 8)
    .hex('Sequence number', at + 12, 4)
    .hex('Checksum', at + 16, 2)
    .num('Length', at + 18, 2)
}

/** The type is one byte after the options in version 2, and two bytes in version 3. */
function lsaName(bytes: Uint8Array, version: number, at: number): string {
  const type = version === 3 ? u16(bytes, at) : (bytes[at + 1] as number)
  return `${(version === 3 ? lsaTypes3 : lsaTypes2)[type] ?? 'Unknown LSA'} (${version === 3 ? hex(type) : type})`
}

const bgpTypes = ['', 'OPEN', 'UPDATE', 'NOTIFICATION', 'KEEPALIVE', 'ROUTE-REFRESH']
const bgpErrors = [
  '',
  'Message Header Error',
  'OPEN Message Error',
  'UPDATE Message Error',
  'Hold Timer Expired',
  'Finite State Machine Error',
  'Cease',
  'ROUTE-REFRESH Message Error',
]
const attributeNames: Readonly<Record<number, string>> = {
  1: 'ORIGIN',
  2: 'AS_PATH',
  3: 'NEXT_HOP',
  4: 'MULTI_EXIT_DISC',
  5: 'LOCAL_PREF',
  6: 'ATOMIC_AGGREGATE',
  7: 'AGGREGATOR',
  8: 'COMMUNITIES',
  9: 'ORIGINATOR_ID',
  10: 'CLUSTER_LIST',
  14: 'MP_REACH_NLRI',
  15: 'MP_UNREACH_NLRI',
  16: 'EXTENDED_COMMUNITIES',
  17: 'AS4_PATH',
  18: 'AS4_AGGREGATOR',
  32: 'LARGE_COMMUNITY',
}
const bgpHeader = 19

/** BGP-4 (RFC 4271). A segment holds several messages, and may begin or end within one. */
export function bgp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  const last = Math.min(end, bytes.length)
  if (!isMarker(bytes, at, last)) {
    frame.is('BGP')
    frame.info = 'Continuation'
    return frame.data(at, end)
  }
  let info = ''
  let offset = at
  while (offset + bgpHeader <= last && isMarker(bytes, offset, last)) {
    const size = u16(bytes, offset + 16)
    const type = bytes[offset + 18] as number
    const name = `${bgpTypes[type] ?? `Unknown (${type})`} Message`
    if (info.length < maxInfo) info += `${info === '' ? '' : ', '}${name}`
    const part = frame
      .layer(`Border Gateway Protocol - ${name}`, offset, size, end)
      ?.num('Length', offset + 16, 2)
      .num('Type', offset + 18, 1, (value) => `${bgpTypes[value] ?? 'Unknown'} (${value})`)
    frame.is('BGP')
    frame.info = info
    if (size < bgpHeader || size > 65_535) return frame.fail('Malformed Packet', 'length of BGP', offset + 16)
    if (part !== undefined) bgpBody(bytes, part, type, offset + bgpHeader)
    offset += size
  }
  frame.is('BGP')
  frame.info = info
}

function isMarker(bytes: Uint8Array, at: number, end: number): boolean {
  if (at + bgpHeader > end) return false
  for (let index = at; index < at + 16; index++) if (bytes[index] !== 255) return false
  return true
}

function bgpBody(bytes: Uint8Array, part: DissectedPart, type: number, at: number): void {
  if (type === 1) {
    part
      .num('Version', at, 1)
      .num('My AS', at + 1, 2)
      .num('Hold time', at + 3, 2, 's')
      .ip4('BGP identifier', at + 5)
    part.num('Optional parameters length', at + 9, 1)
    for (let offset = at + 10; offset + 2 <= part.to; offset += 2 + (bytes[offset + 1] as number))
      part.add(
        bytes[offset] === 2 ? 'Capabilities' : `Parameter ${bytes[offset]}`,
        offset,
        2 + (bytes[offset + 1] as number),
        () => hexText(bytes, offset + 2, offset + 2 + (bytes[offset + 1] as number)),
      )
  } else if (type === 2) update(bytes, part, at)
  else if (type === 3)
    part
      .num('Major error', at, 1, (value) => `${bgpErrors[value] ?? 'Unknown'} (${value})`)
      .num('Minor error', at + 1, 1)
  else if (type === 5)
    part
      .num('Address family', at, 2, { 1: 'IPv4', 2: 'IPv6' })
      .num('Subsequent address family', at + 3, 1, { 1: 'Unicast', 2: 'Multicast' })
}

function update(bytes: Uint8Array, part: DissectedPart, at: number): void {
  part.num('Withdrawn routes length', at, 2)
  const attributes = at + 2 + (u16(bytes, at) || 0)
  prefixes(bytes, part, 'Withdrawn route', at + 2, Math.min(attributes, part.to))
  if (attributes + 2 > part.to) return
  part.num('Total path attribute length', attributes, 2)
  const end = Math.min(attributes + 2 + u16(bytes, attributes), part.to)
  for (let offset = attributes + 2; offset + 3 <= end; ) {
    const isLong = ((bytes[offset] as number) & 0x10) !== 0
    if (isLong && offset + 4 > end) break
    const size = isLong ? u16(bytes, offset + 2) : (bytes[offset + 2] as number)
    const header = isLong ? 4 : 3
    if (offset + header + size > end) break
    const type = bytes[offset + 1] as number
    const value = offset + header
    part.add(attributeNames[type] ?? `Attribute ${type}`, offset, header + size, () =>
      attributeText(bytes, type, value, size),
    )
    offset += header + size
  }
  prefixes(bytes, part, 'NLRI', end, part.to)
}

function attributeText(bytes: Uint8Array, type: number, at: number, size: number): string {
  if (type === 1 && size === 1) return ['IGP', 'EGP', 'INCOMPLETE'][bytes[at] as number] ?? String(bytes[at])
  if ((type === 3 || type === 9) && size === 4) return ip4Text(bytes, at)
  if ((type === 4 || type === 5) && size === 4) return String(u32(bytes, at))
  if (type === 2 || type === 17) return asPath(bytes, at, size, type === 17 ? 4 : asSize(bytes, at, size))
  if (type === 8) {
    const communities: string[] = []
    for (let offset = at; offset + 4 <= at + size; offset += 4)
      communities.push(`${u16(bytes, offset)}:${u16(bytes, offset + 2)}`)
    return communities.join(' ')
  }
  return hexText(bytes, at, at + Math.min(size, 32)) + (size > 32 ? '...' : '')
}

/** Whether AS numbers take two or four bytes is agreed on in OPEN (RFC 6793): the one that the length fits is taken. */
function asSize(bytes: Uint8Array, at: number, size: number): 2 | 4 {
  let offset = at
  while (offset + 2 <= at + size) offset += 2 + (bytes[offset + 1] as number) * 4
  return offset === at + size ? 4 : 2
}

function asPath(bytes: Uint8Array, at: number, size: number, each: 2 | 4): string {
  const segments: string[] = []
  for (let offset = at; offset + 2 <= at + size; ) {
    const numbers: number[] = []
    const end = offset + 2 + (bytes[offset + 1] as number) * each
    for (let one = offset + 2; one + each <= Math.min(end, at + size); one += each)
      numbers.push(each === 4 ? u32(bytes, one) : u16(bytes, one))
    segments.push(bytes[offset] === 1 ? `{${numbers.join(',')}}` : numbers.join(' '))
    offset = end
  }
  return segments.join(' ')
}

/** Prefixes: a length in bits, and as many bytes as it takes. */
function prefixes(bytes: Uint8Array, part: DissectedPart, name: string, from: number, end: number): void {
  for (let at = from; at < end; ) {
    const bits = bytes[at] as number
    const size = (bits + 7) >> 3
    if (bits > 32 || at + 1 + size > end) return
    const address = new Uint8Array(4)
    address.set(bytes.subarray(at + 1, at + 1 + size))
    part.add(name, at, 1 + size, `${ip4Text(address, 0)}/${bits}`)
    at += 1 + size
  }
}
