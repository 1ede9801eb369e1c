import { macText } from './addresses.ts'
import { type Dissection, type Dissector, flagNames, hex, u16, uint } from './dissection.ts'

/** Up to here the field is a length, and LLC follows (IEEE 802.3, 3.2.6); from 0x600 on it is an EtherType. */
const maxLength = 1500
const minEtherType = 0x600

/** EtherTypes (IEEE registry) by name, also those that are not decoded here. */
const etherTypeNames: Readonly<Record<number, string>> = {
  2048: 'IPv4',
  2054: 'ARP',
  8192: 'CDP',
  32821: 'RARP',
  33024: '802.1Q Virtual LAN',
  34525: 'IPv6',
  34824: 'MAC Control',
  34825: 'Slow Protocols',
  34827: 'PPP',
  34887: 'MPLS label switched packet',
  34888: 'MPLS multicast',
  34915: 'PPPoE Discovery',
  34916: 'PPPoE Session',
  34958: '802.1X Authentication',
  34984: '802.1ad Provider Bridge (Q-in-Q)',
  34997: 'Local Experimental Ethertype 1',
  34998: 'Local Experimental Ethertype 2',
  35020: 'LLDP',
  35045: 'MACsec',
  35063: 'PTPv2 over Ethernet',
  36864: 'Loopback',
  37120: 'QinQ: Old 802.1ad',
}

/** Ethernet II and IEEE 802.3. */
export function ethernet(frame: Dissection, at: number, end: number): void {
  if (at + 12 <= frame.bytes.length) frame.macs = at
  // Within a tunnel the addresses are those of the inner frame.
  frame.source = ''
  frame.destination = ''
  const type = u16(frame.bytes, at + 12)
  frame
    .layer(type > maxLength ? 'Ethernet II' : 'IEEE 802.3 Ethernet', at, 14, end)
    ?.mac('Destination', at)
    .mac('Source', at + 6)
    .num(type > maxLength ? 'Type' : 'Length', at + 12, 2, type > maxLength ? showEtherType : 'bytes')
  frame.is('Ethernet')
  if (frame.holds('Ethernet', at, 14, end)) typeOrLength(frame, type, at + 14, end)
}

/** A VLAN tag (IEEE 802.1Q, 9.6), or the outer one of two (IEEE 802.1ad). */
export const vlan =
  (name: string): Dissector =>
  (frame, at, end) => {
    const { bytes } = frame
    const type = u16(bytes, at + 2)
    frame
      .layer(name, at, 4, end)
      ?.set(`ID: ${u16(bytes, at) & 0xfff}`)
      .bits('Priority', at, 2, 0xe000)
      .bits('Drop eligible', at, 2, 0x1000)
      .bits('ID', at, 2, 0x0fff)
      .num(type > maxLength ? 'Type' : 'Length', at + 2, 2, type > maxLength ? showEtherType : 'bytes')
    frame.is('VLAN')
    if (!frame.holds('VLAN', at, 4, end)) return
    const tci = u16(bytes, at)
    frame.info = `PRI: ${tci >> 13}  DEI: ${(tci >> 12) & 1}  ID: ${tci & 0xfff}`
    typeOrLength(frame, type, at + 4, end)
  }

function typeOrLength(frame: Dissection, type: number, at: number, end: number): void {
  if (type >= minEtherType) return etherType(frame, type, at, end)
  if (type > maxLength) return frame.fail('Malformed Packet', 'neither a length nor a type', at - 2)
  if (at + type > end) frame.layer('[The length is beyond the end of the frame]', at - 2, 2, end)
  frame.enter(frame.registry.llc, at, Math.min(at + type, end))
}

/** Reads what an EtherType announces; it is also used by SNAP and by the HDLC of Cisco. */
export function etherType(frame: Dissection, type: number, at: number, end: number): void {
  const dissector = frame.registry.etherTypes[type]
  if (dissector !== undefined) return frame.enter(dissector, at, end)
  frame.protocol = hex(type)
  frame.info = etherTypeNames[type] ?? `Unknown EtherType, ${end - at} bytes`
  frame.data(at, end)
}

export const showEtherType = (type: number): string => `${etherTypeNames[type] ?? 'Unknown'} (${hex(type)})`

const snap = 0xaa
const spanningTree = 0x42
const organizations: Readonly<Record<number, string>> = {
  0: 'Encapsulated Ethernet',
  12: 'Cisco',
  33010: 'IEEE 802.1',
}
const saps: Readonly<Record<number, string>> = {
  0: 'NULL LSAP',
  66: 'Spanning Tree BPDU',
  170: 'SNAP',
  224: 'NetWare',
  240: 'NetBIOS',
  254: 'ISO Network Layer',
  255: 'Global LSAP',
}

