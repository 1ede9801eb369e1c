import { type DissectedPart, type Dissection, hex, u16, u32 } from './dissection.ts'
import { http } from './http.ts'

/** User Datagram Protocol (RFC 768). */
export function udp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('UDP')
  const part = frame
    .layer('User Datagram Protocol', at, 8, end)
    ?.num('Source port', at, 2)
    .num('Destination port', at + 2, 2)
    .num('Length', at + 4, 2)
    .hex('Checksum', at + 6, 2)
  if (!frame.holds('UDP', at, 8, end)) return
  const source = u16(bytes, at)
  const destination = u16(bytes, at + 2)
  const told = u16(bytes, at + 4)
  // 0 stands for a jumbogram (RFC 2675, 4).
  const size = told === 0 && end - at > 0xffff ? end - at : told
  part?.set(`Src Port: ${source}, Dst Port: ${destination}`)
  frame.info = `${source} → ${destination} Len=${size - 8}`
  if (size < 8 || at + size > end) {
    frame.info = `${source} → ${destination} [BAD UDP LENGTH ${size} ${size < 8 ? '< 8]' : `> IP PAYLOAD LENGTH] Len=${size - 8}`}`
    frame.isSound = false
    return frame.data(at + 8, end)
  }
  carry(frame, frame.registry.udpPorts, at, at + 8, at + size)
}

/** Virtual eXtensible LAN (RFC 7348): an Ethernet frame in a datagram. */
export function vxlan(frame: Dissection, at: number, end: number): void {
  frame
    .layer('Virtual eXtensible Local Area Network', at, 8, end)
    ?.hex('Flags', at, 1)
    .num('VNI', at + 4, 3)
  if (frame.holds('VXLAN', at, 8, end)) frame.enter(frame.registry.ethernet, at + 8, end)
}

/** Flags of TCP in the order in which they are shown (RFC 9293, 3.1; RFC 3168, 6.1). */
const flags = ['FIN', 'SYN', 'RST', 'PSH', 'ACK', 'URG', 'ECE', 'CWR', 'AE']
/** The texts of all combinations, which the summary of every segment needs. */
const flagTexts: readonly string[] = Array.from(
  { length: 512 },
  (_, value) => flags.filter((_, bit) => (value >> bit) & 1).join(', ') || '<None>',
)

/** Transmission Control Protocol (RFC 9293). The numbers are those of the segment: nothing is kept of earlier ones. */
export function tcp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('TCP')
  const headerSize = ((bytes[at + 12] as number) >> 4) * 4
  const part = frame
    .layer('Transmission Control Protocol', at, Math.max(headerSize || 20, 20), end)
    ?.num('Source port', at, 2)
    .num('Destination port', at + 2, 2)
    .num('Sequence number', at + 4, 4)
    .num('Acknowledgment number', at + 8, 4)
    .bits('Header length', at + 12, 1, 0xf0, (words) => `${words * 4} bytes (${words})`)
    .bits('Flags', at + 12, 2, 0x1ff, (value) => `${hex(value, 3)} (${flagTexts[value]})`)
    .num('Window', at + 14, 2)
    .hex('Checksum', at + 16, 2)
    .num('Urgent pointer', at + 18, 2)
  if (!frame.holds('TCP', at, 20, end)) return
  const source = u16(bytes, at)
  const destination = u16(bytes, at + 2)
  part?.set(`Src Port: ${source}, Dst Port: ${destination}`)
  const set = u16(bytes, at + 12) & 0x1ff
  const columns = `${source} → ${destination} [${flagTexts[set]}] Seq=${u32(bytes, at + 4)}`
  if (headerSize < 20 || at + headerSize > end) {
    frame.info = `${columns} [bogus TCP header length ${headerSize}${headerSize < 20 ? ', must be at least 20' : ''}]`
    frame.isSound = false
    return
  }
  const urgent = set & 0x20 ? ` Urg=${u16(bytes, at + 18)}` : ''
  frame.info = `${columns}${set & 0x10 ? ` Ack=${u32(bytes, at + 8)}` : ''} Win=${u16(bytes, at + 14)}${urgent} Len=${end - at - headerSize}`
  if (headerSize > 20) frame.info += options(bytes, at + 20, Math.min(at + headerSize, bytes.length), part)
  if (at + headerSize < end) carry(frame, frame.registry.tcpPorts, at, at + headerSize, end)
}

/** The payload is read by the protocol of one of the ports, else as HTTP if it begins as such. */
function carry(
  frame: Dissection,
  ports: Dissection['registry']['tcpPorts'],
  at: number,
  from: number,
  end: number,
): void {
  const { bytes } = frame
  if (from >= end) return
  const dissector = ports[u16(bytes, at + 2)] ?? ports[u16(bytes, at)]
  if (dissector !== undefined) return frame.enter(dissector, from, end)
  if (ports === frame.registry.tcpPorts && http(frame, from, end)) return
  frame.data(from, end)
}

/** The options of a segment, as the summary shows them; each is a field of the tree. */
function options(bytes: Uint8Array, from: number, end: number, part: DissectedPart | undefined): string {
  let text = ''
  for (let at = from; at < end; ) {
    const kind = bytes[at] as number
    if (kind < 2) {
      part?.add('Option', at, 1, kind === 0 ? 'End of Option List' : 'No-Operation')
      if (kind === 0) break
      at += 1
      continue
    }
    const size = bytes[at + 1] as number
    if (!(size >= 2) || at + size > end) {
      part?.add('Option', at, end - at, '[malformed]')
      break
    }
    const option = optionText(bytes, at, kind, size)
    if (option === undefined) part?.add('Option', at, size, `Unknown (${kind})`)
    else {
      text += ` ${option}`
      part?.add('Option', at, size, option)
    }
    at += size
  }
  return text
}

function optionText(bytes: Uint8Array, at: number, kind: number, size: number): string | undefined {
  if (kind === 2 && size === 4) return `MSS=${u16(bytes, at + 2)}`
  if (kind === 3 && size === 3) return `WS=${2 ** Math.min(bytes[at + 2] as number, 14)}`
  if (kind === 4 && size === 2) return 'SACK_PERM'
  if (kind === 8 && size === 10) return `TSval=${u32(bytes, at + 2)} TSecr=${u32(bytes, at + 6)}`
  if (kind === 5) {
    const blocks: string[] = []
    for (let block = at + 2; block + 8 <= at + size; block += 8)
      blocks.push(`SLE=${u32(bytes, block)} SRE=${u32(bytes, block + 4)}`)
    return blocks.join(' ')
  }
  if (kind === 19 && size === 18) return 'TCP MD5'
  return undefined
}
