import { ip6Text, macText } from './addresses.ts'
import { type DissectedPart, type Dissection, type Dissector, hex, u16, uint } from './dissection.ts'

const types4: Readonly<Record<number, string>> = {
  0: 'Echo (ping) reply',
  3: 'Destination unreachable',
  4: 'Source quench (flow control)',
  5: 'Redirect',
  8: 'Echo (ping) request',
  9: 'Router advertisement',
  10: 'Router solicitation',
  11: 'Time-to-live exceeded',
  12: 'Parameter problem',
  13: 'Timestamp request',
  14: 'Timestamp reply',
  15: 'Information request',
  16: 'Information reply',
  17: 'Address mask request',
  18: 'Address mask reply',
}

const unreachable4: readonly string[] = [
  'Network unreachable',
  'Host unreachable',
  'Protocol unreachable',
  'Port unreachable',
  'Fragmentation needed',
  'Source route failed',
  'Destination network unknown',
  'Destination host unknown',
  'Source host isolated',
  'Network administratively prohibited',
  'Host administratively prohibited',
  'Network unreachable for TOS',
  'Host unreachable for TOS',
  'Communication administratively filtered',
  'Host precedence violation',
  'Precedence cutoff in effect',
]

const codes4: Readonly<Record<number, readonly string[]>> = {
  3: unreachable4,
  5: ['Redirect for network', 'Redirect for host', 'Redirect for TOS and network', 'Redirect for TOS and host'],
  11: ['Time to live exceeded in transit', 'Fragment reassembly time exceeded'],
  12: ['Pointer indicates the error', 'Required option missing', 'Bad length'],
}

/** Internet Control Message Protocol (RFC 792). `ipv4` reads the packet that an error quotes. */
export const icmp =
  (ipv4: Dissector): Dissector =>
  (frame, at, end) => {
    const { bytes } = frame
    frame.is('ICMP')
    const type = bytes[at] as number
    const code = bytes[at + 1] as number
    const isEcho = type === 0 || type === 8
    const part = frame
      .layer('Internet Control Message Protocol', at, 8, end)
      ?.num('Type', at, 1, types4)
      .num('Code', at + 1, 1, codes4[type] ?? {})
      .hex('Checksum', at + 2, 2)
    if (!frame.holds('ICMP', at, 4, end)) return
    const name = types4[type] ?? `Unknown ICMP type ${type}`
    frame.info = name
    if (isEcho) {
      part?.hex('Identifier', at + 4, 2).num('Sequence number', at + 6, 2)
      if (!frame.holds('ICMP', at, 8, end)) return
      frame.info = `${name.padEnd(20)} id=${hex(u16(bytes, at + 4))}, seq=${sequences(bytes, at + 6)}, ttl=${frame.hops}`
      return frame.data(at + 8, end)
    }
    const codes = codes4[type]
    if (codes !== undefined) {
      frame.info = `${name.padEnd(20)} (${codes[code] ?? `Unknown code: ${code}`})`
      if (type === 3 && code === 4) part?.num('MTU of next hop', at + 6, 2)
      if (type === 5) part?.ip4('Gateway', at + 4)
      if (frame.holds('ICMP', at, 8, end)) frame.quote(ipv4, at + 8, end)
    } else frame.data(at + 4, end)
  }

/** Wireshark shows both byte orders of the sequence number, as some systems count in the other one. */
function sequences(bytes: Uint8Array, at: number): string {
  return `${u16(bytes, at)}/${(bytes[at] as number) | ((bytes[at + 1] as number) << 8)}`
}

const types6: Readonly<Record<number, string>> = {
  1: 'Destination Unreachable',
  2: 'Packet Too Big',
  3: 'Time Exceeded',
  4: 'Parameter Problem',
  128: 'Echo (ping) request',
  129: 'Echo (ping) reply',
  130: 'Multicast Listener Query',
  131: 'Multicast Listener Report',
  132: 'Multicast Listener Done',
  133: 'Router Solicitation',
  134: 'Router Advertisement',
  135: 'Neighbor Solicitation',
  136: 'Neighbor Advertisement',
  137: 'Redirect',
  143: 'Multicast Listener Report Message v2',
}

const codes6: Readonly<Record<number, readonly string[]>> = {
  1: [
    'no route to destination',
    'Administratively prohibited',
    'Beyond scope of source address',
    'Address unreachable',
    'Port unreachable',
    'Source address failed ingress/egress policy',
    'Reject route to destination',
    'Error in Source Routing Header',
  ],
  3: ['hop limit exceeded in transit', 'fragment reassembly time exceeded'],
  4: [
    'erroneous header field encountered',
    'unrecognized Next Header type encountered',
    'unrecognized IPv6 option encountered',
    'IPv6 First Fragment has incomplete IPv6 Header Chain',
  ],
}

