import { pause, type StartTimer, startTimer } from '../../../../src/async/pause.ts'
import { broadcastMac, equalBytes, formatIp4, type Mac, maskOf } from './address.ts'
import { checksum, read16, read32, write16, write32 } from './bytes.ts'
import { ethernetHead, etherType, newFrame } from './ethernet.ts'
import { Ip4, type Packet4, protocol, pseudoHeader4, type Send4 } from './ip4.ts'
import { Neighbours } from './neighbours.ts'
import { echoPort, type Listener, type SendOptions, type SendResult } from './net-event.ts'
import { answerTcp, buildTcp, buildUdp, parseTcp, parseUdp } from './transport.ts'

export interface Address4 {
  readonly address: number
  readonly prefix: number
  /** 0: none. */
  readonly gateway: number
}

const broadcast = 0xffffffff
const icmp = { echoReply: 0, unreachable: 3, echo: 8, exceeded: 11 } as const
const duplicateProbes = 3
const duplicateWaitMs = 100

/** IPv4 of a pc: ARP (RFC 826), ICMP (RFC 792), and the parts of UDP and TCP that a host needs which only answers. */
export class Stack4 {
  config: Address4 | undefined
  mtu = 1500
  /** Whether a command of this pc has the port open. */
  isListening: (port: number) => boolean = () => false
  readonly neighbours: Neighbours
  readonly #mac: Mac
  readonly #send: (frame: Uint8Array) => void
  readonly #told: Listener
  readonly #startTimer: StartTimer
  readonly #ip: Ip4
  #contested: { readonly address: number; readonly by: (mac: Mac) => void } | undefined

  constructor(mac: Mac, send: (frame: Uint8Array) => void, told: Listener, timer: StartTimer = startTimer) {
    this.#mac = mac
    this.#send = send
    this.#told = told
    this.#startTimer = timer
    this.#ip = new Ip4(mac, send)
    this.neighbours = new Neighbours(
      (address) => this.#arp(1, Number(address), broadcastMac, this.config?.address ?? 0),
      timer,
    )
  }

