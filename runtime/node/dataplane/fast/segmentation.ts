import { foldSum, sumWords } from './checksum.ts'
import { gso } from './vnet-header.ts'

const tcp = 6
const udp = 17
const udpHeaderBytes = 8
const flag = { fin: 0x01, psh: 0x08, cwr: 0x80 } as const
const vlanTypes: readonly number[] = [0x8100, 0x88a8, 0x9100]
const ipv6Extensions: readonly number[] = [0, 43, 60]

/**
 * Splits super-frames into TCP segments or UDP datagrams, as the device would (TSO, UDP_SEGMENT), or as they were before the device
 * joined them (GRO). Allocates nothing for a frame.
 */
export class Segmenter {
  readonly #bytes: Uint8Array
  readonly #view: DataView
  /** Offsets of the headers in the last super-frame. */
  #network = 0
  #transport = 0
  #protocol = 0
  #isSix = false
  /** Bytes of all headers of the last parsed super-frame, which each of its segments has. */
  headerBytes = 0
  /** Result of the last `split`: total bytes, and bytes of every frame but the last. */
  total = 0
  frameBytes = 0

  constructor(bytes: Uint8Array, view: DataView) {
    this.#bytes = bytes
    this.#view = view
  }

  /**
   * Whether this super-frame can be split. Tunnelled ones cannot: their outer headers would change too. `checksumStart` is the
   * offset at which the offloaded checksum begins; 0: none.
   */
  parse(offset: number, length: number, gsoType: number, checksumStart: number): boolean {
    const kind = gsoType & ~gso.ecn
    if (kind !== gso.tcp4 && kind !== gso.tcp6 && kind !== gso.udp) return false
    if (!this.#findTransport(offset, length)) return false
    if (this.#protocol !== (kind === gso.udp ? udp : tcp)) return false
    if (kind !== gso.udp && this.#isSix !== (kind === gso.tcp6)) return false
    if (checksumStart !== 0 && checksumStart !== this.#transport) return false
    const smallest = this.#transport + (this.#protocol === udp ? udpHeaderBytes : 20)
    if (smallest > length) return false
    this.headerBytes =
      this.#protocol === udp
        ? smallest
        : this.#transport + (this.#view.getUint8(offset + this.#transport + 12) >> 4) * 4
    return this.headerBytes >= smallest && this.headerBytes < length
  }

  /** Writes the split frames of the last parsed super-frame to `to`, without gaps. */
  split(offset: number, length: number, gsoType: number, gsoSize: number, to: number): void {
    const bytes = this.#bytes
    const headers = this.headerBytes
    const payloadBytes = length - headers
    let at = to
    for (let done = 0; done < payloadBytes; done += gsoSize) {
      const size = Math.min(gsoSize, payloadBytes - done)
      bytes.copyWithin(at, offset, offset + headers)
      bytes.copyWithin(at + headers, offset + headers + done, offset + headers + done + size)
      const isLast = done + size === payloadBytes
      if (this.#protocol === tcp) this.#fixTcp(at, done, isLast, (gsoType & gso.ecn) !== 0)
      else this.#view.setUint16(at + this.#transport + 4, udpHeaderBytes + size, false)
      this.#fixNetwork(at, headers + size, done / gsoSize)
      this.#fixChecksum(at, headers + size)
      at += headers + size
    }
    this.total = at - to
    this.frameBytes = headers + gsoSize
  }

  #findTransport(offset: number, length: number): boolean {
    const view = this.#view
    let at = 12
    while (at + 6 <= length && vlanTypes.includes(view.getUint16(offset + at, false))) at += 4
    at += 2
    this.#network = at
    if (at + 40 > length) return false
    const type = view.getUint16(offset + at - 2, false)
    this.#isSix = type === 0x86dd
    if (type === 0x0800) {
      this.#transport = at + (view.getUint8(offset + at) & 0xf) * 4
      this.#protocol = view.getUint8(offset + at + 9)
      return this.#transport >= at + 20
    }
    if (!this.#isSix) return false
    let next = view.getUint8(offset + at + 6)
    at += 40
    while (ipv6Extensions.includes(next) && at + 8 <= length) {
      next = view.getUint8(offset + at)
      at += (view.getUint8(offset + at + 1) + 1) * 8
    }
    this.#transport = at
    this.#protocol = next
    return true
  }

  #fixTcp(frame: number, done: number, isLast: boolean, isEcn: boolean): void {
    const view = this.#view
    const header = frame + this.#transport
    view.setUint32(header + 4, view.getUint32(header + 4, false) + done, false)
    let flags = view.getUint8(header + 13)
    if (!isLast) flags &= ~(flag.fin | flag.psh)
    // CWR is sent once (RFC 3168, 6.1.2). Without the ECN type the bit is part of a counter (AccECN) and stays.
    if (isEcn && done > 0) flags &= ~flag.cwr
    view.setUint8(header + 13, flags)
  }

  #fixNetwork(frame: number, length: number, index: number): void {
    const view = this.#view
    const header = frame + this.#network
    if (this.#isSix) {
      view.setUint16(header + 4, length - this.#network - 40, false)
      return
    }
    view.setUint16(header + 2, length - this.#network, false)
    view.setUint16(header + 4, view.getUint16(header + 4, false) + index, false)
    view.setUint16(header + 10, 0, false)
    view.setUint16(header + 10, foldSum(sumWords(view, header, this.#transport - this.#network)), false)
  }

  #fixChecksum(frame: number, length: number): void {
    const view = this.#view
    const header = frame + this.#transport
    const at = header + (this.#protocol === tcp ? 16 : 6)
    const size = length - this.#transport
    const network = frame + this.#network
    const addresses = this.#isSix ? sumWords(view, network + 8, 32) : sumWords(view, network + 12, 8)
    const pseudo = addresses + this.#protocol + size
    view.setUint16(at, 0, false)
    // 0 would mean no checksum (UDP); 0 and 0xffff are equal in ones' complement.
    view.setUint16(at, foldSum(pseudo + sumWords(view, header, size)) || 0xffff, false)
  }
}
