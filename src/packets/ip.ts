import { ip4Text, ip6Text } from './addresses.ts'
import { type DissectedPart, type Dissection, hex, u16, u32 } from './dissection.ts'
import { showEtherType } from './ethernet.ts'

/** Protocol numbers (IANA) by name, also those that are not decoded here. */
const protocolNames: Readonly<Record<number, string>> = {
  0: 'IPv6 Hop-by-Hop Option',
  1: 'ICMP',
  2: 'IGMP',
  4: 'IPIP',
  6: 'TCP',
  17: 'UDP',
  41: 'IPv6',
  43: 'Routing Header for IPv6',
  44: 'Fragment Header for IPv6',
  46: 'RSVP',
  47: 'Generic Routing Encapsulation',
  50: 'Encap Security Payload',
  51: 'Authentication Header',
  58: 'ICMPv6',
  59: 'No Next Header for IPv6',
  60: 'Destination Options for IPv6',
  88: 'EIGRP',
  89: 'OSPF IGP',
  103: 'PIM',
  112: 'VRRP',
  115: 'L2TP',
  132: 'SCTP',
  135: 'Mobility Header',
}

/** Names in the protocol column for protocols that are not decoded here. */
const columnNames: Readonly<Record<number, string>> = {
  2: 'IGMP',
  46: 'RSVP',
  50: 'ESP',
  88: 'EIGRP',
  103: 'PIM',
  112: 'VRRP',
  115: 'L2TP',
  132: 'SCTP',
}

const optionNames: Readonly<Record<number, string>> = {
  0: 'End of Options List',
  1: 'No-Operation',
  7: 'Record Route',
  68: 'Time Stamp',
  130: 'Security',
  131: 'Loose Source Route',
  137: 'Strict Source Route',
  148: 'Router Alert',
}

const showProtocol = (protocol: number): string => `${protocolNames[protocol] ?? 'Unknown'} (${protocol})`

/** Internet Protocol, version 4 (RFC 791). */
export function ipv4(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('IPv4')
  const version = (bytes[at] as number) >> 4
  const headerSize = ((bytes[at] as number) & 15) * 4
  const part = frame.layer('Internet Protocol Version 4', at, Math.max(headerSize, 20), end)
  if (part !== undefined) header4(part, at)
  if (!frame.holds('IPv4', at, 20, end)) return
  if (version !== 4 || headerSize < 20) {
    frame.info =
      version !== 4
        ? `Bogus IPv4 version (${version}, must be 4)`
        : `Bogus IP header length (${headerSize}, must be at least 20)`
    frame.isSound = false
    return
  }
  frame.source = ip4Text(bytes, at + 12)
  frame.destination = ip4Text(bytes, at + 16)
  frame.hops = bytes[at + 8] as number
  part?.set(`Src: ${frame.source}, Dst: ${frame.destination}`)
  if (part !== undefined) options4(part, bytes, at + 20, Math.min(at + headerSize, bytes.length))
  // A length of 0 is what a capture sees of segments that the network card splits.
  const size = u16(bytes, at + 2) || end - at
  if (size < headerSize) {
    frame.info = `Bogus IP length (${size}, less than header length ${headerSize})`
    frame.isSound = false
    return
  }
  if (at + size > end) frame.layer('[The total length is beyond the end of the frame]', at + 2, 2, end)
  if (!frame.holds('IPv4', at, headerSize, end)) return
  const protocol = bytes[at + 9] as number
  const fragment = u16(bytes, at + 6) & 0x3fff
  const ends = Math.min(at + size, end)
  if (fragment !== 0) {
    frame.info = `Fragmented IP protocol (proto=${protocolNames[protocol] ?? 'Unknown'} ${protocol}, off=${(fragment & 0x1fff) * 8}, ID=${hex(u16(bytes, at + 4)).slice(2)})`
    return frame.data(at + headerSize, ends)
  }
  payload(frame, protocol, at + headerSize, ends)
}