/** ICMPv6 (RFC 4443), neighbour discovery (RFC 4861) and multicast listeners (RFC 2710, RFC 3810). */
export const icmpv6 =
  (ipv6: Dissector): Dissector =>
  (frame, at, end) => {
    const { bytes } = frame
    frame.is('ICMPv6')
    const type = bytes[at] as number
    const code = bytes[at + 1] as number
    const part = frame
      .layer('Internet Control Message Protocol v6', at, end - at, end)
      ?.num('Type', at, 1, types6)
      .num('Code', at + 1, 1, codes6[type] ?? {})
      .hex('Checksum', at + 2, 2)
    if (!frame.holds('ICMPv6', at, 4, end)) return
    const name = types6[type] ?? `Unknown ICMPv6 type ${type}`
    frame.info = name
    switch (type) {
      case 1:
      case 2:
      case 3:
      case 4:
        if (type === 2) part?.num('MTU', at + 4, 4)
        else frame.info = `${name} (${codes6[type]?.[code] ?? `Unknown code: ${code}`})`
        if (frame.holds('ICMPv6', at, 8, end)) frame.quote(ipv6, at + 8, end)
        return
      case 128:
      case 129:
        part?.hex('Identifier', at + 4, 2).num('Sequence number', at + 6, 2)
        if (!frame.holds('ICMPv6', at, 8, end)) return
        frame.info = `${name} id=${hex(u16(bytes, at + 4))}, seq=${u16(bytes, at + 6)}, hop limit=${frame.hops}`
        return frame.data(at + 8, end)
      case 130:
      case 131:
      case 132:
        part?.num('Maximum response delay', at + 4, 2, 'ms').ip6('Multicast address', at + 8)
        return
      case 143:
        return listenerReport(frame, part, at, end)
      default:
        if (type >= 133 && type <= 137) discovery(frame, part, at, end)
    }
  }

/** Where the options of a message begin (RFC 4861, 4). */
const optionsAt: Readonly<Record<number, number>> = { 133: 8, 134: 16, 135: 24, 136: 24, 137: 40 }

const optionNames: Readonly<Record<number, string>> = {
  1: 'Source link-layer address',
  2: 'Target link-layer address',
  3: 'Prefix information',
  4: 'Redirected header',
  5: 'MTU',
  14: 'Nonce',
  24: 'Route information',
  25: 'Recursive DNS server',
  31: 'DNS search list',
}

function discovery(frame: Dissection, part: DissectedPart | undefined, at: number, end: number): void {
  const { bytes } = frame
  const type = bytes[at] as number
  const begin = optionsAt[type] as number
  if (type === 134)
    part
      ?.num('Current hop limit', at + 4, 1)
      .hex('Flags', at + 5, 1, ['', '', '', '', '', 'Home agent', 'Other configuration', 'Managed'])
      .num('Router lifetime', at + 6, 2, 's')
      .num('Reachable time', at + 8, 4, 'ms')
      .num('Retransmission time', at + 12, 4, 'ms')
  else if (type !== 133) part?.ip6('Target', at + 8)
  if (type === 136) part?.hex('Flags', at + 4, 1, ['', '', '', '', '', 'Override', 'Solicited', 'Router'])
  if (type === 137) part?.ip6('Destination', at + 24)
  if (!frame.holds('ICMPv6', at, begin, end)) return
  let address = ''
  const last = Math.min(end, bytes.length)
  for (let offset = at + begin; offset + 2 <= last; ) {
    const option = bytes[offset] as number
    const size = (bytes[offset + 1] as number) * 8
    // A length of 0 would go on for ever; RFC 4861, 4.6 has such packets discarded.
    if (size === 0 || offset + size > end) {
      frame.fail('Malformed Packet', 'option of neighbour discovery', offset)
      break
    }
    if ((option === 1 || option === 2) && offset + 8 <= last) address = macText(bytes, offset + 2)
    part?.add(optionNames[option] ?? `Option ${option}`, offset, size, () => optionText(bytes, offset, size))
    offset += size
  }
  frame.info = discoveryInfo(bytes, at, type, address) + (frame.isSound ? '' : ' [Malformed Packet]')
}

function discoveryInfo(bytes: Uint8Array, at: number, type: number, address: string): string {
  const from = address === '' ? '' : ` from ${address}`
  if (type === 133 || type === 134) return `${types6[type]}${from}`
  const target = ip6Text(bytes, at + 8)
  if (type === 135) return `${types6[type]} for ${target}${from}`
  if (type === 137) return `${types6[type]} is at ${target}`
  const flags = bytes[at + 4] as number
  const set = [flags & 0x80 && 'rtr', flags & 0x40 && 'sol', flags & 0x20 && 'ovr'].filter(Boolean).join(', ')
  return `${types6[type]} ${target}${set === '' ? '' : ` (${set})`}${address === '' ? '' : ` is at ${address}`}`
}

function optionText(bytes: Uint8Array, at: number, size: number): string {
  switch (bytes[at]) {
    case 1:
    case 2:
      return macText(bytes, at + 2)
    case 3:
      return size >= 32
        ? `${ip6Text(bytes, at + 16)}/${bytes[at + 2]}, valid ${uint(bytes, at + 4, 4)} s, preferred ${uint(bytes, at + 8, 4)} s`
        : ''
    case 5:
      return String(uint(bytes, at + 4, 4))
    case 25: {
      const servers: string[] = []
      for (let offset = at + 8; offset + 16 <= at + size; offset += 16) servers.push(ip6Text(bytes, offset))
      return servers.join(', ')
    }
    default:
      return `${size} bytes`
  }
}

const recordTypes = ['', 'Include', 'Exclude', 'Change to include', 'Change to exclude', 'Allow new', 'Block old']

function listenerReport(frame: Dissection, part: DissectedPart | undefined, at: number, end: number): void {
  const { bytes } = frame
  if (!frame.holds('ICMPv6', at, 8, end) || part === undefined) return
  const records = u16(bytes, at + 6)
  part.num('Records', at + 6, 2)
  let offset = at + 8
  for (let record = 0; record < records && offset + 20 <= part.to; record++) {
    const size = 20 + u16(bytes, offset + 2) * 16 + (bytes[offset + 1] as number) * 4
    part.add(
      'Record',
      offset,
      size,
      `${recordTypes[bytes[offset] as number] ?? 'Unknown'} ${ip6Text(bytes, offset + 4)}`,
    )
    offset += size
  }
}
