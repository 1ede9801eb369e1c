import type { Subnet } from '../../../../src/model/kinds/nat-subnet.ts'
import { bytesOf } from './addresses.ts'
import { Flows } from './flows.ts'
import type { Policy } from './policy.ts'

/** What happens to a frame of a guest. `refuse`: drop it, and answer the guest with an ICMP error. */
export type Decision = 'drop' | 'pass' | 'dhcp' | 'dns' | 'refuse'

export const etherType = { ip4: 0x0800, arp: 0x0806, ip6: 0x86dd } as const
export const protocol = { icmp: 1, tcp: 6, udp: 17, icmp6: 58 } as const
export const ethernetBytes = 14
export const ip6Bytes = 40
const port = { dns: 53, dhcp: 67, dhcp6: 547 } as const
const echoRequest = { icmp: 8, icmp6: 128 } as const
/** Router and neighbour solicitations, and advertisements of neighbours. */
const discovery: readonly number[] = [133, 135, 136]
const tcpFlag = { syn: 2, ack: 16 } as const

/** The addresses of the nat in the network of the guests. */
interface NatAddresses {
  readonly subnet: Subnet
  readonly six: { readonly prefix: Uint8Array; readonly gateway: Uint8Array; readonly host: Uint8Array } | undefined
}

export interface GateOptions extends NatAddresses {
  readonly policy: Policy
  /** Whether a UDP port of a guest is forwarded. */
  readonly isForwardedUdp: (guestPort: number) => boolean
}

/** `fe80::2` is the router that libslirp advertises. */
const router = bytesOf('fe80::2')
const allDhcpServers = bytesOf('ff02::1:2')

/**
 * The filter in front of libslirp. It passes packets to addresses that the policy allows, packets that the nat itself answers, and answers
 * to flows of forwarded ports; it drops all others. It judges each packet by its own headers, so fragments and options change nothing.
 */
export class NatGate {
  readonly #options: GateOptions
  readonly #bytes: Uint8Array
  readonly #view: DataView
  readonly #flows = new Flows()
  /** Whether `nat.reach` names the loopback of the host, for which an address of the network stands. */
  readonly #opensLoopback4: boolean
  readonly #opensLoopback6: boolean
  /** Offsets of the transport header and of the end of the packet that was judged last. */
  transport = 0
  end = 0

  /** Frames to be judged are in `bytes`. */
  constructor(options: GateOptions, bytes: Uint8Array) {
    this.#options = options
    this.#bytes = bytes
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
    this.#opensLoopback4 = options.policy.names(Uint8Array.of(127, 0, 0, 1))
    this.#opensLoopback6 = options.policy.names(bytesOf('::1'))
  }

  judge(offset: number, length: number): Decision {
    if (length < ethernetBytes + 20) return 'drop'
    switch (this.#view.getUint16(offset + 12, false)) {
      case etherType.arp:
        return 'pass'
      case etherType.ip4:
        return this.#judge4(offset + ethernetBytes, offset + length)
      case etherType.ip6:
        return this.#judge6(offset + ethernetBytes, offset + length)
      default:
        return 'drop'
    }
  }

