import { foldSum, sumWords } from '../../dataplane/fast/checksum.ts'
import { ethernetBytes, etherType, ip6Bytes, protocol } from './gate.ts'

/** The two ends of a packet; addresses in network order, both of one family. */
export interface PacketEnds {
  readonly fromMac: Uint8Array
  readonly toMac: Uint8Array
  readonly from: Uint8Array
  readonly to: Uint8Array
}

const ip4Bytes = 20
const udpBytes = 8
const hops = 64

/** Writes the frames that the nat itself sends to `bytes`; each method returns the length. */
export class FrameWriter {
  readonly #bytes: Uint8Array
  readonly #view: DataView

  constructor(bytes: Uint8Array, view: DataView) {
    this.#bytes = bytes
    this.#view = view
  }

  udp(ends: PacketEnds, fromPort: number, toPort: number, payload: Uint8Array): number {
    const start = startOf(ends)
    const length = udpBytes + payload.length
    this.#view.setUint16(start, fromPort, false)
    this.#view.setUint16(start + 2, toPort, false)
    this.#view.setUint16(start + 4, length, false)
    this.#bytes.set(payload, start + udpBytes)
    this.#headers(ends, protocol.udp, length)
    this.#checksum(start, 6, length, this.#pseudoSum(ends, protocol.udp, length))
    return start + length
  }

  /** "Communication administratively prohibited" (RFC 1812, RFC 4443), with the beginning of the packet, at most `most` bytes. */
  prohibited(ends: PacketEnds, packet: Uint8Array, most = 128): number {
    const isSix = ends.from.length === 16
    const start = startOf(ends)
    const part = packet.subarray(0, most)
    const length = 8 + part.length
    this.#bytes.fill(0, start, start + 8)
    this.#bytes[start] = isSix ? 1 : 3
    this.#bytes[start + 1] = isSix ? 1 : 13
    this.#bytes.set(part, start + 8)
    const kind = isSix ? protocol.icmp6 : protocol.icmp
    this.#headers(ends, kind, length)
    this.#checksum(start, 2, length, isSix ? this.#pseudoSum(ends, kind, length) : 0)
    return start + length
  }

  #headers({ fromMac, toMac, from, to }: PacketEnds, kind: number, length: number): void {
    const [bytes, view] = [this.#bytes, this.#view]
    const isSix = from.length === 16
    bytes.set(toMac, 0)
    bytes.set(fromMac, 6)
    view.setUint16(12, isSix ? etherType.ip6 : etherType.ip4, false)
    const ip = ethernetBytes
    if (isSix) {
      view.setUint32(ip, 0x60000000, false)
      view.setUint16(ip + 4, length, false)
      bytes[ip + 6] = kind
      bytes[ip + 7] = hops
      bytes.set(from, ip + 8)
      bytes.set(to, ip + 24)
      return
    }
    bytes.fill(0, ip, ip + ip4Bytes)
    bytes[ip] = 0x45
    view.setUint16(ip + 2, ip4Bytes + length, false)
    bytes[ip + 8] = hops
    bytes[ip + 9] = kind
    bytes.set(from, ip + 12)
    bytes.set(to, ip + 16)
    view.setUint16(ip + 10, foldSum(sumWords(view, ip, ip4Bytes)), false)
  }

  #pseudoSum({ from }: PacketEnds, kind: number, length: number): number {
    const addresses = ethernetBytes + (from.length === 16 ? 8 : 12)
    return sumWords(this.#view, addresses, 2 * from.length) + kind + length
  }

  #checksum(start: number, field: number, length: number, before: number): void {
    this.#view.setUint16(start + field, 0, false)
    // 0 would mean no checksum (UDP); both are 0 in ones' complement.
    this.#view.setUint16(start + field, foldSum(before + sumWords(this.#view, start, length)) || 0xffff, false)
  }
}

const startOf = ({ from }: PacketEnds): number => ethernetBytes + (from.length === 16 ? ip6Bytes : ip4Bytes)
