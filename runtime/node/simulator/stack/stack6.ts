import { pause, type StartTimer, startTimer } from '../../../../src/async/pause.ts'
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
import { checksum, fold, read16, read32, sum16, write16, write32 } from './bytes.ts'
import { ethernetHead, etherType, newFrame } from './ethernet.ts'
import { protocol } from './ip4.ts'
import { Neighbours } from './neighbours.ts'
import { echoPort, type Listener, type SendOptions, type SendResult } from './net-event.ts'
import { answerTcp, buildTcp, buildUdp, parseTcp, parseUdp } from './transport.ts'

const head = 40
const icmp6 = {
  unreachable: 1,
  exceeded: 3,
  echo: 128,
  echoReply: 129,
  routerSolicitation: 133,
  routerAdvertisement: 134,
  solicitation: 135,
  advertisement: 136,
} as const
const duplicateWaitMs = 300

export interface Address6 {
  readonly address: Ip6
  readonly prefix: number
}

/** IPv6 of a pc: neighbour discovery (RFC 4861), stateless addresses (RFC 4862), ICMPv6 (RFC 4443), UDP and TCP echo. */
export class Stack6 {
  readonly linkLocal: Ip6
  global: Address6 | undefined
  router: Ip6 | undefined
  mtu = 1500
  isListening: (port: number) => boolean = () => false
  readonly neighbours: Neighbours
  readonly #mac: Mac
  readonly #send: (frame: Uint8Array) => void
  readonly #told: Listener
  readonly #startTimer: StartTimer
  /** Addresses of pending neighbour solicitations, by their text. */
  readonly #asked = new Map<string, Ip6>()
  #advertised: ((address: Address6) => void) | undefined
  #contested: { readonly address: Ip6; readonly by: (mac: Mac) => void } | undefined

  constructor(mac: Mac, send: (frame: Uint8Array) => void, told: Listener, timer: StartTimer = startTimer) {
    this.#mac = mac
    this.#send = send
    this.#told = told
    this.#startTimer = timer
    this.linkLocal = withInterfaceId(linkLocalPrefix, mac)
    this.neighbours = new Neighbours((text) => {
      const address = this.#asked.get(text)
      if (address !== undefined) this.#solicit(address, this.#sourceFor(address))
    }, timer)
  }

  receive(frame: Uint8Array): void {
    const at = ethernetHead
    const length = read16(frame, at + 4)
    if ((frame[at] ?? 0) >> 4 !== 6 || frame.length < at + head + length) return
    const source = frame.subarray(at + 8, at + 24)
    const destination = frame.subarray(at + 24, at + 40)
    if (!this.#isOurs(destination)) return
    const number = frame[at + 6] ?? 0
    const limit = frame[at + 7] ?? 0
    const payload = frame.subarray(at + head, at + head + length)
    const from = frame.subarray(6, 12)
    if (number === protocol.icmp6) this.#receiveIcmp(payload, source, destination, limit, from)
    else if (isMulticast6(destination)) return
    else if (number === protocol.udp) this.#receiveUdp(payload, source, destination, limit, from, frame.subarray(at))
    else if (number === protocol.tcp) this.#receiveTcp(payload, source, destination, limit, from)
  }

  async send(destination: Ip6, number: number, payload: Uint8Array, options: SendOptions = {}): Promise<SendResult> {
    if (payload.length + head > this.mtu) return 'too big'
    const source = this.#sourceFor(destination)
    const isOnLink =
      isLinkLocal(destination) ||
      (this.global !== undefined && samePrefix(destination, this.global.address, this.global.prefix))
    const hop = isOnLink ? destination : this.router
    if (hop === undefined) return this.global === undefined ? 'no address' : 'no gateway'
    const isSelf =
      equalBytes(destination, this.linkLocal) ||
      (this.global !== undefined && equalBytes(destination, this.global.address))
    const mac = isSelf ? this.#mac : await this.#resolve(hop)
    if (mac === undefined) return 'not reachable'
    this.#out(mac, source, destination, number, payload, options.ttl ?? 64)
    return 'sent'
  }

  /** Sends an echo request. The checksum covers the addresses and is therefore computed here. */
  echo(destination: Ip6, id: number, sequence: number, data: Uint8Array, options?: SendOptions): Promise<SendResult> {
    const message = new Uint8Array(8 + data.length)
    message[0] = icmp6.echo
    write16(message, 4, id)
    write16(message, 6, sequence)
    message.set(data, 8)
    const source = this.#sourceFor(destination)
    return this.send(destination, protocol.icmp6, sealed(message, source, destination), options)
  }

  udp(
    destination: Ip6,
    sourcePort: number,
    destinationPort: number,
    data: Uint8Array,
    options?: SendOptions,
  ): Promise<SendResult> {
    const pseudo = this.pseudo(this.#sourceFor(destination), destination)
    return this.send(destination, protocol.udp, buildUdp({ sourcePort, destinationPort, data }, pseudo), options)
  }

  pseudo(source: Ip6, destination: Ip6) {
    return (number: number, length: number) => pseudoHeader6(source, destination, number, length)
  }

  sourceFor(destination: Ip6): Ip6 {
    return this.#sourceFor(destination)
  }

  /** Sends a router solicitation. Returns the address that results from the first advertisement; undefined without one. */
  async solicitRouters(waitMs: number, signal: AbortSignal): Promise<Address6 | undefined> {
    const message = new Uint8Array(16)
    message[0] = icmp6.routerSolicitation
    message[8] = 1
    message[9] = 1
    message.set(this.#mac, 10)
    this.#out(
      multicastMac(allRouters),
      this.linkLocal,
      allRouters,
      protocol.icmp6,
      sealed(message, this.linkLocal, allRouters),
      255,
    )
    let found: Address6 | undefined
    const advertised = (over: () => void) => {
      this.#advertised = (address) => {
        found = address
        over()
      }
    }
    await pause(waitMs, signal, advertised, this.#startTimer)
    this.#advertised = undefined
    return found
  }

  /** The MAC address of another host with this address (RFC 4862, 5.4); undefined without an answer. */
  async duplicate(address: Ip6, signal: AbortSignal): Promise<Mac | undefined> {
    let found: Mac | undefined
    const contested = (over: () => void) => {
      this.#contested = {
        address,
        by: (mac) => {
          found = mac
          over()
        },
      }
    }
    const answer = pause(duplicateWaitMs, signal, contested, this.#startTimer)
    this.#solicit(address, new Uint8Array(16))
    await answer
    this.#contested = undefined
    return found
  }

  close(): void {
    this.neighbours.close()
  }

  #isOurs(destination: Ip6): boolean {
    if (equalBytes(destination, this.linkLocal) || equalBytes(destination, allNodes)) return true
    if (equalBytes(destination, solicitedNode(this.linkLocal))) return true
    const address = this.global?.address
    if (address !== undefined && (equalBytes(destination, address) || equalBytes(destination, solicitedNode(address))))
      return true
    return this.#contested !== undefined && equalBytes(destination, solicitedNode(this.#contested.address))
  }

  #sourceFor(destination: Ip6): Ip6 {
    return isLinkLocal(destination) || this.global === undefined ? this.linkLocal : this.global.address
  }

