import { hexText, ip4Text, printable } from './addresses.ts'
import { type DissectedPart, type Dissection, hex, rawText, u16, u32 } from './dissection.ts'
import { etherType, showEtherType } from './ethernet.ts'

const slarp = 0x8035

/** HDLC as Cisco uses it on serial lines: an address, a zero byte, and an EtherType. */
export function ciscoHdlc(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.source = 'N/A'
  frame.destination = 'N/A'
  frame.is('CHDLC')
  frame
    .layer('Cisco HDLC', at, 4, end)
    ?.num('Address', at, 1, { 15: 'Unicast', 143: 'Multicast' })
    .num('Control', at + 1, 1)
    .num('Protocol', at + 2, 2, (type) => (type === slarp ? `SLARP (${hex(type)})` : showEtherType(type)))
  if (!frame.holds('Cisco HDLC', at, 4, end)) return
  const type = u16(bytes, at + 2)
  if (type === slarp) return frame.enter(keepalive, at + 4, end)
  const dissector = frame.registry.ciscoProtocols[type]
  if (dissector !== undefined) return frame.enter(dissector, at + 4, end)
  etherType(frame, type, at + 4, end)
}

/** Cisco SLARP: asks for an address, and sends keepalives. */
function keepalive(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('SLARP')
  const type = u32(bytes, at)
  const part = frame
    .layer('Cisco SLARP', at, 14, end)
    ?.num('Type', at, 4, { 0: 'Address request', 1: 'Address reply', 2: 'Line keepalive' })
  if (!frame.holds('SLARP', at, 12, end)) return
  if (type === 2) {
    part?.num('Outgoing sequence number', at + 4, 4).num('Returned sequence number', at + 8, 4)
    frame.info = `Line keepalive, outgoing sequence ${u32(bytes, at + 4)}, returned sequence ${u32(bytes, at + 8)}`
  } else if (type < 2) {
    part?.ip4('Address', at + 4).ip4('Mask', at + 8)
    frame.info = `${type === 0 ? 'Request' : 'Reply'}, from ${ip4Text(bytes, at + 4)}, mask ${ip4Text(bytes, at + 8)}`
  } else frame.info = `Unknown packet type ${hex(type, 8)}`
}

const pppNames: Readonly<Record<number, string>> = {
  33: 'Internet Protocol version 4',
  45: 'Van Jacobson Compressed TCP/IP',
  47: 'Van Jacobson Uncompressed TCP/IP',
  61: 'Multi-Link',
  87: 'Internet Protocol version 6',
  253: 'Compressed Datagram',
  513: 'Cisco Systems',
  519: 'Cisco Discovery Protocol',
  32801: 'Internet Protocol Control Protocol',
  32839: 'Open System Interconnection Network Layer Control Protocol',
  32855: 'IPv6 Control Protocol',
  33021: 'Compression Control Protocol',
  33287: 'Cisco Discovery Protocol Control Protocol',
  49185: 'Link Control Protocol',
  49187: 'Password Authentication Protocol',
  49189: 'Link Quality Report',
  49699: 'Challenge Handshake Authentication Protocol',
}

/** PPP on serial lines (RFC 1661), with or without the address and control bytes of RFC 1662. */
export function ppp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.source = 'N/A'
  frame.destination = 'N/A'
  // Captures with this link type may hold frames of Cisco HDLC (tcpdump.org/linktypes.html).
  if (bytes[at] === 0x0f || bytes[at] === 0x8f) return frame.enter(ciscoHdlc, at, end)
  frame.is('PPP')
  const from = bytes[at] === 0xff && bytes[at + 1] === 3 ? at + 2 : at
  // The protocol is even in its first byte and odd in its last; one of two bytes may be compressed to the last (RFC 1661, 2).
  const isShort = ((bytes[from] as number) & 1) === 1
  const size = isShort ? 1 : 2
  const part = frame.layer('Point-to-Point Protocol', at, from - at + size, end)
  if (from > at) part?.hex('Address', at, 1).hex('Control', at + 1, 1)
  part?.num('Protocol', from, size, (protocol) => `${pppNames[protocol] ?? 'Unknown'} (${hex(protocol)})`)
  if (!frame.holds('PPP', from, size, end)) return
  const protocol = isShort ? (bytes[from] as number) : u16(bytes, from)
  const dissector = frame.registry.pppProtocols[protocol]
  if (dissector !== undefined) return frame.enter(dissector, from + size, end)
  frame.info = pppNames[protocol] ?? `Unknown (${hex(protocol)})`
  frame.data(from + size, end)
}

const codes: Readonly<Record<number, string>> = {
  0: 'Vendor Specific',
  1: 'Configuration Request',
  2: 'Configuration Ack',
  3: 'Configuration Nak',
  4: 'Configuration Reject',
  5: 'Termination Request',
  6: 'Termination Ack',
  7: 'Code Reject',
  8: 'Protocol Reject',
  9: 'Echo Request',
  10: 'Echo Reply',
  11: 'Discard Request',
  12: 'Identification',
  13: 'Time Remaining',
  14: 'Reset Request',
  15: 'Reset Ack',
}