function header4(part: DissectedPart, at: number): void {
  part
    .bits('Version', at, 1, 0xf0)
    .bits('Header length', at, 1, 0x0f, (words) => `${words * 4} bytes (${words})`)
    .bits('DSCP', at + 1, 1, 0xfc)
    .bits('ECN', at + 1, 1, 0x03, { 0: 'Not-ECT', 1: 'ECT(1)', 2: 'ECT(0)', 3: 'CE' })
    .num('Total length', at + 2, 2)
    .hex('Identification', at + 4, 2)
    .bits(
      'Flags',
      at + 6,
      1,
      0xe0,
      (flags) => `${hex(flags, 1)}${flags & 2 ? ", Don't fragment" : ''}${flags & 1 ? ', More fragments' : ''}`,
    )
    .bits('Fragment offset', at + 6, 2, 0x1fff, (words) => String(words * 8))
    .num('Time to live', at + 8, 1)
    .num('Protocol', at + 9, 1, showProtocol)
    .hex('Header checksum', at + 10, 2)
    .ip4('Source', at + 12)
    .ip4('Destination', at + 16)
}

function options4(part: DissectedPart, bytes: Uint8Array, from: number, end: number): void {
  for (let at = from; at < end; ) {
    const type = bytes[at] as number
    const size = type < 2 ? 1 : (bytes[at + 1] as number)
    if (size < 1 || (type > 1 && size < 2) || at + size > end) {
      part.add('Option', at, end - at, '[malformed]')
      return
    }
    part.add('Option', at, size, optionNames[type] ?? `Unknown (${type})`)
    if (type === 0) return
    at += size
  }
}

/** Reads what an IP header carries. */
function payload(frame: Dissection, protocol: number, at: number, end: number): void {
  const dissector = frame.registry.ipProtocols[protocol]
  if (dissector !== undefined) return frame.enter(dissector, at, end)
  frame.protocol = columnNames[protocol] ?? frame.protocol
  frame.info = showProtocol(protocol)
  frame.data(at, end)
}

/** Authentication Header (RFC 4302): its payload is not encrypted. */
export function authentication(frame: Dissection, at: number, end: number): void {
  const size = ((frame.bytes[at + 1] as number) + 2) * 4
  frame.protocol = 'AH'
  frame
    .layer('Authentication Header', at, size || 12, end)
    ?.num('Next header', at, 1, showProtocol)
    .num('Length', at + 1, 1)
    .hex('SPI', at + 4, 4)
    .num('Sequence', at + 8, 4)
  if (!frame.holds('AH', at, 12, end) || !frame.holds('AH', at, size, end)) return
  payload(frame, frame.bytes[at] as number, at + size, end)
}

/** Generic Routing Encapsulation (RFC 2784, RFC 2890), version 0. */
export function gre(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  const flags = u16(bytes, at)
  // Checksum, key and sequence number take four bytes each, in this order.
  const [key, sequence] = [at + (flags & 0x8000 ? 8 : 4), at + (flags & 0x8000 ? 8 : 4) + (flags & 0x2000 ? 4 : 0)]
  const size = sequence + (flags & 0x1000 ? 4 : 0) - at
  frame.protocol = 'GRE'
  const part = frame
    .layer('Generic Routing Encapsulation', at, size, end)
    ?.hex('Flags and version', at, 2)
    .num('Protocol', at + 2, 2, showEtherType)
  if (flags & 0x2000) part?.hex('Key', key, 4)
  if (flags & 0x1000) part?.num('Sequence number', sequence, 4)
  if (!frame.holds('GRE', at, 4, end) || !frame.holds('GRE', at, size, end)) return
  const protocol = u16(bytes, at + 2)
  frame.info = `Encapsulated ${showEtherType(protocol)}`
  if ((flags & 7) !== 0) frame.data(at + size, end)
  else if (protocol === bridged) frame.enter(frame.registry.ethernet, at + size, end)
  else {
    const dissector = frame.registry.etherTypes[protocol] ?? frame.registry.ciscoProtocols[protocol]
    if (dissector === undefined) frame.data(at + size, end)
    else frame.enter(dissector, at + size, end)
  }
}

/** Transparent Ethernet bridging (RFC 7637, 3.2). */
const bridged = 0x6558

/** Internet Protocol, version 6 (RFC 8200). */
export function ipv6(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('IPv6')
  const part = frame
    .layer('Internet Protocol Version 6', at, 40, end)
    ?.bits('Version', at, 1, 0xf0)
    .bits('Traffic class', at, 2, 0x0ff0, (value) => hex(value, 2))
    .bits('Flow label', at, 4, 0xfffff, (value) => hex(value, 5))
    .num('Payload length', at + 4, 2)
    .num('Next header', at + 6, 1, showProtocol)
    .num('Hop limit', at + 7, 1)
    .ip6('Source', at + 8)
    .ip6('Destination', at + 24)
  if (!frame.holds('IPv6', at, 40, end)) return
  const version = (bytes[at] as number) >> 4
  if (version !== 6) {
    frame.info = `Bogus IPv6 version (${version}, must be 6)`
    frame.isSound = false
    return
  }
  frame.source = ip6Text(bytes, at + 8)
  frame.destination = ip6Text(bytes, at + 24)
  frame.hops = bytes[at + 7] as number
  part?.set(`Src: ${frame.source}, Dst: ${frame.destination}`)
  const size = u16(bytes, at + 4)
  if (at + 40 + size > end) frame.layer('[The payload length is beyond the end of the frame]', at + 4, 2, end)
  // A length of 0 is a jumbogram (RFC 2675), or what a capture sees of segments that the network card splits.
  const ends = size === 0 ? end : Math.min(at + 40 + size, end)
  extensions(frame, bytes[at + 6] as number, at + 40, ends)
}