  #resolve(hop: Ip6): Promise<Mac | undefined> | Mac {
    const text = formatIp6(hop)
    const known = this.neighbours.get(text)
    if (known !== undefined) return known
    this.#asked.set(text, hop.slice())
    return this.neighbours.resolve(text).finally(() => this.#asked.delete(text))
  }

  #solicit(target: Ip6, source: Ip6): void {
    const isUnspecified = source.every((byte) => byte === 0)
    const message = new Uint8Array(isUnspecified ? 24 : 32)
    message[0] = icmp6.solicitation
    message.set(target, 8)
    if (!isUnspecified) {
      message[24] = 1
      message[25] = 1
      message.set(this.#mac, 26)
    }
    const to = solicitedNode(target)
    this.#out(multicastMac(to), source, to, protocol.icmp6, sealed(message, source, to), 255)
  }

  #advertise(target: Ip6, to: Ip6, mac: Mac, isSolicited: boolean): void {
    const message = new Uint8Array(32)
    message[0] = icmp6.advertisement
    write32(message, 4, isSolicited ? 0x60000000 : 0x20000000)
    message.set(target, 8)
    message[24] = 2
    message[25] = 1
    message.set(this.#mac, 26)
    this.#out(mac, target, to, protocol.icmp6, sealed(message, target, to), 255)
  }

