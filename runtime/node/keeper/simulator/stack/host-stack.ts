import { pause, type StartTimer, startTimer } from '../../../../../src/lib/async/pause.ts'
import type { Mac } from './address.ts'
import { checksum, read16, write16 } from './bytes.ts'
import { protocol } from './ip4.ts'
import { Neighbours } from './neighbours.ts'
import { echoPort, type Listener, type SendOptions, type SendResult } from './net-event.ts'
import { answerTcp, buildTcp, buildUdp, type PseudoHeader, parseTcp, parseUdp, type Segment } from './transport.ts'

/** A received packet. An answer goes by the routes of the pc, not back to the MAC address of the sender (RFC 1122, 3.3.1). */
export interface Packet<Address> {
  readonly from: Mac
  readonly source: Address
  readonly destination: Address
  readonly protocol: number
  /** TTL or hop limit. */
  readonly ttl: number
  readonly payload: Uint8Array
  /** The received header and payload, for an ICMP error. */
  readonly whole: Uint8Array
}

/** Numbers in which ICMP (RFC 792) and ICMPv6 (RFC 4443) differ. */
interface Icmp {
  readonly protocol: number
  readonly echo: number
  readonly echoReply: number
  readonly unreachable: number
  readonly portUnreachable: number
  readonly exceeded: number
  /** Minimum length of an IP header. */
  readonly head: number
  /** Bytes of our packet that an error quotes. */
  readonly quoteBytes: number
}

/** Sends to one address. */
export interface Remote {
  udp(sourcePort: number, destinationPort: number, data: Uint8Array, options?: SendOptions): Promise<SendResult>
  tcp(segment: Segment, options?: SendOptions): Promise<SendResult>
  echo(id: number, sequence: number, data: Uint8Array, options?: SendOptions): Promise<SendResult>
}

/** The common part of IPv4 and IPv6 of a host that only answers: ICMP, and the echo port of UDP and TCP (RFC 862). */
export abstract class HostStack<Address> {
  mtu = 1500
  /** Whether a command of this pc has the port open. */
  isListening: (port: number) => boolean = () => false
  readonly neighbours: Neighbours
  protected readonly mac: Mac
  protected readonly sendFrame: (frame: Uint8Array) => void
  protected readonly startTimer: StartTimer
  /** The address whose use by another host is being checked. */
  protected contested: { readonly address: Address; readonly by: (mac: Mac) => void } | undefined
  readonly #emit: Listener

  protected abstract readonly icmp: Icmp
  /** Probes for a duplicate address, and the time after each, ms. */
  protected abstract readonly probes: readonly [count: number, waitMs: number]

  constructor(mac: Mac, sendFrame: (frame: Uint8Array) => void, emit: Listener, timer: StartTimer = startTimer) {
    this.mac = mac
    this.sendFrame = sendFrame
    this.#emit = emit
    this.startTimer = timer
    this.neighbours = new Neighbours((text) => this.askNeighbour(text), timer)
  }

  /** Sends by the routing table; `source`: one of the own addresses, where it must be that one. */
  abstract send(
    to: Address,
    number: number,
    payload: Uint8Array,
    options?: SendOptions,
    source?: Address,
  ): Promise<SendResult>
  abstract pseudo(source: Address, destination: Address): PseudoHeader
  protected abstract sourceFor(destination: Address): Address
  protected abstract format(address: Address): string
  protected abstract askNeighbour(text: string): void
  /** Asks who uses an address, without a source address. */
  protected abstract probe(address: Address): void
  /** Initial sum of an ICMP checksum. */
  protected abstract icmpSum(source: Address, destination: Address, length: number): number
  /** The protocol of a packet, and where its header begins. */
  protected abstract upperLayerOf(packet: Uint8Array): { readonly protocol: number; readonly at: number }
  /** Whether an address is that of one host: others get no answer (RFC 1122, 3.2.1.3). */
  protected abstract isHost(address: Address): boolean
  /** Handles an ICMP message of another type. */
  protected receiveOther(_type: number, _packet: Packet<Address>): void {}

  udp(to: Address, ...[sourcePort, destinationPort, data, options]: Parameters<Remote['udp']>): Promise<SendResult> {
    const datagram = buildUdp({ sourcePort, destinationPort, data }, this.pseudo(this.sourceFor(to), to))
    return this.send(to, protocol.udp, datagram, options)
  }

  to(address: Address): Remote {
    const source = this.sourceFor(address)
    return {
      udp: (...datagram) => this.udp(address, ...datagram),
      tcp: (segment, options) =>
        this.send(address, protocol.tcp, buildTcp(segment, this.pseudo(source, address)), options),
      echo: (id, sequence, data, options) => {
        const message = new Uint8Array(8 + data.length)
        message[0] = this.icmp.echo
        write16(message, 4, id)
        write16(message, 6, sequence)
        message.set(data, 8)
        return this.send(address, this.icmp.protocol, this.sealed(message, source, address), options)
      },
    }
  }

