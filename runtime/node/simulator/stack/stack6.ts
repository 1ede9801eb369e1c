import { pause } from '../../../../src/async/pause.ts'
import {
  allNodes,
  allRouters,
  equalBytes,
  formatIp6,
  type Ip6,
  isLinkLocal,
  isMulticast6,
  linkLocalPrefix,
  type Mac,
  multicastMac,
  samePrefix,
  solicitedNode,
  withInterfaceId,
} from './address.ts'
import { read16, read32, sum16, write16, write32 } from './bytes.ts'
import { ethernetHead, etherType, newFrame } from './ethernet.ts'
import { HostStack, type Packet } from './host-stack.ts'
import { protocol } from './ip4.ts'
import type { SendOptions, SendResult } from './net-event.ts'

const head = 40
/** Messages of neighbour discovery (RFC 4861, 4). */
const discovery = { routerSolicitation: 133, routerAdvertisement: 134, solicitation: 135, advertisement: 136 } as const
/** The hop limit of these messages. With a lower one a message has crossed a router and is invalid (RFC 4861, 7.1). */
const discoveryLimit = 255
/** Codes of their options with a link-layer address (RFC 4861, 4.6.1). */
const linkLayer = { source: 1, target: 2 } as const
const unspecified: Ip6 = new Uint8Array(16)

export interface Address6 {
  readonly address: Ip6
  readonly prefix: number
}

/** IPv6 of a pc, with neighbour discovery (RFC 4861) and stateless addresses (RFC 4862). */
export class Stack6 extends HostStack<Ip6> {
  readonly linkLocal = withInterfaceId(linkLocalPrefix, this.mac)
  global: Address6 | undefined
  router: Ip6 | undefined
  protected readonly icmp = {
    ...{ protocol: protocol.icmp6, echo: 128, echoReply: 129, unreachable: 1, portUnreachable: 4, exceeded: 3 },
    // An error fits in the minimum MTU (RFC 4443, 2.4 c).
    ...{ head, protocolAt: 6, quoteBytes: 1280 - head - 8 },
  }
  protected readonly probes = [1, 300] as const
  /** Addresses of pending neighbour solicitations, by their text. */
  readonly #asked = new Map<string, Ip6>()
  #advertised: ((address: Address6) => void) | undefined

  receive(frame: Uint8Array): void {
    const at = ethernetHead
    const length = read16(frame, at + 4)
    if ((frame[at] ?? 0) >> 4 !== 6 || frame.length < at + head + length) return
    const destination = frame.subarray(at + 24, at + 40)
    if (!this.#isOurs(destination)) return
    const number = frame[at + 6] ?? 0
    const payload = frame.subarray(at + head, at + head + length)
    const isGroup = isMulticast6(destination)
    if (isGroup && number !== protocol.icmp6) return
    // UDP over IPv6 requires a checksum (RFC 8200, 8.1).
    if (number === protocol.udp && read16(payload, 6) === 0) return
    const [from, source, whole] = [frame.subarray(6, 12), frame.subarray(at + 8, at + 24), frame.subarray(at)]
    const packet = { from, source, destination, protocol: number, ttl: frame[at + 7] ?? 0, payload, whole }
    this.receivePacket(packet, isGroup)
  }

  async send(destination: Ip6, number: number, payload: Uint8Array, options: SendOptions = {}): Promise<SendResult> {
    if (payload.length + head > this.mtu) return 'too big'
    const isOnLink =
      isLinkLocal(destination) ||
      (this.global !== undefined && samePrefix(destination, this.global.address, this.global.prefix))
    const hop = isOnLink ? destination : this.router
    if (hop === undefined) return this.global === undefined ? 'no address' : 'no gateway'
    const mac = this.#isOwn(destination) ? this.mac : await this.#resolve(hop)
    if (mac === undefined) return 'not reachable'
    this.reply(mac, this.sourceFor(destination), destination, number, payload, options.ttl)
    return 'sent'
  }

  pseudo(source: Ip6, destination: Ip6) {
    return (number: number, length: number) => sum16(source, 0, 16) + sum16(destination, 0, 16) + length + number
  }

  /** Sends a router solicitation. Returns the address that results from the first advertisement; undefined without one. */
  async solicitRouters(waitMs: number, signal: AbortSignal): Promise<Address6 | undefined> {
    const message = new Uint8Array(16)
    message[0] = discovery.routerSolicitation
    this.#putLinkLayer(message, 8, linkLayer.source)
    this.#sendDiscovery(multicastMac(allRouters), this.linkLocal, allRouters, message)
    let found: Address6 | undefined
    const started = (end: () => void) => {
      this.#advertised = (address) => {
        found = address
        end()
      }
    }
    await pause(waitMs, signal, started, this.startTimer)
    this.#advertised = undefined
    return found
  }

  protected sourceFor(destination: Ip6): Ip6 {
    return isLinkLocal(destination) || this.global === undefined ? this.linkLocal : this.global.address
  }

  protected format(address: Ip6): string {
    return formatIp6(address)
  }

  protected askNeighbour(text: string): void {
    const address = this.#asked.get(text)
    if (address !== undefined) this.#solicit(address, this.sourceFor(address))
  }

  protected probe(address: Ip6): void {
    this.#solicit(address, unspecified)
  }