const hopByHop = 0
const routing = 43
const fragmentHeader = 44
const noNext = 59
const destinationOptions = 60

const extensionNames: Readonly<Record<number, string>> = {
  [hopByHop]: 'IPv6 Hop-by-Hop Option',
  [routing]: 'Routing Header for IPv6',
  [destinationOptions]: 'Destination Options for IPv6',
}

function extensions(frame: Dissection, first: number, from: number, end: number): void {
  const { bytes } = frame
  let next = first
  let at = from
  // Each header is 8 bytes or more, and the frame has an end.
  for (;;) {
    const name = extensionNames[next]
    if (name !== undefined) {
      const size = ((bytes[at + 1] as number) + 1) * 8
      const part = frame
        .layer(name, at, size || 8, end)
        ?.num('Next header', at, 1, showProtocol)
        .num('Length', at + 1, 1, (words) => `${(words + 1) * 8} bytes (${words})`)
      if (!frame.holds(name, at, 8, end) || !frame.holds(name, at, size, end)) return
      if (part !== undefined) {
        if (next === routing)
          part
            .num('Type', at + 2, 1)
            .num('Segments left', at + 3, 1)
            .raw('Data', at + 4, size - 4)
        else options6(part, bytes, at + 2, at + size)
      }
      if (next === routing) visits(frame, at, size)
      next = bytes[at] as number
      at += size
    } else if (next === fragmentHeader) {
      frame
        .layer('Fragment Header for IPv6', at, 8, end)
        ?.num('Next header', at, 1, showProtocol)
        .bits('Offset', at + 2, 2, 0xfff8, (words) => String(words * 8))
        .bits('More fragments', at + 2, 2, 1)
        .hex('Identification', at + 4, 4)
      if (!frame.holds('IPv6 fragment', at, 8, end)) return
      const offset = u16(bytes, at + 2)
      next = bytes[at] as number
      // The only fragment of a packet (RFC 6946) is decoded further.
      if ((offset & 0xfff9) !== 0) {
        frame.info = `IPv6 fragment (off=${offset & 0xfff8} more=${offset & 1 ? 'y' : 'n'} ident=${hex(u32(bytes, at + 4), 8)} nxt=${next})`
        return frame.data(at + 8, end)
      }
      at += 8
    } else if (next === noNext) {
      frame.info = 'IPv6 no next header'
      return frame.data(at, end)
    } else return payload(frame, next, at, end)
  }
}

/** A packet with a routing header visits other routers first: its destination is the last address of that header. */
function visits(frame: Dissection, at: number, size: number): void {
  const { bytes } = frame
  const type = bytes[at + 2] as number
  if (bytes[at + 3] === 0 || size < 24) return
  // Type 0 (RFC 2460, 4.4) and 2 (RFC 6275, 6.4) list them in order, type 4 (RFC 8754, 2) the other way round.
  if (type === 0 || type === 2) frame.destination = ip6Text(bytes, at + size - 16)
  else if (type === 4) frame.destination = ip6Text(bytes, at + 8)
}

const options6Names: Readonly<Record<number, string>> = {
  0: 'Pad1',
  1: 'PadN',
  5: 'Router Alert',
  194: 'Jumbo',
  201: 'Home Address',
}

function options6(part: DissectedPart, bytes: Uint8Array, from: number, end: number): void {
  for (let at = from; at < end; ) {
    const type = bytes[at] as number
    const size = type === 0 ? 1 : 2 + (bytes[at + 1] as number)
    if (at + size > end || Number.isNaN(size)) {
      part.add('Option', at, end - at, '[malformed]')
      return
    }
    part.add('Option', at, size, options6Names[type] ?? `Unknown (${type})`)
    at += size
  }
}