/** LLC (IEEE 802.2) and SNAP (RFC 1042). */
export function llc(frame: Dissection, at: number, end: number): void {
  const { bytes, registry } = frame
  const isUnnumbered = ((bytes[at + 2] as number) & 3) === 3
  frame.is('LLC')
  const part = frame.layer('Logical-Link Control', at, isUnnumbered ? 3 : 4, end)
  part
    ?.num('DSAP', at, 1, saps)
    .num('SSAP', at + 1, 1, saps)
    .hex('Control', at + 2, isUnnumbered ? 1 : 2)
  if (!frame.holds('LLC', at, 3, end)) return
  const sap = bytes[at] as number
  frame.info = `DSAP ${saps[sap] ?? hex(sap, 2)}, SSAP ${saps[bytes[at + 1] as number] ?? hex(bytes[at + 1] as number, 2)}`
  if (!isUnnumbered) return frame.data(at + 4, end)
  if (sap === spanningTree && registry.ciscoProtocols[pvst] !== undefined)
    return frame.enter(registry.ciscoProtocols[pvst], at + 3, end)
  if (sap !== snap) return frame.data(at + 3, end)
  frame
    .layer('SNAP', at + 3, 5, end)
    ?.num('Organization', at + 3, 3, organizations)
    .num('Protocol', at + 6, 2, uint(bytes, at + 3, 3) === 0 ? showEtherType : hex)
  if (!frame.holds('SNAP', at + 3, 5, end)) return
  const organization = uint(bytes, at + 3, 3)
  const protocol = u16(bytes, at + 6)
  if (organization === 0) return etherType(frame, protocol, at + 8, end)
  const dissector = organization === 12 ? registry.ciscoProtocols[protocol] : undefined
  if (dissector !== undefined) return frame.enter(dissector, at + 8, end)
  frame.info = `${organizations[organization] ?? hex(organization, 6)} protocol ${hex(protocol)}`
  frame.data(at + 8, end)
}

/** The protocol of Cisco whose frames are those of the spanning tree, one for each VLAN. */
export const pvst = 0x010b

/** Loopback test of Ethernet 2.0 (Configuration Testing Protocol); Cisco sends them as keepalives. */
export function loopback(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('LOOP')
  // The numbers of this protocol are little-endian; the skip count says where the function is.
  const offset = at + 2 + ((bytes[at] as number) | ((bytes[at + 1] as number) << 8))
  const part = frame.layer('Configuration Test Protocol (loopback)', at, end - at, end)
  if (!frame.holds('LOOP', at, 2, end) || !frame.holds('LOOP', offset, 2, end)) return
  const code = (bytes[offset] as number) | ((bytes[offset + 1] as number) << 8)
  frame.info = code === 1 ? 'Reply' : code === 2 ? 'Forward Data' : `Unknown function ${code}`
  part?.add('Function', offset, 2, `${frame.info} (${code})`)
}

const arpOperations: Readonly<Record<number, string>> = {
  1: 'request',
  2: 'reply',
  3: 'reverse request',
  4: 'reverse reply',
}

/** ARP (RFC 826) and RARP (RFC 903) of IPv4 over Ethernet. */
export function arp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  const operation = u16(bytes, at + 6)
  frame.is(operation === 3 || operation === 4 ? 'RARP' : 'ARP')
  const isUsual = u16(bytes, at) === 1 && u16(bytes, at + 2) === 0x800 && u16(bytes, at + 4) === 0x604
  const part = frame
    .layer('Address Resolution Protocol', at, 28, end)
    ?.num('Hardware type', at, 2, { 1: 'Ethernet', 6: 'IEEE 802', 15: 'Frame Relay' })
    .num('Protocol type', at + 2, 2, showEtherType)
    .num('Hardware size', at + 4, 1)
    .num('Protocol size', at + 5, 1)
    .num('Operation', at + 6, 2, arpOperations)
  if (!frame.holds('ARP', at, 8, end)) return
  if (!isUsual) {
    frame.info = `${arpOperations[operation] ?? `operation ${operation}`}, of other than IPv4 and Ethernet`
    return frame.data(at + 8, end)
  }
  part
    ?.mac('Sender MAC', at + 8)
    .ip4('Sender IP', at + 14)
    .mac('Target MAC', at + 18)
    .ip4('Target IP', at + 24)
  if (!frame.holds('ARP', at, 28, end)) return
  frame.info = arpInfo(bytes, at, operation)
}