  receiveArp(frame: Uint8Array): void {
    const at = ethernetHead
    const isIp4OverEthernet = read32(frame, at) === 0x00010800 && read16(frame, at + 4) === 0x0604
    if (frame.length < at + 28 || !isIp4OverEthernet) return
    const operation = read16(frame, at + 6)
    const sender = frame.subarray(at + 8, at + 14)
    const source = read32(frame, at + 14)
    const target = read32(frame, at + 24)
    if (equalBytes(sender, this.#mac)) return
    if (this.#contested?.address === source) this.#contested.by(sender.slice())
    const own = this.config?.address
    if (own === undefined || target !== own) return
    if (source !== 0) this.neighbours.learn(String(source), sender)
    if (operation === 1) this.#arp(2, source, sender, own)
  }

  receive(frame: Uint8Array): void {
    const packet = this.#ip.parse(frame)
    if (packet === undefined) return
    const own = this.config?.address
    const isBroadcast =
      packet.destination === broadcast ||
      (this.config !== undefined && packet.destination === subnetBroadcast(this.config))
    if (!isBroadcast && packet.destination !== own) return
    const from = frame.subarray(6, 12)
    if (packet.protocol === protocol.icmp) this.#receiveIcmp(packet, from, isBroadcast)
    else if (packet.protocol === protocol.udp) this.#receiveUdp(packet, from, isBroadcast)
    else if (packet.protocol === protocol.tcp) this.#receiveTcp(packet, from, isBroadcast)
    else if (!isBroadcast) this.#unreachable(packet, from, 2)
  }

  /** Sends by the routing table. `source` 0 and broadcast are for DHCP. */
  async send(destination: number, number: number, payload: Uint8Array, options: SendOptions = {}): Promise<SendResult> {
    const { config } = this
    if (config === undefined) return 'no address'
    const isLocal = ((destination ^ config.address) & maskOf(config.prefix)) === 0
    const hop = isLocal ? destination : config.gateway
    if (hop === 0) return 'no gateway'
    const mac =
      destination === config.address
        ? this.#mac
        : (this.neighbours.get(String(hop)) ?? (await this.neighbours.resolve(String(hop))))
    if (mac === undefined) return 'not reachable'
    return this.#out(mac, { protocol: number, source: config.address, destination, payload, ...options })
  }

  /** Sends a broadcast, with any source address. */
  broadcast(source: number, number: number, payload: Uint8Array): void {
    this.#ip.send('broadcast', this.mtu, { protocol: number, source, destination: broadcast, payload })
  }

  udp(
    destination: number,
    sourcePort: number,
    destinationPort: number,
    data: Uint8Array,
    options?: SendOptions,
  ): Promise<SendResult> {
    const pseudo = this.pseudo(this.config?.address ?? 0, destination)
    return this.send(destination, protocol.udp, buildUdp({ sourcePort, destinationPort, data }, pseudo), options)
  }

  pseudo(source: number, destination: number) {
    return (number: number, length: number) => pseudoHeader4(source, destination, number, length)
  }

  /** The MAC address of another host with this address (RFC 5227); undefined without an answer. */
  async duplicate(address: number, signal: AbortSignal): Promise<Mac | undefined> {
    let found: Mac | undefined
    let wake = () => {}
    this.#contested = {
      address,
      by: (mac) => {
        found = mac
        wake()
      },
    }
    for (let probe = 0; probe < duplicateProbes && found === undefined && !signal.aborted; probe++) {
      this.#arp(1, address, broadcastMac, 0)
      await pause(
        duplicateWaitMs,
        signal,
        (over) => {
          wake = over
        },
        this.#startTimer,
      )
    }
    this.#contested = undefined
    return found
  }

  /** Announces the address to the neighbours (RFC 5227, 2.3). */
  announce(): void {
    if (this.config !== undefined) this.#arp(1, this.config.address, broadcastMac, this.config.address)
  }

  close(): void {
    this.neighbours.close()
    this.#ip.close()
  }

  #arp(operation: 1 | 2, target: number, to: Mac, source: number): void {
    const frame = newFrame(to, this.#mac, etherType.arp, 28)
    const at = ethernetHead
    write32(frame, at, 0x00010800)
    write16(frame, at + 4, 0x0604)
    write16(frame, at + 6, operation)
    frame.set(this.#mac, at + 8)
    write32(frame, at + 14, source)
    if (operation === 2) frame.set(to, at + 18)
    write32(frame, at + 24, target)
    this.#send(frame)
  }

  #out(mac: Mac, packet: Send4): SendResult {
    return this.#ip.send(mac, this.mtu, packet) ? 'sent' : 'too big'
  }

  #receiveIcmp({ payload, source, destination, ttl }: Packet4, from: Mac, isBroadcast: boolean): void {
    if (payload.length < 8 || checksum(payload, 0, payload.length) !== 0) return
    const [type = 0, code = 0] = payload
    if (type === icmp.echo && !isBroadcast) {
      const reply = payload.slice()
      reply[0] = icmp.echoReply
      write16(reply, 2, 0)
      write16(reply, 2, checksum(reply, 0, reply.length))
      // The reply goes back to the sender's MAC address, without ARP.
      this.#out(from, { protocol: protocol.icmp, source: destination, destination: source, payload: reply })
    } else if (type === icmp.echoReply) {
      const [id, sequence] = [read16(payload, 4), read16(payload, 6)]
      this.#told({ type: 'echo', from: formatIp4(source), id, sequence, ttl, bytes: payload.length + 20 })
    } else if (type === icmp.unreachable || type === icmp.exceeded) {
      const about = quoted(payload.subarray(8))
      if (about !== undefined)
        this.#told({ type: 'error', from: formatIp4(source), icmpType: type, code, ttl, ...about })
    }
  }

  #receiveUdp(packet: Packet4, from: Mac, isBroadcast: boolean): void {
    const { source, destination, payload, ttl } = packet
    const datagram = parseUdp(payload, this.pseudo(source, destination))
    if (datagram === undefined) return
    const { sourcePort, destinationPort, data } = datagram
    this.#told({ type: 'udp', from: formatIp4(source), ttl, datagram })
    if (isBroadcast || this.isListening(destinationPort)) return
    if (destinationPort !== echoPort) return this.#unreachable(packet, from, 3)
    // Two echo ports would answer each other forever.
    if (sourcePort === echoPort) return
    const answer = buildUdp(
      { sourcePort: destinationPort, destinationPort: sourcePort, data },
      this.pseudo(destination, source),
    )
    this.#out(from, { protocol: protocol.udp, source: destination, destination: source, payload: answer })
  }

  #receiveTcp({ source, destination, payload, ttl }: Packet4, from: Mac, isBroadcast: boolean): void {
    if (isBroadcast) return
    const segment = parseTcp(payload, this.pseudo(source, destination))
    if (segment === undefined) return
    this.#told({ type: 'tcp', from: formatIp4(source), ttl, segment })
    if (this.isListening(segment.destinationPort)) return
    const answer = answerTcp(segment, echoPort)
    if (answer === undefined) return
    const bytes = buildTcp(answer, this.pseudo(destination, source))
    this.#out(from, { protocol: protocol.tcp, source: destination, destination: source, payload: bytes })
  }

  #unreachable({ whole, source, destination }: Packet4, from: Mac, code: number): void {
    const quote = whole.subarray(0, 28)
    const payload = new Uint8Array(8 + quote.length)
    payload[0] = icmp.unreachable
    payload[1] = code
    payload.set(quote, 8)
    write16(payload, 2, checksum(payload, 0, payload.length))
    this.#out(from, { protocol: protocol.icmp, source: destination, destination: source, payload })
  }
}

const subnetBroadcast = ({ address, prefix }: Address4): number =>
  prefix >= 31 ? -1 : (address | (~maskOf(prefix) >>> 0)) >>> 0

/** The part of our packet that an ICMP error quotes. */
function quoted(quote: Uint8Array): { id: number; sequence: number } | undefined {
  const at = ((quote[0] ?? 0) & 15) * 4
  if (at < 20 || quote.length < at + 8) return undefined
  const isEcho = quote[9] === protocol.icmp
  return isEcho
    ? { id: read16(quote, at + 4), sequence: read16(quote, at + 6) }
    : { id: read16(quote, at), sequence: read16(quote, at + 2) }
}
