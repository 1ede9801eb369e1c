import { pause } from '../../../../../src/lib/async/pause.ts'
import {
  allNodes,
  allRouters,
  equalBytes,
  formatIp6,
  type Ip6,
  isHost6,
  isLinkLocal,
  isMulticast6,
  linkLocalPrefix,
  type Mac,
  multicastMac,
  solicitedNode,
  withInterfaceId,
} from './address.ts'
import { read16, sum16, write32 } from './bytes.ts'
import { ethernetHead } from './ethernet.ts'
import { HostStack, type Packet } from './host-stack.ts'
import { protocol } from './ip4.ts'
import { head6, Ip6Packets, type Packet6, quoted6 } from './ip6.ts'
import type { SendOptions, SendResult } from './net-event.ts'
import { type Address6, optionsOf, RouterAdvertisements } from './router-advertisements.ts'

/** Messages of neighbour discovery (RFC 4861, 4). */
const discovery = {
  routerSolicitation: 133,
  routerAdvertisement: 134,
  solicitation: 135,
  advertisement: 136,
  redirect: 137,
} as const
/** The hop limit of these messages. With a lower one a message has crossed a router and is invalid (RFC 4861, 7.1). */
const discoveryLimit = 255
/** Codes of their options with a link-layer address (RFC 4861, 4.6.1). */
const linkLayer = { source: 1, target: 2 } as const
/** Flags of a neighbour advertisement (RFC 4861, 4.4): its sender is a router, and it replaces what is cached. */
const [routerFlag, overrideFlag] = [0x80, 0x20] as const
const unspecified: Ip6 = new Uint8Array(16)
const destinationAt = ethernetHead + 24

/** IPv6 of a pc, with neighbour discovery (RFC 4861) and stateless addresses (RFC 4862). */
export class Stack6 extends HostStack<Ip6> {
  readonly linkLocal = withInterfaceId(linkLocalPrefix, this.mac)
  protected readonly icmp = {
    protocol: protocol.icmp6,
    echo: 128,
    echoReply: 129,
    unreachable: 1,
    portUnreachable: 4,
    exceeded: 3,
    // An error fits in the minimum MTU (RFC 4443, 2.4 c).
    head: head6,
    quoteBytes: 1280 - head6 - 8,
  }
  protected readonly probes = [1, 300] as const
  /** Addresses of pending neighbour solicitations, by their text. */
  readonly #solicited = new Map<string, Ip6>()
  #advertised: ((address: Address6) => void) | undefined
  readonly #ip = new Ip6Packets(this.mac, this.sendFrame)
  readonly #advertisements = new RouterAdvertisements(this.mac)

  /** The global address. */
  get global(): Address6 | undefined {
    return this.#advertisements.global
  }

  set global(address: Address6 | undefined) {
    this.#advertisements.global = address
  }

  /** The default router. */
  get router(): Ip6 | undefined {
    return this.#advertisements.router
  }

  forgetRouter(): void {
    this.#advertisements.forgetRouter()
  }