  protected icmpSum(source: Ip6, destination: Ip6, length: number): number {
    return this.pseudo(source, destination)(protocol.icmp6, length)
  }

  protected headOf(): number {
    return head
  }

  protected reply(to: Mac, source: Ip6, destination: Ip6, number: number, payload: Uint8Array, limit = 64): void {
    const frame = newFrame(to, this.mac, etherType.ip6, head + payload.length)
    const at = ethernetHead
    frame[at] = 0x60
    write16(frame, at + 4, payload.length)
    frame[at + 6] = number
    frame[at + 7] = limit
    frame.set(source, at + 8)
    frame.set(destination, at + 24)
    frame.set(payload, at + head)
    this.sendFrame(frame)
  }

  #isOwn(address: Ip6): boolean {
    return (
      equalBytes(address, this.linkLocal) || (this.global !== undefined && equalBytes(address, this.global.address))
    )
  }

  #isOurs(destination: Ip6): boolean {
    if (this.#isOwn(destination) || equalBytes(destination, allNodes)) return true
    return [this.linkLocal, this.global?.address, this.contested?.address].some(
      (address) => address !== undefined && equalBytes(destination, solicitedNode(address)),
    )
  }

  #resolve(hop: Ip6): Promise<Mac | undefined> | Mac {
    const text = formatIp6(hop)
    const known = this.neighbours.get(text)
    if (known !== undefined) return known
    this.#asked.set(text, hop.slice())
    return this.neighbours.resolve(text).finally(() => this.#asked.delete(text))
  }

  #solicit(target: Ip6, source: Ip6): void {
    const isUnspecified = equalBytes(source, unspecified)
    const message = new Uint8Array(isUnspecified ? 24 : 32)
    message[0] = discovery.solicitation
    message.set(target, 8)
    if (!isUnspecified) this.#putLinkLayer(message, 24, linkLayer.source)
    const to = solicitedNode(target)
    this.#sendDiscovery(multicastMac(to), source, to, message)
  }

  #advertise(target: Ip6, to: Ip6, mac: Mac, isSolicited: boolean): void {
    const message = new Uint8Array(32)
    message[0] = discovery.advertisement
    // Flags S and O (RFC 4861, 4.4).
    write32(message, 4, isSolicited ? 0x60000000 : 0x20000000)
    message.set(target, 8)
    this.#putLinkLayer(message, 24, linkLayer.target)
    this.#sendDiscovery(mac, target, to, message)
  }

  #putLinkLayer(message: Uint8Array, at: number, code: number): void {
    message.set([code, 1, ...this.mac], at)
  }

  #sendDiscovery(mac: Mac, source: Ip6, to: Ip6, message: Uint8Array): void {
    this.reply(mac, source, to, protocol.icmp6, this.sealed(message, source, to), discoveryLimit)
  }

  protected override receiveOther(type: number, { payload, source, from, ttl }: Packet<Ip6>): void {
    if (ttl !== discoveryLimit) return
    if (type === discovery.routerAdvertisement) return this.#receiveRouter(payload, source, from)
    if (payload.length < 24) return
    const target = payload.slice(8, 24)
    if (type === discovery.advertisement) {
      const mac = option(payload, 24, linkLayer.target)?.subarray(2, 8) ?? from
      if (this.contested !== undefined && equalBytes(target, this.contested.address)) this.contested.by(mac.slice())
      // Only requested addresses are learned, so that no host can fill the cache or take over an address unasked.
      const text = formatIp6(target)
      if (this.#asked.has(text)) this.neighbours.learn(text, mac)
    } else if (type === discovery.solicitation && this.#isOwn(target)) {
      const isProbe = equalBytes(source, unspecified)
      if (isProbe) return this.#advertise(target, allNodes, multicastMac(allNodes), false)
      this.neighbours.learn(formatIp6(source), option(payload, 24, linkLayer.source)?.subarray(2, 8) ?? from)
      this.#advertise(target, source, from, true)
    }
  }

  #receiveRouter(message: Uint8Array, source: Ip6, from: Mac): void {
    if (message.length < 16 || !isLinkLocal(source)) return
    const mtu = option(message, 16, 5)
    if (mtu !== undefined) this.mtu = Math.min(Math.max(read32(mtu, 4), 1280), 1500)
    if (read16(message, 6) > 0) {
      this.router = source.slice()
      this.neighbours.learn(formatIp6(source), option(message, 16, linkLayer.source)?.subarray(2, 8) ?? from)
    }
    const prefix = option(message, 16, 3)
    // Flag A permits autoconfiguration (RFC 4861, 4.6.2), which needs 64 bits for the interface identifier.
    const isUsable = prefix !== undefined && prefix.length === 32 && prefix[2] === 64 && ((prefix[3] ?? 0) & 0x40) !== 0
    if (isUsable) this.#advertised?.({ address: withInterfaceId(prefix.subarray(16, 24), this.mac), prefix: 64 })
  }
}

/** The first option of a type, with its type and length (in units of eight bytes). */
function option(message: Uint8Array, from: number, type: number): Uint8Array | undefined {
  for (let at = from; at + 8 <= message.length; ) {
    const length = (message[at + 1] ?? 0) * 8
    if (length === 0 || at + length > message.length) return undefined
    if (message[at] === type) return message.subarray(at, at + length)
    at += length
  }
  return undefined
}
