import type { Mac } from './address.ts'
import { checksum, read16, read32, write16, write32 } from './bytes.ts'
import { ethernetHead, etherType, newFrame } from './ethernet.ts'
import type { Packet } from './host-stack.ts'
import { Reassembly } from './reassembly.ts'

export const protocol = { icmp: 1, tcp: 6, udp: 17, icmp6: 58 } as const
const head = 20
const dontFragment = 0x4000
const moreFragments = 0x2000
const longest = 65_535 - head

export interface Send4 {
  readonly protocol: number
  readonly source: number
  readonly destination: number
  readonly payload: Uint8Array
  readonly ttl?: number
  readonly dontFragment?: boolean
}

/** Reads and writes IPv4 packets (RFC 791) in frames. */
export class Ip4 {
  readonly #mac: Mac
  readonly #send: (frame: Uint8Array) => void
  readonly #reassembly = new Reassembly()
  #id = Math.floor(Math.random() * 0x10000)

  constructor(mac: Mac, send: (frame: Uint8Array) => void) {
    this.#mac = mac
    this.#send = send
  }

  /** The packet in a frame; undefined when it is malformed, or a fragment of an incomplete packet. */
  parse(frame: Uint8Array): Packet<number> | undefined {
    const at = ethernetHead
    const first = frame[at] ?? 0
    const headLength = (first & 15) * 4
    const total = read16(frame, at + 2)
    if (first >> 4 !== 4 || headLength < head || total < headLength || frame.length < at + total) return undefined
    if (checksum(frame, at, at + headLength) !== 0) return undefined
    const flags = read16(frame, at + 6)
    const offset = (flags & 0x1fff) * 8
    const source = read32(frame, at + 12)
    const destination = read32(frame, at + 16)
    const number = frame[at + 9] ?? 0
    let payload = frame.subarray(at + headLength, at + total)
    if (offset > 0 || (flags & moreFragments) !== 0) {
      const key = `${source}-${destination}-${number}-${read16(frame, at + 4)}`
      const complete = this.#reassembly.add(key, offset, payload, (flags & moreFragments) === 0)
      if (complete === undefined) return undefined
      payload = complete
    }
    const [from, whole] = [frame.subarray(6, 12), frame.subarray(at, at + total)]
    return { from, protocol: number, source, destination, ttl: frame[at + 8] ?? 0, payload, whole }
  }

  /** Sends a packet to a next hop, fragmented if it exceeds the MTU; false when it must not be fragmented. */
  send(to: Mac, mtu: number, packet: Send4): boolean {
    const { payload } = packet
    if (payload.length > longest) return false
    const room = (mtu - head) & ~7
    const needsFragments = payload.length > mtu - head
    if (needsFragments && packet.dontFragment === true) return false
    this.#id = (this.#id + 1) & 0xffff
    if (!needsFragments) this.#one(to, packet, payload, packet.dontFragment === true ? dontFragment : 0)
    else {
      for (let at = 0; at < payload.length; at += room) {
        const isLast = at + room >= payload.length
        this.#one(to, packet, payload.subarray(at, at + room), (at >> 3) | (isLast ? 0 : moreFragments))
      }
    }
    return true
  }

  close(): void {
    this.#reassembly.clear()
  }

  #one(to: Mac, packet: Send4, payload: Uint8Array, flags: number): void {
    const frame = newFrame(to, this.#mac, etherType.ip4, head + payload.length)
    const at = ethernetHead
    frame[at] = 0x45
    write16(frame, at + 2, head + payload.length)
    write16(frame, at + 4, this.#id)
    write16(frame, at + 6, flags)
    frame[at + 8] = packet.ttl ?? 64
    frame[at + 9] = packet.protocol
    write32(frame, at + 12, packet.source)
    write32(frame, at + 16, packet.destination)
    write16(frame, at + 10, checksum(frame, at, at + head))
    frame.set(payload, at + head)
    this.#send(frame)
  }
}

/** The pseudo-header part of a TCP or UDP checksum. */
export function pseudoHeader4(source: number, destination: number, number: number, length: number): number {
  return (source >>> 16) + (source & 0xffff) + (destination >>> 16) + (destination & 0xffff) + number + length
}