  receive(frame: Uint8Array): void {
    if (!this.#isOurs(frame.subarray(destinationAt, destinationAt + 16))) return
    const packet = this.#ip.parse(frame)
    if (packet === undefined) return
    const isGroup = isMulticast6(packet.destination)
    if (isGroup && packet.protocol !== protocol.icmp6) return
    // UDP over IPv6 requires a checksum (RFC 8200, 8.1).
    if (packet.protocol === protocol.udp && read16(packet.payload, 6) === 0) return
    if (packet.isFragmented && isDiscovery(packet)) return
    this.receivePacket(packet, isGroup)
  }

  override close(): void {
    super.close()
    this.#ip.close()
  }

  async send(
    destination: Ip6,
    number: number,
    payload: Uint8Array,
    options: SendOptions = {},
    source: Ip6 = this.sourceFor(destination),
  ): Promise<SendResult> {
    if (!this.isHost(destination)) return 'not reachable'
    const hop = this.#advertisements.isOnLink(destination) ? destination : this.router
    if (hop === undefined) return this.global === undefined ? 'no address' : 'no gateway'
    const mac = this.#isOwn(destination) ? this.mac : await this.#resolve(hop)
    if (mac === undefined) return 'not reachable'
    const packet = { protocol: number, source: source.slice(), destination: destination.slice(), payload, ...options }
    return this.#ip.send(mac, this.mtu, packet) ? 'sent' : 'too big'
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
    const address = this.#solicited.get(text)
    if (address !== undefined) this.#solicit(address, this.sourceFor(address))
  }

  protected probe(address: Ip6): void {
    this.#solicit(address, unspecified)
  }

  protected icmpSum(source: Ip6, destination: Ip6, length: number): number {
    return this.pseudo(source, destination)(protocol.icmp6, length)
  }

  protected upperLayerOf(packet: Uint8Array) {
    return quoted6(packet)
  }

  protected isHost(address: Ip6): boolean {
    return isHost6(address)
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
    this.#solicited.set(text, hop.slice())
    return this.neighbours.resolve(text).finally(() => this.#solicited.delete(text))
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
    const payload = this.sealed(message, source, to)
    this.#ip.send(mac, this.mtu, { protocol: protocol.icmp6, source, destination: to, payload, ttl: discoveryLimit })
  }

  protected override receiveOther(type: number, { payload, source, from, ttl }: Packet<Ip6>): void {
    if (ttl !== discoveryLimit) return
    if (type === discovery.routerAdvertisement) return this.#receiveRouter(payload, source, from)
    if (payload.length < 24) return
    const target = payload.slice(8, 24)
    if (type === discovery.advertisement) {
      const given = linkLayerOf(payload, 24, linkLayer.target)
      const mac = given ?? from
      if (this.contested !== undefined && equalBytes(target, this.contested.address)) this.contested.by(mac.slice())
      // Only addresses that were asked for are learned, so that no host can fill the cache; a known neighbour may have another MAC
      // address from now on, as routers do at a failover (RFC 4861, 7.2.5).
      const text = formatIp6(target)
      const flags = payload[4] ?? 0
      if (this.#solicited.has(text)) this.neighbours.learn(text, mac)
      else if ((flags & overrideFlag) !== 0 && given !== undefined) this.neighbours.update(text, given)
      const { router } = this
      if ((flags & routerFlag) === 0 && router !== undefined && equalBytes(target, router)) this.forgetRouter()
    } else if (type === discovery.solicitation && this.#isOwn(target)) {
      const isProbe = equalBytes(source, unspecified)
      if (isProbe) return this.#advertise(target, allNodes, multicastMac(allNodes), false)
      this.neighbours.learn(formatIp6(source), linkLayerOf(payload, 24, linkLayer.source) ?? from)
      this.#advertise(target, source, from, true)
    }
  }

  #receiveRouter(message: Uint8Array, source: Ip6, from: Mac): void {
    if (message.length < 16 || !isLinkLocal(source)) return
    const { address, mtu } = this.#advertisements.receive(message, source)
    if (mtu !== undefined) this.mtu = mtu
    const { router } = this
    if (router !== undefined && equalBytes(router, source))
      this.neighbours.learn(formatIp6(source), linkLayerOf(message, 16, linkLayer.source) ?? from)
    if (address !== undefined) this.#advertised?.(address)
  }
}

/** The MAC address in an option of a message. */
const linkLayerOf = (message: Uint8Array, from: number, type: number): Mac | undefined =>
  optionsOf(message, from, type)[0]?.subarray(2, 8)

/** Whether a packet is a message of neighbour discovery, which is never fragmented (RFC 6980). */
function isDiscovery({ protocol: number, payload }: Packet6): boolean {
  const type = payload[0] ?? 0
  return number === protocol.icmp6 && type >= discovery.routerSolicitation && type <= discovery.redirect
}
