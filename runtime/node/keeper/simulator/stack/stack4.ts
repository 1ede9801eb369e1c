import { broadcastMac, equalBytes, formatIp4, type Mac, maskOf } from './address.ts'
import { read16, read32, write16, write32 } from './bytes.ts'
import { ethernetHead, etherType, newFrame } from './ethernet.ts'
import { HostStack, type Packet } from './host-stack.ts'
import { Ip4, protocol, pseudoHeader4 } from './ip4.ts'
import { dhcpClientPort, type SendOptions, type SendResult } from './net-event.ts'

export interface Address4 {
  readonly address: number
  readonly prefix: number
  /** 0: none. */
  readonly gateway: number
}

const broadcast = 0xffffffff
/** Hardware type Ethernet, protocol type IPv4, and their address lengths (RFC 826). */
const arpTypes = [0x00010800, 0x0604] as const
const protocolUnreachable = 2
const known: readonly number[] = [protocol.icmp, protocol.udp, protocol.tcp]

/** IPv4 of a pc, with ARP (RFC 826). */
export class Stack4 extends HostStack<number> {
  config: Address4 | undefined
  protected readonly icmp = {
    protocol: protocol.icmp,
    echo: 8,
    echoReply: 0,
    unreachable: 3,
    portUnreachable: 3,
    exceeded: 11,
    head: 20,
    quoteBytes: 28,
  }
  protected readonly probes = [3, 100] as const
  readonly #ip = new Ip4(this.mac, this.sendFrame)

  receiveArp(frame: Uint8Array): void {
    const at = ethernetHead
    const isIp4OverEthernet = read32(frame, at) === arpTypes[0] && read16(frame, at + 4) === arpTypes[1]
    if (frame.length < at + 28 || !isIp4OverEthernet) return
    const operation = read16(frame, at + 6)
    const sender = frame.subarray(at + 8, at + 14)
    const source = read32(frame, at + 14)
    const target = read32(frame, at + 24)
    if (equalBytes(sender, this.mac)) return
    if (this.contested?.address === source) this.contested.by(sender.slice())
    const own = this.config?.address
    // A known neighbour may announce another MAC address, as routers do at a failover (RFC 826, RFC 5944, 4.6).
    if (source !== own) this.neighbours.update(String(source), sender)
    if (own === undefined || target !== own) return
    if (source !== 0) this.neighbours.learn(String(source), sender)
    if (operation === 1) this.#arp(2, source, sender, own)
  }

  receive(frame: Uint8Array): void {
    const packet = this.#ip.parse(frame)
    if (packet === undefined) return
    const { config } = this
    const { destination } = packet
    const isBroadcast = destination === broadcast || (config !== undefined && destination === subnetBroadcast(config))
    if (!isBroadcast && destination !== config?.address) {
      if (this.#isDhcpReply(packet)) this.receivePacket(packet, true)
      return
    }
    if (known.includes(packet.protocol)) this.receivePacket(packet, isBroadcast)
    else if (!isBroadcast) this.unreachable(packet, protocolUnreachable)
  }

  async send(destination: number, number: number, payload: Uint8Array, options: SendOptions = {}): Promise<SendResult> {
    const { config } = this
    if (config === undefined) return 'no address'
    if (!isHost4(destination)) return 'not reachable'
    const isLocal = ((destination ^ config.address) & maskOf(config.prefix)) === 0
    const hop = isLocal ? destination : config.gateway
    if (hop === 0) return 'no gateway'
    const mac =
      destination === config.address
        ? this.mac
        : (this.neighbours.get(String(hop)) ?? (await this.neighbours.resolve(String(hop))))
    if (mac === undefined) return 'not reachable'
    const packet = { protocol: number, source: config.address, destination, payload, ...options }
    return this.#ip.send(mac, this.mtu, packet) ? 'sent' : 'too big'
  }

  /** Sends a broadcast, with any source address. */
  broadcast(source: number, number: number, payload: Uint8Array): void {
    this.#ip.send(broadcastMac, this.mtu, { protocol: number, source, destination: broadcast, payload })
  }

  pseudo(source: number, destination: number) {
    return (number: number, length: number) => pseudoHeader4(source, destination, number, length)
  }

  /** Announces the address to the neighbours (RFC 5227, 2.3). */
  announce(): void {
    if (this.config !== undefined) this.#arp(1, this.config.address, broadcastMac, this.config.address)
  }

  override close(): void {
    super.close()
    this.#ip.close()
  }

  protected sourceFor(): number {
    return this.config?.address ?? 0
  }

  protected format(address: number): string {
    return formatIp4(address)
  }

  protected isHost(address: number): boolean {
    return isHost4(address) && (this.config === undefined || address !== subnetBroadcast(this.config))
  }

  protected askNeighbour(text: string): void {
    this.#arp(1, Number(text), broadcastMac, this.sourceFor())
  }

  protected probe(address: number): void {
    this.#arp(1, address, broadcastMac, 0)
  }

  protected icmpSum(): number {
    return 0
  }

  protected upperLayerOf(packet: Uint8Array) {
    return { protocol: packet[9] ?? 0, at: ((packet[0] ?? 0) & 15) * 4 }
  }

  /** Without an address yet, a client takes replies to the offered one (RFC 2131, 4.1). */
  #isDhcpReply({ protocol: number, payload }: Packet<number>): boolean {
    return number === protocol.udp && read16(payload, 2) === dhcpClientPort && this.isListening(dhcpClientPort)
  }

  #arp(operation: 1 | 2, target: number, to: Mac, source: number): void {
    const frame = newFrame(to, this.mac, etherType.arp, 28)
    const at = ethernetHead
    write32(frame, at, arpTypes[0])
    write16(frame, at + 4, arpTypes[1])
    write16(frame, at + 6, operation)
    frame.set(this.mac, at + 8)
    write32(frame, at + 14, source)
    if (operation === 2) frame.set(to, at + 18)
    write32(frame, at + 24, target)
    this.sendFrame(frame)
  }
}

/** Whether an address is that of one host on a network (RFC 6890): not 0/8, 127/8, multicast or reserved. */
export function isHost4(address: number): boolean {
  const first = address >>> 24
  return first !== 0 && first !== 127 && first < 224
}

const subnetBroadcast = ({ address, prefix }: Address4): number =>
  prefix >= 31 ? -1 : (address | (~maskOf(prefix) >>> 0)) >>> 0