  /** Notes the flow that a frame of libslirp to a guest begins, so that the guest may answer. */
  sent(bytes: Uint8Array, view: DataView, offset: number): void {
    const isSix = view.getUint16(offset + 12, false) === etherType.ip6
    const ip = offset + ethernetBytes
    const kind = bytes[ip + (isSix ? 6 : 9)]
    const transport = ip + (isSix ? ip6Bytes : ((bytes[ip] ?? 0) & 15) * 4)
    const begins =
      kind === protocol.tcp
        ? ((bytes[transport + 13] ?? 0) & (tcpFlag.syn | tcpFlag.ack)) === tcpFlag.syn
        : kind === protocol.udp && this.#options.isForwardedUdp(view.getUint16(transport + 2, false))
    if (!begins) return
    const [from, size] = isSix ? [ip + 8, 16] : [ip + 12, 4]
    const text = (start: number, count: number) => latin(bytes, start, count)
    this.#flows.add(
      `${kind}${text(from + size, size)}${text(from, size)}${text(transport + 2, 2)}${text(transport, 2)}`,
    )
  }

  #judge4(ip: number, end: number): Decision {
    const [bytes, view] = [this.#bytes, this.#view]
    const first = bytes[ip] as number
    const headerBytes = (first & 15) * 4
    const total = view.getUint16(ip + 2, false)
    if (first >> 4 !== 4 || headerBytes < 20 || total < headerBytes + 8 || ip + total > end) return 'drop'
    this.transport = ip + headerBytes
    this.end = ip + total
    const kind = bytes[ip + 9] as number
    const isFragment = (view.getUint16(ip + 6, false) & 0x3fff) !== 0
    const source = view.getUint32(ip + 12, false)
    const destination = view.getUint32(ip + 16, false)
    const { subnet, policy } = this.#options
    const to = isFragment || kind !== protocol.udp ? 0 : view.getUint16(this.transport + 2, false)
    if (to === port.dhcp && (destination === 0xffffffff || destination === subnet.gateway)) return 'dhcp'
    if ((source & subnet.mask) >>> 0 !== subnet.network || source <= subnet.host || source === subnet.broadcast) {
      return 'drop'
    }
    if ((destination & subnet.mask) >>> 0 !== subnet.network) {
      if (policy.allows4(destination)) return 'pass'
      if (this.#isAnswer(kind, ip + 12, 4, isFragment)) return 'pass'
      return destination >= 0xe0000000 ? 'drop' : 'refuse'
    }
    if (destination !== subnet.gateway && destination !== subnet.host) return 'drop'
    if (kind === protocol.icmp) return isFragment || bytes[this.transport] === echoRequest.icmp ? 'pass' : 'drop'
    if (destination === subnet.gateway) return this.#toGateway(kind, isFragment)
    return this.#opensLoopback4 || this.#isAnswer(kind, ip + 12, 4, isFragment) ? 'pass' : 'refuse'
  }

  #judge6(ip: number, end: number): Decision {
    const { six, policy } = this.#options
    const [bytes, view] = [this.#bytes, this.#view]
    if (six === undefined || ip + ip6Bytes + 8 > end || (bytes[ip] as number) >> 4 !== 6) return 'drop'
    this.transport = ip + ip6Bytes
    this.end = this.transport + view.getUint16(ip + 4, false)
    if (this.end > end || this.end < this.transport + 8) return 'drop'
    // libslirp knows no extension headers, so fragments and routing headers end here.
    const kind = bytes[ip + 6] as number
    if (kind !== protocol.tcp && kind !== protocol.udp && kind !== protocol.icmp6) return 'drop'
    const destination = bytes.subarray(ip + 24, ip + 40)
    const type = bytes[this.transport] as number
    if (kind === protocol.icmp6 && discovery.includes(type)) return 'pass'
    const to = view.getUint16(this.transport + 2, false)
    if (kind === protocol.udp && to === port.dhcp6 && isEqual(destination, allDhcpServers)) return 'pass'
    if (destination[0] === 0xff) return 'drop'
    const isEcho = kind === protocol.icmp6 && type === echoRequest.icmp6
    if (isEqual(destination, router)) return isEcho ? 'pass' : 'drop'
    if (!startsWith(bytes, ip + 8, six.prefix)) return 'drop'
    if (!startsWith(bytes, ip + 24, six.prefix)) {
      // libslirp sends no ICMPv6 out.
      if (kind !== protocol.icmp6 && policy.allows6(destination)) return 'pass'
      return this.#isAnswer(kind, ip + 8, 16, false) ? 'pass' : 'refuse'
    }
    const isGateway = isEqual(destination, six.gateway)
    if (!isGateway && !isEqual(destination, six.host)) return 'drop'
    if (kind === protocol.icmp6) return isEcho ? 'pass' : 'drop'
    if (isGateway) return this.#toGateway(kind, false)
    return this.#opensLoopback6 || this.#isAnswer(kind, ip + 8, 16, false) ? 'pass' : 'refuse'
  }

  /** The resolver (port 53): libslirp hands TCP to it on to that of the host. Fragments could hide the port. */
  #toGateway(kind: number, isFragment: boolean): Decision {
    if (isFragment || (kind !== protocol.udp && kind !== protocol.tcp)) return 'drop'
    if (this.#view.getUint16(this.transport + 2, false) !== port.dns) return 'refuse'
    return kind === protocol.udp ? 'dns' : 'pass'
  }

  /** Whether a packet belongs to a flow of a forwarded port. Its addresses are at `from`. */
  #isAnswer(kind: number, from: number, size: number, isFragment: boolean): boolean {
    if (isFragment || (kind !== protocol.tcp && kind !== protocol.udp)) return false
    const flags = (this.#bytes[this.transport + 13] as number) & (tcpFlag.syn | tcpFlag.ack)
    if (kind === protocol.tcp && flags === tcpFlag.syn) return false
    return this.#flows.has(`${kind}${latin(this.#bytes, from, 2 * size)}${latin(this.#bytes, this.transport, 4)}`)
  }
}

const latin = (bytes: Uint8Array, start: number, count: number): string =>
  String.fromCharCode(...bytes.subarray(start, start + count))
const isEqual = (a: Uint8Array, b: Uint8Array): boolean => startsWith(a, 0, b)

function startsWith(bytes: Uint8Array, at: number, start: Uint8Array): boolean {
  for (let index = 0; index < start.length; index++) if (bytes[at + index] !== start[index]) return false
  return true
}