  /** The MAC address of another host with this address (RFC 5227, RFC 4862); undefined without an answer. */
  async duplicate(address: Address, signal: AbortSignal): Promise<Mac | undefined> {
    let holder: Mac | undefined
    let wake = () => {}
    const by = (mac: Mac) => {
      holder = mac
      wake()
    }
    this.contested = { address, by }
    const [count, waitMs] = this.probes
    for (let sent = 0; sent < count && holder === undefined && !signal.aborted; sent++) {
      const started = (end: () => void) => {
        wake = end
      }
      const answer = pause(waitMs, signal, started, this.startTimer)
      this.probe(address)
      await answer
    }
    this.contested = undefined
    return holder
  }

  close(): void {
    this.neighbours.close()
  }

  /** `isGroup`: the packet was sent to a broadcast or multicast address, which gets no errors and no echo. */
  protected receivePacket(packet: Packet<Address>, isGroup: boolean): void {
    if (packet.protocol === this.icmp.protocol) this.#receiveIcmp(packet, isGroup)
    else if (packet.protocol === protocol.udp) this.#receiveUdp(packet, isGroup)
    else if (packet.protocol === protocol.tcp && !isGroup) this.#receiveTcp(packet)
  }

  /** Fills in the checksum of an ICMP message. */
  protected sealed(message: Uint8Array, source: Address, destination: Address): Uint8Array {
    write16(message, 2, 0)
    write16(message, 2, checksum(message, 0, message.length, this.icmpSum(source, destination, message.length)))
    return message
  }

  protected unreachable(packet: Packet<Address>, code: number): void {
    const { whole, source, destination } = packet
    const quote = whole.subarray(0, this.icmp.quoteBytes)
    const message = new Uint8Array(8 + quote.length)
    message.set([this.icmp.unreachable, code])
    message.set(quote, 8)
    this.#answer(packet, this.icmp.protocol, this.sealed(message, destination, source))
  }

  #answer({ source, destination }: Packet<Address>, number: number, payload: Uint8Array): void {
    if (this.isHost(source)) void this.send(source, number, payload, {}, destination)
  }

  #receiveIcmp(packet: Packet<Address>, isGroup: boolean): void {
    const { payload, source, destination, ttl } = packet
    const { icmp } = this
    const { length } = payload
    if (length < 8 || checksum(payload, 0, length, this.icmpSum(source, destination, length)) !== 0) return
    const [type = 0, code = 0] = payload
    if (type === icmp.echo && !isGroup) {
      const answer = payload.slice()
      answer[0] = icmp.echoReply
      this.#answer(packet, icmp.protocol, this.sealed(answer, destination, source))
    } else if (type === icmp.echoReply) {
      const [id, sequence] = [read16(payload, 4), read16(payload, 6)]
      this.#emit({ type: 'echo', from: this.format(source), id, sequence, ttl, bytes: length + icmp.head })
    } else if (type === icmp.unreachable || type === icmp.exceeded) {
      const quote = payload.subarray(8)
      const upper = this.upperLayerOf(quote)
      if (upper.at < icmp.head || quote.length < upper.at + 8) return
      // The ports, or identifier and sequence number of an echo request.
      const at = upper.protocol === icmp.protocol ? upper.at + 4 : upper.at
      const [id, sequence] = [read16(quote, at), read16(quote, at + 2)]
      this.#emit({ type: 'error', from: this.format(source), icmpType: type, code, ttl, id, sequence })
    } else this.receiveOther(type, packet)
  }

  #receiveUdp(packet: Packet<Address>, isGroup: boolean): void {
    const { source, destination, payload, ttl } = packet
    const datagram = parseUdp(payload, this.pseudo(source, destination))
    if (datagram === undefined) return
    const { sourcePort, destinationPort, data } = datagram
    this.#emit({ type: 'udp', from: this.format(source), ttl, datagram })
    if (isGroup || this.isListening(destinationPort)) return
    if (destinationPort !== echoPort) return this.unreachable(packet, this.icmp.portUnreachable)
    // Two echo ports would answer each other forever.
    if (sourcePort === echoPort) return
    const answer = { sourcePort: destinationPort, destinationPort: sourcePort, data }
    this.#answer(packet, protocol.udp, buildUdp(answer, this.pseudo(destination, source)))
  }

  #receiveTcp(packet: Packet<Address>): void {
    const { source, destination, payload, ttl } = packet
    const segment = parseTcp(payload, this.pseudo(source, destination))
    if (segment === undefined) return
    this.#emit({ type: 'tcp', from: this.format(source), ttl, segment })
    const answer = this.isListening(segment.destinationPort) ? undefined : answerTcp(segment, echoPort)
    if (answer !== undefined) this.#answer(packet, protocol.tcp, buildTcp(answer, this.pseudo(destination, source)))
  }
}