const lcpOptions: Readonly<Record<number, string>> = {
  1: 'Maximum Receive Unit',
  2: 'Async Control Character Map',
  3: 'Authentication Protocol',
  4: 'Quality Protocol',
  5: 'Magic Number',
  7: 'Protocol Field Compression',
  8: 'Address and Control Field Compression',
  17: 'Multilink MRRU',
  19: 'Multilink Endpoint Discriminator',
}

/** A control protocol: LCP (RFC 1661), IPCP (RFC 1332), IPV6CP (RFC 5072) and others of the same form. */
export const pppControl = (name: string) =>
  function control(frame: Dissection, at: number, end: number): void {
    const { bytes } = frame
    frame.is(`PPP ${name}`)
    const part = pppHeader(frame, `PPP ${name}`, at, end, codes)
    if (!frame.holds(name, at, 4, end)) return
    const code = bytes[at] as number
    frame.info = codes[code] ?? `Unknown code ${code}`
    const ends = at + u16(bytes, at + 2)
    if (ends < at + 4 || ends > end) return frame.fail('Malformed Packet', name, at + 2)
    if (code >= 9 && code <= 11) part?.hex('Magic number', at + 4, 4)
    if (code === 0 || code > 4) return
    for (let offset = at + 4; offset + 2 <= Math.min(ends, bytes.length); ) {
      const size = bytes[offset + 1] as number
      if (size < 2 || offset + size > ends) return frame.fail('Malformed Packet', `option of ${name}`, offset)
      const type = bytes[offset] as number
      const isAddress = name === 'IPCP' && size === 6
      const title =
        (name === 'LCP' ? lcpOptions[type] : isAddress && type === 3 ? 'IP Address' : undefined) ?? `Option ${type}`
      const begin = offset + 2
      part?.add(title, offset, size, () =>
        isAddress
          ? ip4Text(bytes, begin)
          : name === 'LCP' && type === 1 && size === 4
            ? String(u16(bytes, begin))
            : hexText(bytes, begin, begin + size - 2),
      )
      offset += size
    }
  }

const chapCodes: Readonly<Record<number, string>> = { 1: 'Challenge', 2: 'Response', 3: 'Success', 4: 'Failure' }
const papCodes: Readonly<Record<number, string>> = {
  1: 'Authenticate-Request',
  2: 'Authenticate-Ack',
  3: 'Authenticate-Nak',
}

/** Challenge Handshake Authentication Protocol (RFC 1994). */
export function chap(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('PPP CHAP')
  const part = pppHeader(frame, 'PPP CHAP', at, end, chapCodes)
  if (!frame.holds('CHAP', at, 4, end)) return
  const code = bytes[at] as number
  frame.info = chapCodes[code] ?? `Unknown code ${code}`
  const ends = at + u16(bytes, at + 2)
  if (ends < at + 4 || ends > end) return frame.fail('Malformed Packet', 'CHAP', at + 2)
  const last = Math.min(ends, bytes.length)
  if (code > 2) {
    const text = printable(bytes, at + 4, last)
    part?.text('Message', at + 4, last - at - 4)
    frame.info += ` (MESSAGE='${text}')`
    return
  }
  const size = bytes[at + 4] as number
  if (!frame.holds('CHAP', at + 4, 1, ends) || !frame.holds('CHAP', at + 5, size, ends)) return
  part?.raw('Value', at + 5, size).text('Name', at + 5 + size, last - at - 5 - size)
  frame.info += ` (NAME='${printable(bytes, at + 5 + size, last)}', VALUE=0x${rawText(bytes, at + 5, size)})`
}

/** Password Authentication Protocol (RFC 1334). Its password is in the tree: it is in the frame for anyone to read. */
export function pap(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('PPP PAP')
  const part = pppHeader(frame, 'PPP PAP', at, end, papCodes)
  if (!frame.holds('PAP', at, 4, end)) return
  const code = bytes[at] as number
  frame.info = papCodes[code] ?? `Unknown code ${code}`
  const name = bytes[at + 4] as number
  if (code === 2 || code === 3) {
    if (!frame.holds('PAP', at + 4, 1, end) || !frame.holds('PAP', at + 5, name, end)) return
    part?.text('Message', at + 5, name)
    frame.info += ` (Message='${printable(bytes, at + 5, at + 5 + name)}')`
    return
  }
  if (code !== 1 || !frame.holds('PAP', at + 4, 1 + name + 1, end)) return
  const password = at + 5 + name
  if (!frame.holds('PAP', password, 1 + (bytes[password] as number), end)) return
  part?.text('Peer-ID', at + 5, name).text('Password', password + 1, bytes[password] as number)
  frame.info += ` (Peer-ID='${printable(bytes, at + 5, password)}', Password='${printable(bytes, password + 1, password + 1 + (bytes[password] as number))}')`
}

const pppHeader = (
  frame: Dissection,
  title: string,
  at: number,
  end: number,
  names: Readonly<Record<number, string>>,
): DissectedPart | undefined =>
  frame
    .layer(title, at, end - at, end)
    ?.num('Code', at, 1, names)
    .num('Identifier', at + 1, 1)
    .num('Length', at + 2, 2)
