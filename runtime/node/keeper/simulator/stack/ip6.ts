import type { Mac } from './address.ts'
import { read16, read32, write16, write32 } from './bytes.ts'
import { ethernetHead, etherType, newFrame } from './ethernet.ts'
import type { Packet } from './host-stack.ts'
import { protocol } from './ip4.ts'
import { Reassembly } from './reassembly.ts'

export const head6 = 40
const fragmentHead = 8
/** A hop-by-hop header is the first (RFC 8200, 4.1). */
const extension = { hopByHop: 0, routing: 43, fragment: 44, destination: 60 } as const
/** Maximum number of extension headers; RFC 8200 has an order in which there are at most six. */
const maxExtensions = 8
const longest = 65_535

export interface Send6 {
  readonly protocol: number
  readonly source: Uint8Array
  readonly destination: Uint8Array
  readonly payload: Uint8Array
  readonly ttl?: number | undefined
  readonly dontFragment?: boolean | undefined
}

/** A packet whose extension headers are read. */
export interface Packet6 extends Packet<Uint8Array> {
  readonly isFragmented: boolean
}

/** Reads and writes IPv6 packets (RFC 8200) in frames. */
export class Ip6Packets {
  readonly #mac: Mac
  readonly #send: (frame: Uint8Array) => void
  readonly #reassembly = new Reassembly()
  #id = Math.floor(Math.random() * 0xffffffff)

  constructor(mac: Mac, send: (frame: Uint8Array) => void) {
    this.#mac = mac
    this.#send = send
  }

  /** The packet in a frame; undefined when it is malformed, not to be processed, or a fragment of an incomplete packet. */
  parse(frame: Uint8Array): Packet6 | undefined {
    const at = ethernetHead
    const length = read16(frame, at + 4)
    if ((frame[at] ?? 0) >> 4 !== 6 || frame.length < at + head6 + length) return undefined
    const [from, source, destination] = [
      frame.subarray(6, 12),
      frame.subarray(at + 8, at + 24),
      frame.subarray(at + 24),
    ]
    const [ttl, whole] = [frame[at + 7] ?? 0, frame.subarray(at, at + head6 + length)]
    const found = this.#upperLayer(whole)
    return found && { ...found, from, source, destination: destination.subarray(0, 16), ttl, whole }
  }

  /** Sends a packet to a next hop, fragmented if it exceeds the MTU (RFC 8200, 4.5); false when it must not be. */
  send(to: Mac, mtu: number, packet: Send6): boolean {
    const { payload } = packet
    if (payload.length + head6 <= mtu) {
      this.#one(to, packet, packet.protocol, payload)
      return true
    }
    if (packet.dontFragment === true || payload.length > longest) return false
    const room = (mtu - head6 - fragmentHead) & ~7
    this.#id = (this.#id + 1) >>> 0
    for (let at = 0; at < payload.length; at += room) {
      const part = payload.subarray(at, at + room)
      const fragment = new Uint8Array(fragmentHead + part.length)
      fragment[0] = packet.protocol
      write16(fragment, 2, at | (at + room < payload.length ? 1 : 0))
      write32(fragment, 4, this.#id)
      fragment.set(part, fragmentHead)
      this.#one(to, packet, extension.fragment, fragment)
    }
    return true
  }

  close(): void {
    this.#reassembly.clear()
  }

  /** Passes over the extension headers, and puts fragments together. */
  #upperLayer(whole: Uint8Array): Pick<Packet6, 'protocol' | 'payload' | 'isFragmented'> | undefined {
    let next = whole[6] ?? 0
    let payload = whole.subarray(head6)
    let isFragmented = false
    for (let count = 0; isExtension(next); count++) {
      if (count === maxExtensions || payload.length < 8) return undefined
      if (next === extension.hopByHop && count > 0) return undefined
      const following = payload[0] ?? 0
      if (next === extension.fragment) {
        const field = read16(payload, 2)
        const [offset, isLast] = [field & 0xfff8, (field & 1) === 0]
        const part = payload.subarray(fragmentHead)
        isFragmented = true
        // A fragment that is the whole packet is taken alone (RFC 6946).
        const key = `${whole.subarray(8, 40).join()}-${following}-${read32(payload, 4)}`
        const complete = offset === 0 && isLast ? part : this.#reassembly.add(key, offset, part, isLast)
        if (complete === undefined) return undefined
        payload = complete
      } else {
        const length = ((payload[1] ?? 0) + 1) * 8
        if (payload.length < length || !mayPass(next, payload.subarray(0, length))) return undefined
        payload = payload.subarray(length)
      }
      next = following
    }
    return { protocol: next, payload, isFragmented }
  }

  #one(to: Mac, { source, destination, ttl }: Send6, next: number, payload: Uint8Array): void {
    const frame = newFrame(to, this.#mac, etherType.ip6, head6 + payload.length)
    const at = ethernetHead
    frame[at] = 0x60
    write16(frame, at + 4, payload.length)
    frame[at + 6] = next
    frame[at + 7] = ttl ?? 64
    frame.set(source, at + 8)
    frame.set(destination, at + 24)
    frame.set(payload, at + head6)
    this.#send(frame)
  }
}

const isExtension = (number: number): boolean => Object.values<number>(extension).includes(number)

/** The protocol that an ICMPv6 error quotes, and where its header begins. */
export function quoted6(packet: Uint8Array): { readonly protocol: number; readonly at: number } {
  const next = packet[6] ?? protocol.icmp6
  return next === extension.fragment
    ? { protocol: packet[head6] ?? 0, at: head6 + fragmentHead }
    : { protocol: next, at: head6 }
}

/** Whether a host goes on after a header: not along a route (RFC 5095), and not past an option that it has to know (RFC 8200, 4.2). */
function mayPass(type: number, header: Uint8Array): boolean {
  if (type === extension.routing) return header[3] === 0
  for (let at = 2; at < header.length; ) {
    const option = header[at] ?? 0
    if (option >> 6 !== 0) return false
    // Pad1 is one byte, without a length.
    at += option === 0 ? 1 : 2 + (header[at + 1] ?? 0)
  }
  return true
}
