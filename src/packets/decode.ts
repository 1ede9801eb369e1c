import { macText } from './addresses.ts'
import { dhcp } from './dhcp.ts'
import { cdp, lldp } from './discovery.ts'
import { Dissection, type Dissector, type DissectorRegistry, type Field, maxInfo } from './dissection.ts'
import { dns, dnsOverTcp } from './dns.ts'
import { arp, ethernet, llc, loopback, pvst, stp, vlan } from './ethernet.ts'
import { icmp, icmpv6 } from './icmp.ts'
import { authentication, gre, ipv4, ipv6 } from './ip.ts'
import { bgp, ospf } from './routing.ts'
import { chap, ciscoHdlc, pap, ppp, pppControl } from './serial.ts'
import { tcp, udp, vxlan } from './transport.ts'

/** A frame in one line, in the columns of Wireshark. */
export interface Summary {
  readonly source: string
  readonly destination: string
  readonly protocol: string
  readonly info: string
}

/** What is decoded: the captured bytes, and what they are. */
export interface Captured {
  readonly bytes: Uint8Array
  /** Length of the frame on the wire, at least that of `bytes`. */
  readonly length: number
  /** Number of the link type (tcpdump.org/linktypes.html). */
  readonly linkType: number
}

const registry: DissectorRegistry = {
  ethernet,
  llc,
  etherTypes: {
    2048: ipv4,
    2054: arp,
    32821: arp,
    33024: vlan('802.1Q Virtual LAN'),
    34525: ipv6,
    34984: vlan('IEEE 802.1ad'),
    35020: lldp,
    36864: loopback,
    37120: vlan('IEEE 802.1QinQ'),
  },
  ipProtocols: {
    1: icmp(ipv4),
    4: ipv4,
    6: tcp,
    17: udp,
    41: ipv6,
    47: gre,
    51: authentication,
    58: icmpv6(ipv6),
    89: ospf,
  },
  udpPorts: { 53: dns('DNS'), 67: dhcp, 68: dhcp, 4789: vxlan, 5353: dns('MDNS'), 5355: dns('LLMNR') },
  tcpPorts: { 53: dnsOverTcp, 179: bgp },
  ciscoProtocols: { 8192: cdp, [pvst]: stp },
  pppProtocols: {
    33: ipv4,
    87: ipv6,
    519: cdp,
    32801: pppControl('IPCP'),
    32855: pppControl('IPV6CP'),
    33021: pppControl('CCP'),
    33287: pppControl('CDPCP'),
    49185: pppControl('LCP'),
    49187: pap,
    49699: chap,
  },
}

/** The link types of captures that are decoded. */
const linkTypes: Readonly<Record<number, Dissector>> = { 1: ethernet, 9: ppp, 50: ppp, 104: ciscoHdlc }

/** A frame in one line. Never throws: what cannot be read is said in `info`. */
export function summarize(captured: Captured): Summary {
  const { source, destination, protocol, info } = run(captured, false)
  return { source, destination, protocol, info }
}

/** A frame as a tree: its layers, with fields that name their bytes. Never throws. */
export function dissect(captured: Captured): Summary & { readonly layers: readonly Field[] } {
  const { source, destination, protocol, info, layers = [] } = run(captured, true)
  return { source, destination, protocol, info, layers }
}

function run({ bytes, length, linkType }: Captured, hasTree: boolean): Dissection {
  const frame = new Dissection(bytes, registry, hasTree)
  const end = Math.max(length, bytes.length)
  const dissector = linkTypes[linkType]
  if (dissector !== undefined) dissector(frame, 0, end)
  else {
    frame.protocol = 'Unknown'
    frame.info = `Frames of link type ${linkType} are not decoded`
    frame.data(0, end)
  }
  if (frame.source === '' && frame.macs >= 0) {
    frame.source = macText(bytes, frame.macs + 6)
    frame.destination = macText(bytes, frame.macs)
  }
  if (frame.info.length > maxInfo) frame.info = `${frame.info.slice(0, maxInfo)}...`
  return frame
}