  #receiveIcmp(message: Uint8Array, source: Ip6, destination: Ip6, limit: number, from: Mac): void {
    if (
      message.length < 8 ||
      checksum(message, 0, message.length, pseudoHeader6(source, destination, protocol.icmp6, message.length)) !== 0
    )
      return
    const [type = 0, code = 0] = message
    if (type === icmp6.echo && !isMulticast6(destination)) {
      const reply = message.slice()
      reply[0] = icmp6.echoReply
      this.#out(from, destination, source, protocol.icmp6, sealed(reply, destination, source), 64)
    } else if (type === icmp6.echoReply) {
      const [id, sequence] = [read16(message, 4), read16(message, 6)]
      this.#told({ type: 'echo', from: formatIp6(source), id, sequence, ttl: limit, bytes: message.length + head })
    } else if (type === icmp6.unreachable || type === icmp6.exceeded) {
      const quote = message.subarray(8)
      if (quote.length < head + 8) return
      const isEcho = quote[6] === protocol.icmp6
      const [id, sequence] = isEcho
        ? [read16(quote, head + 4), read16(quote, head + 6)]
        : [read16(quote, head), read16(quote, head + 2)]
      this.#told({ type: 'error', from: formatIp6(source), icmpType: type, code, ttl: limit, id, sequence })
    }
    // Discovery messages with a lower hop limit have crossed a router and are invalid (RFC 4861, 7.1).
    else if (limit === 255) this.#receiveDiscovery(type, message, source, from)
  }

  #receiveDiscovery(type: number, message: Uint8Array, source: Ip6, from: Mac): void {
    if (type === icmp6.routerAdvertisement) return this.#receiveRouter(message, source, from)
    if (message.length < 24) return
    const target = message.subarray(8, 24)
    if (type === icmp6.advertisement) {
      const mac = option(message, 24, 2)?.subarray(2, 8) ?? from
      if (this.#contested !== undefined && equalBytes(target, this.#contested.address)) this.#contested.by(mac.slice())
      // Only requested addresses are learned, so that no host can fill the cache or take over an address unasked.
      const text = formatIp6(target)
      if (this.#asked.has(text)) this.neighbours.learn(text, mac)
    } else if (type === icmp6.solicitation) {
      const isOurs =
        equalBytes(target, this.linkLocal) || (this.global !== undefined && equalBytes(target, this.global.address))
      if (!isOurs) return
      const isProbe = source.every((byte) => byte === 0)
      if (isProbe) return this.#advertise(target.slice(), allNodes, multicastMac(allNodes), false)
      this.neighbours.learn(formatIp6(source), option(message, 24, 1)?.subarray(2, 8) ?? from)
      this.#advertise(target.slice(), source.slice(), from.slice(), true)
    }
  }

  #receiveRouter(message: Uint8Array, source: Ip6, from: Mac): void {
    if (message.length < 16 || !isLinkLocal(source)) return
    const mtu = option(message, 16, 5)
    if (mtu !== undefined) this.mtu = Math.min(Math.max(read32(mtu, 4), 1280), 1500)
    if (read16(message, 6) > 0) {
      this.router = source.slice()
      this.neighbours.learn(formatIp6(source), option(message, 16, 1)?.subarray(2, 8) ?? from)
    }
    const prefix = option(message, 16, 3)
    // Flag A permits autoconfiguration (RFC 4861, 4.6.2), which needs 64 bits for the interface identifier.
    const isUsable = prefix !== undefined && prefix.length === 32 && prefix[2] === 64 && ((prefix[3] ?? 0) & 0x40) !== 0
    if (isUsable) this.#advertised?.({ address: withInterfaceId(prefix.subarray(16, 24), this.#mac), prefix: 64 })
  }

  #receiveUdp(payload: Uint8Array, source: Ip6, destination: Ip6, limit: number, from: Mac, whole: Uint8Array): void {
    // UDP over IPv6 requires a checksum (RFC 8200, 8.1).
    const datagram = read16(payload, 6) === 0 ? undefined : parseUdp(payload, this.pseudo(source, destination))
    if (datagram === undefined) return
    this.#told({ type: 'udp', from: formatIp6(source), ttl: limit, datagram })
    const { sourcePort, destinationPort, data } = datagram
    if (this.isListening(destinationPort)) return
    if (destinationPort === echoPort) {
      // Two echo ports would answer each other forever.
      if (sourcePort === echoPort) return
      const answer = buildUdp(
        { sourcePort: destinationPort, destinationPort: sourcePort, data },
        this.pseudo(destination, source),
      )
      this.#out(from, destination, source, protocol.udp, answer, 64)
      return
    }
    const quote = whole.subarray(0, Math.min(whole.length, 1280 - head - 8))
    const message = new Uint8Array(8 + quote.length)
    message[0] = icmp6.unreachable
    message[1] = 4
    message.set(quote, 8)
    this.#out(from, destination, source, protocol.icmp6, sealed(message, destination, source), 64)
  }

  #receiveTcp(payload: Uint8Array, source: Ip6, destination: Ip6, limit: number, from: Mac): void {
    const segment = parseTcp(payload, this.pseudo(source, destination))
    if (segment === undefined) return
    this.#told({ type: 'tcp', from: formatIp6(source), ttl: limit, segment })
    const answer = this.isListening(segment.destinationPort) ? undefined : answerTcp(segment, echoPort)
    if (answer !== undefined)
      this.#out(from, destination, source, protocol.tcp, buildTcp(answer, this.pseudo(destination, source)), 64)
  }

  #out(mac: Mac, source: Ip6, destination: Ip6, number: number, payload: Uint8Array, limit: number): void {
    const frame = newFrame(mac, this.#mac, etherType.ip6, head + payload.length)
    const at = ethernetHead
    frame[at] = 0x60
    write16(frame, at + 4, payload.length)
    frame[at + 6] = number
    frame[at + 7] = limit
    frame.set(source, at + 8)
    frame.set(destination, at + 24)
    frame.set(payload, at + head)
    this.#send(frame)
  }
}

function pseudoHeader6(source: Ip6, destination: Ip6, number: number, length: number): number {
  return sum16(source, 0, 16) + sum16(destination, 0, 16) + length + number
}

/** Fills in the checksum of an ICMPv6 message. */
function sealed(message: Uint8Array, source: Ip6, destination: Ip6): Uint8Array {
  write16(message, 2, 0)
  write16(
    message,
    2,
    fold(sum16(message, 0, message.length, pseudoHeader6(source, destination, protocol.icmp6, message.length))),
  )
  return message
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
