import { hexText, ip4Text, ip6Text, macText, printable } from './addresses.ts'
import { type Dissection, flagNames, hex, rawText, u16, uint } from './dissection.ts'

const lldpNames: Readonly<Record<number, string>> = {
  0: 'End of LLDPDU',
  1: 'Chassis ID',
  2: 'Port ID',
  3: 'Time to live',
  4: 'Port description',
  5: 'System name',
  6: 'System description',
  7: 'Capabilities',
  8: 'Management address',
}
/** How the summary calls the subtypes of chassis and of port (IEEE 802.1AB, 8.5.2.2 and 8.5.3.2). */
const chassisKinds = ['', 'CC', 'IA', 'PC', 'MA', 'NA', 'IN', 'LA']
const portKinds = ['', 'IA', 'PC', 'MA', 'NA', 'IN', 'AC', 'LA']
const capabilities = [
  'Other',
  'Repeater',
  'Bridge',
  'WLAN access point',
  'Router',
  'Telephone',
  'DOCSIS cable device',
  'Station only',
]

/** Link Layer Discovery Protocol (IEEE 802.1AB). */
export function lldp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('LLDP')
  const part = frame.layer('Link Layer Discovery Protocol', at, end - at, end)
  const last = Math.min(end, bytes.length)
  let expected = 1
  for (let offset = at; offset < last; ) {
    if (!frame.holds('LLDP', offset, 2, end)) return
    const type = (bytes[offset] as number) >> 1
    // Chassis, port and time to live come first, and in this order (IEEE 802.1AB, 8.2).
    if (expected < 4 && type !== expected)
      return frame.fail('Malformed Packet', `LLDP without ${lldpNames[expected]}`, offset)
    expected += 1
    const size = u16(bytes, offset) & 0x1ff
    if (!frame.holds('LLDP', offset + 2, size, end)) return
    const value = lldpText(bytes, type, offset + 2, size)
    part?.add(lldpNames[type] ?? (type === 127 ? 'Organization specific' : `TLV ${type}`), offset, 2 + size, value)
    if (type > 0 && type < 7 && type !== 4)
      frame.info += `${frame.info === '' ? '' : ' '}${lldpShort(bytes, type, offset, value)}`
    if (type === 0) return
    offset += 2 + size
  }
}

/** An entry as the summary shows it. */
function lldpShort(bytes: Uint8Array, type: number, at: number, value: string): string {
  const subtype = bytes[at + 2] as number
  if (type === 1 || type === 2) return `${(type === 1 ? chassisKinds : portKinds)[subtype] || '??'}/${value}`
  if (type === 3) return String(u16(bytes, at + 2))
  return `${type === 5 ? 'SysN' : 'SysD'}=${value}`
}

function lldpText(bytes: Uint8Array, type: number, at: number, size: number): string {
  const end = at + size
  switch (type) {
    case 1:
    case 2: {
      const isMac = bytes[at] === (type === 1 ? 4 : 3)
      const isNetwork = bytes[at] === (type === 1 ? 5 : 4)
      if (isMac && size === 7) return macText(bytes, at + 1)
      return isNetwork ? networkText(bytes, at + 1, end) : printable(bytes, Math.min(at + 1, end), end)
    }
    case 3:
      return size >= 2 ? `${u16(bytes, at)} s` : ''
    case 4:
    case 5:
    case 6:
      return printable(bytes, at, end)
    case 7:
      return size >= 4
        ? `${flagNames(u16(bytes, at), capabilities)}; enabled: ${flagNames(u16(bytes, at + 2), capabilities)}`
        : ''
    case 8:
      return size > 1 ? networkText(bytes, at + 1, Math.min(end, at + 1 + (bytes[at] as number))) : ''
    default:
      return size === 0 ? '' : rawText(bytes, at, size)
  }
}

/** An address after its family (IANA address family numbers): 1 is IPv4, 2 IPv6, 6 a MAC address. */
function networkText(bytes: Uint8Array, at: number, end: number): string {
  if (bytes[at] === 1 && end - at === 5) return ip4Text(bytes, at + 1)
  if (bytes[at] === 2 && end - at === 17) return ip6Text(bytes, at + 1)
  if (bytes[at] === 6 && end - at === 7) return macText(bytes, at + 1)
  return hexText(bytes, Math.min(at, end), end)
}

const cdpNames: Readonly<Record<number, string>> = {
  1: 'Device ID',
  2: 'Addresses',
  3: 'Port ID',
  4: 'Capabilities',
  5: 'Software version',
  6: 'Platform',
  7: 'Prefixes',
  9: 'VTP management domain',
  10: 'Native VLAN',
  11: 'Duplex',
  14: 'VoIP VLAN',
  16: 'Power consumption',
  18: 'Trust bitmap',
  19: 'Untrusted port CoS',
  22: 'Management addresses',
}
const cdpCapabilities = [
  'Router',
  'Transparent bridge',
  'Source route bridge',
  'Switch',
  'Host',
  'IGMP capable',
  'Repeater',
]

/** Cisco Discovery Protocol, version 1 and 2, as Wireshark and tcpdump read it. */
export function cdp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('CDP')
  const part = frame
    .layer('Cisco Discovery Protocol', at, end - at, end)
    ?.num('Version', at, 1)
    .num('Time to live', at + 1, 1, 's')
    .hex('Checksum', at + 2, 2)
  if (!frame.holds('CDP', at, 4, end)) return
  const last = Math.min(end, bytes.length)
  for (let offset = at + 4; offset < last; ) {
    if (!frame.holds('CDP', offset, 4, end)) return
    const type = u16(bytes, offset)
    const size = u16(bytes, offset + 2)
    if (size < 4) return frame.fail('Malformed Packet', 'CDP', offset)
    if (!frame.holds('CDP', offset, size, end)) return
    if (type === 1 || type === 3)
      frame.info += `${frame.info === '' ? '' : '  '}${cdpNames[type]}: ${printable(bytes, offset + 4, offset + size)}`
    const begin = offset
    part?.add(cdpNames[type] ?? `Type ${hex(type)}`, offset, size, () => cdpText(bytes, type, begin + 4, size - 4))
    offset += size
  }
}

function cdpText(bytes: Uint8Array, type: number, at: number, size: number): string {
  switch (type) {
    case 1:
    case 3:
    case 5:
    case 6:
    case 9:
      return printable(bytes, at, at + size)
    case 2:
    case 22:
      return cdpAddresses(bytes, at, at + size)
    case 4:
      return flagNames(uint(bytes, at, Math.min(size, 4)), cdpCapabilities)
    case 10:
      return size >= 2 ? String(u16(bytes, at)) : ''
    case 11:
      return bytes[at] === 1 ? 'Full' : 'Half'
    default:
      return size === 0 ? '' : rawText(bytes, at, size)
  }
}

/** A count, then for each address: type and length of the protocol, the protocol, length of the address, the address. */
function cdpAddresses(bytes: Uint8Array, from: number, end: number): string {
  const addresses: string[] = []
  let at = from + 4
  while (at + 4 <= end) {
    const offset = at + 2 + (bytes[at + 1] as number)
    const size = offset + 2 <= end ? u16(bytes, offset) : end
    if (offset + 2 + size > end) break
    addresses.push(
      size === 4
        ? ip4Text(bytes, offset + 2)
        : size === 16
          ? ip6Text(bytes, offset + 2)
          : hexText(bytes, offset + 2, offset + 2 + size),
    )
    at = offset + 2 + size
  }
  return addresses.join(', ')
}
