import { hexText, ip4Text, macText, printable } from './addresses.ts'
import { type DissectedPart, type Dissection, hex, rawText, u32, uint } from './dissection.ts'

const messageTypes = [
  '',
  'Discover',
  'Offer',
  'Request',
  'Decline',
  'ACK',
  'NAK',
  'Release',
  'Inform',
  'Force Renew',
  'Lease query',
  'Lease Unassigned',
  'Lease Unknown',
  'Lease Active',
]
const cookie = 0x63825363

type Show = 'address' | 'addresses' | 'text' | 'seconds' | 'number' | 'type' | 'parameters' | 'client'
/** Options (RFC 2132) and how their values are shown. */
const optionTable: Readonly<Record<number, readonly [name: string, show: Show]>> = {
  1: ['Subnet mask', 'address'],
  3: ['Router', 'addresses'],
  4: ['Time server', 'addresses'],
  6: ['Domain name server', 'addresses'],
  12: ['Host name', 'text'],
  15: ['Domain name', 'text'],
  17: ['Root path', 'text'],
  26: ['Interface MTU', 'number'],
  28: ['Broadcast address', 'address'],
  42: ['NTP server', 'addresses'],
  43: ['Vendor information', 'parameters'],
  50: ['Requested IP address', 'address'],
  51: ['IP address lease time', 'seconds'],
  53: ['DHCP message type', 'type'],
  54: ['DHCP server identifier', 'address'],
  55: ['Parameter request list', 'parameters'],
  56: ['Message', 'text'],
  57: ['Maximum DHCP message size', 'number'],
  58: ['Renewal time', 'seconds'],
  59: ['Rebinding time', 'seconds'],
  60: ['Vendor class identifier', 'text'],
  61: ['Client identifier', 'client'],
  66: ['TFTP server name', 'text'],
  67: ['Bootfile name', 'text'],
  77: ['User class', 'parameters'],
  81: ['Client fully qualified domain name', 'parameters'],
  82: ['Agent information', 'parameters'],
  93: ['Client system architecture', 'number'],
  97: ['UUID/GUID-based client identifier', 'parameters'],
  119: ['Domain search', 'parameters'],
  121: ['Classless static route', 'parameters'],
  150: ['TFTP server address', 'addresses'],
}

/** DHCP for IPv4 (RFC 2131), and BOOTP (RFC 951) without its options. */
export function dhcp(frame: Dissection, at: number, end: number): void {
  const { bytes } = frame
  frame.is('DHCP')
  const part = frame
    .layer('Dynamic Host Configuration Protocol', at, end - at, end)
    ?.num('Operation', at, 1, { 1: 'Boot Request', 2: 'Boot Reply' })
    .num('Hardware type', at + 1, 1, { 1: 'Ethernet' })
    .num('Hardware address length', at + 2, 1)
    .num('Hops', at + 3, 1)
    .hex('Transaction ID', at + 4, 4)
    .num('Seconds elapsed', at + 8, 2)
    .bits('Broadcast', at + 10, 2, 0x8000)
    .ip4('Client IP address', at + 12)
    .ip4('Your (client) IP address', at + 16)
    .ip4('Next server IP address', at + 20)
    .ip4('Relay agent IP address', at + 24)
    .mac('Client MAC address', at + 28)
  if (!frame.holds('DHCP', at, 236, end)) return
  part
    ?.add('Server host name', at + 44, 64, () => text(bytes, at + 44, 64))
    .add('Boot file name', at + 108, 128, () => text(bytes, at + 108, 128))
  const boot =
    bytes[at] === 1
      ? `Boot Request from ${macText(bytes, at + 28)}`
      : bytes[at] === 2
        ? 'Boot Reply'
        : `Unknown BOOTP operation ${bytes[at]}`
  frame.info = boot
  if (at + 240 > Math.min(end, bytes.length) || u32(bytes, at + 236) !== cookie) {
    frame.protocol = 'BOOTP'
    return
  }
  part?.add('Magic cookie', at + 236, 4, 'DHCP')
  const type = options(frame, part, at + 240, end)
  if (type === undefined) frame.protocol = 'BOOTP'
  frame.info =
    type === undefined
      ? `${boot}${frame.isSound ? '' : ' [Malformed Packet]'}`
      : `DHCP ${(messageTypes[type] ?? `Unknown (${type})`).padEnd(8)} - Transaction ID ${hex(u32(bytes, at + 4), 1)}${frame.isSound ? '' : ' [Malformed Packet]'}`
}

/** Reads the options, and gives the type of the message. */
function options(frame: Dissection, part: DissectedPart | undefined, from: number, end: number): number | undefined {
  const { bytes } = frame
  const last = Math.min(end, bytes.length)
  let type: number | undefined
  for (let at = from; at < last; ) {
    const code = bytes[at] as number
    if (code === 0) at += 1
    else if (code === 255) {
      part?.add('End', at, 1, '')
      break
    } else {
      const size = bytes[at + 1] as number
      if (!frame.holds('option of DHCP', at, 2, end) || !frame.holds('option of DHCP', at + 2, size, end)) break
      if (code === 53 && size === 1) type = bytes[at + 2]
      if (part !== undefined) {
        const [name, show] = optionTable[code] ?? [`Option ${code}`, 'parameters']
        const offset = at
        part.add(name, at, 2 + size, () => optionText(bytes, offset + 2, size, show))
      }
      at += 2 + size
    }
  }
  return type
}

function optionText(bytes: Uint8Array, at: number, size: number, show: Show): string {
  switch (show) {
    case 'type':
      return `${messageTypes[bytes[at] as number] ?? 'Unknown'} (${bytes[at]})`
    case 'text':
      return printable(bytes, at, at + size)
    case 'number':
      return String(uint(bytes, at, Math.min(size, 4)))
    case 'seconds':
      return `${uint(bytes, at, Math.min(size, 4))} s`
    case 'address':
    case 'addresses': {
      const addresses: string[] = []
      for (let offset = at; offset + 4 <= at + size; offset += 4) addresses.push(ip4Text(bytes, offset))
      return addresses.join(', ')
    }
    case 'client':
      return size === 7 && bytes[at] === 1 ? macText(bytes, at + 1) : rawText(bytes, at, size)
    default:
      return size <= 16 ? hexText(bytes, at, at + size) : rawText(bytes, at, size)
  }
}

/** A text that a zero byte ends. */
function text(bytes: Uint8Array, at: number, size: number): string {
  const end = bytes.subarray(at, at + size).indexOf(0)
  return printable(bytes, at, end < 0 ? at + size : at + end)
}