function arpInfo(bytes: Uint8Array, at: number, operation: number): string {
  const sender = `${bytes[at + 14]}.${bytes[at + 15]}.${bytes[at + 16]}.${bytes[at + 17]}`
  const target = `${bytes[at + 24]}.${bytes[at + 25]}.${bytes[at + 26]}.${bytes[at + 27]}`
  const hasNoTarget = uint(bytes, at + 18, 4) === 0 && u16(bytes, at + 22) === 0
  switch (operation) {
    case 1:
      if (sender === target)
        return hasNoTarget ? `ARP Announcement for ${target}` : `Gratuitous ARP for ${target} (Request)`
      // RFC 5227, 1.1: a probe and an announcement leave the address that is asked for empty.
      return sender === '0.0.0.0' && hasNoTarget
        ? `Who has ${target}? (ARP Probe)`
        : `Who has ${target}? Tell ${sender}`
    case 2:
      return sender === target ? `Gratuitous ARP for ${sender} (Reply)` : `${sender} is at ${macText(bytes, at + 8)}`
    case 3:
      return `Who is ${macText(bytes, at + 18)}? Tell ${macText(bytes, at + 8)}`
    case 4:
      return `${macText(bytes, at + 18)} is at ${target}`
    default:
      return `Unknown ARP opcode ${hex(operation)}`
  }
}

const portRoles = ['Unknown', 'Alternate or Backup', 'Root', 'Designated']
const bpduTypes: Readonly<Record<number, string>> = {
  0: 'Configuration',
  2: 'Rapid/Multiple Spanning Tree',
  128: 'Topology Change Notification',
}

/** Spanning tree: STP, RSTP and the common part of MSTP (IEEE 802.1D-2004, 9.3; IEEE 802.1Q, 14). */
export function stp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('STP')
  const part = frame
    .layer('Spanning Tree Protocol', at, 36, end)
    ?.hex('Protocol', at, 2)
    .num('Version', at + 2, 1, { 0: 'Spanning Tree', 2: 'Rapid Spanning Tree', 3: 'Multiple Spanning Tree' })
    .num('Type', at + 3, 1, bpduTypes)
  if (!frame.holds('STP', at, 4, end)) return
  const type = bytes[at + 3] as number
  if (type === 128) {
    frame.info = 'Topology Change Notification'
    return
  }
  if (type !== 0 && type !== 2) {
    frame.info = `Unknown BPDU type ${type}`
    return
  }
  const bridge = (offset: number) => () =>
    `${u16(bytes, offset) & 0xf000} / ${u16(bytes, offset) & 0xfff} / ${macText(bytes, offset + 2)}`
  part
    ?.add('Flags', at + 4, 1, () => bpduFlags(bytes[at + 4] as number))
    .add('Root identifier', at + 5, 8, bridge(at + 5))
    .num('Root path cost', at + 13, 4)
    .add('Bridge identifier', at + 17, 8, bridge(at + 17))
    .hex('Port identifier', at + 25, 2)
    .num('Message age', at + 27, 2, seconds256)
    .num('Max age', at + 29, 2, seconds256)
    .num('Hello time', at + 31, 2, seconds256)
    .num('Forward delay', at + 33, 2, seconds256)
  if (!frame.holds('STP', at, 35, end)) return
  const flags = bytes[at + 4] as number
  const name = type === 0 ? 'Conf' : (['RST', 'MST', 'SPT'][(bytes[at + 2] as number) - 2] ?? 'RST')
  const change =
    flags & 0x81 ? `${flagNames((flags & 1) | ((flags >> 6) & 2), ['TC', 'TCA']).replace(', ', ' + ')} + ` : ''
  const root = u16(bytes, at + 5)
  frame.info = `${name}. ${change}Root = ${root & 0xf000}/${root & 0xfff}/${macText(bytes, at + 7)}  Cost = ${uint(bytes, at + 13, 4)}  Port = ${hex(u16(bytes, at + 25))}`
}

const bpduFlags = (flags: number): string =>
  `${hex(flags, 2)} (${[
    flags & 0x80 && 'Topology Change Acknowledgment',
    flags & 0x40 && 'Agreement',
    flags & 0x20 && 'Forwarding',
    flags & 0x10 && 'Learning',
    flags & 0x0c && `Port Role: ${portRoles[(flags >> 2) & 3]}`,
    flags & 0x02 && 'Proposal',
    flags & 0x01 && 'Topology Change',
  ]
    .filter(Boolean)
    .join(', ')})`

/** Times of BPDUs count in 1/256 s. */
const seconds256 = (value: number): string => `${value / 256} s`
