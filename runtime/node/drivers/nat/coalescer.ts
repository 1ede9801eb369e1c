import { foldSum, sumWords } from '../../dataplane/fast/checksum.ts'
import { Memory } from '../../dataplane/fast/memory.ts'
import type { Libc, Pointer } from '../../os/system/libc.ts'
import { ethernetBytes, etherType, protocol } from './gate.ts'

/** Headers of a segment that may be joined: without IP and TCP options, which libslirp does not negotiate. */
const [ipAt, tcpAt, payloadAt] = [ethernetBytes, ethernetBytes + 20, ethernetBytes + 40]
const acknowledges = 0x10
const pushes = 0x08
const maxBytes = 48_000

/** The memory of frames. */
type Frames = Pick<Memory, 'bytes' | 'view' | 'address'>

/**
 * Joins consecutive segments of a TCP connection by IPv4, as receive offload does: libslirp makes a system call and an acknowledgement for
 * each segment. Of consecutive acknowledgements without data only the last is passed, as it says what the others said. Other frames pass
 * unchanged; the order stays.
 */
export class Coalescer {
  readonly #libc: Libc
  readonly #input: Frames
  readonly #output: (frame: Pointer, length: number) => void
  readonly #joined: Memory
  /** Length of the joined frame, bytes; 0: none waits. */
  #length = 0
  /** The next sequence number of the joined frame; -1: it is complete. */
  #next = -1
  /** Checksum of its payload, unfolded. */
  #sum = 0
  #count = 0
  /** Offset of an acknowledgement without data that waits; -1: none. */
  #acknowledgement = -1

  /** Frames are given by their offset in `input`. */
  constructor(libc: Libc, input: Frames, output: (frame: Pointer, length: number) => void) {
    this.#libc = libc
    this.#input = input
    this.#output = output
    this.#joined = new Memory(libc, maxBytes + 2048)
  }

  /** Takes a frame, whose bytes must stay until `flush`. */
  add(offset: number, length: number): void {
    const { view, address } = this.#input
    const payloadBytes = isPlain(this.#input, offset, length) ? view.getUint16(offset + ipAt + 2, false) - 40 : -1
    if (payloadBytes === 0) return this.#addAcknowledgement(offset)
    if (payloadBytes < 0) {
      this.flush()
      return this.#output(address + offset, length)
    }
    const from = address + offset
    if (!this.#continues(offset, payloadBytes)) {
      this.flush()
      this.#libc.memcpy(this.#joined.address, from, payloadAt + payloadBytes)
      this.#length = payloadAt
      this.#sum = 0
    } else {
      this.#libc.memcpy(this.#joined.address + this.#length, from + payloadAt, payloadBytes)
      // Acknowledgement, flags and window are those of the last segment.
      this.#libc.memcpy(this.#joined.address + tcpAt + 8, from + tcpAt + 8, 8)
    }
    this.#length += payloadBytes
    this.#count += 1
    // The header checksum of the sender gives the checksum of the payload: all words sum to ones.
    this.#sum += foldSum(headerSum(view, offset, payloadBytes))
    const isOdd = payloadBytes % 2 === 1
    this.#next = isOdd ? -1 : (view.getUint32(offset + tcpAt + 4, false) + payloadBytes) >>> 0
  }

  #addAcknowledgement(offset: number): void {
    if (this.#acknowledgement < 0 || !saysMore(this.#input.view, offset, this.#acknowledgement)) this.flush()
    this.#acknowledgement = offset
  }

  /** Outputs the frame that waits. */
  flush(): void {
    if (this.#acknowledgement >= 0) {
      this.#output(this.#input.address + this.#acknowledgement, payloadAt)
      this.#acknowledgement = -1
    }
    const length = this.#length
    if (length === 0) return
    const { view, address } = this.#joined
    if (this.#count > 1) {
      const payloadBytes = length - payloadAt
      view.setUint16(ipAt + 2, 40 + payloadBytes, false)
      view.setUint16(ipAt + 10, 0, false)
      view.setUint16(ipAt + 10, foldSum(sumWords(view, ipAt, 20)), false)
      view.setUint16(tcpAt + 16, 0, false)
      view.setUint16(tcpAt + 16, foldSum(headerSum(view, 0, payloadBytes) + this.#sum), false)
    }
    this.#length = 0
    this.#count = 0
    this.#next = -1
    this.#output(address, length)
  }

  #continues(offset: number, payloadBytes: number): boolean {
    const { view } = this.#input
    if (this.#next < 0 || this.#length + payloadBytes > maxBytes) return false
    if (view.getUint32(offset + tcpAt + 4, false) !== this.#next) return false
    return isOfOneFlow(view, offset, this.#joined.view, 0)
  }
}

/** Whether two segments have the same addresses and ports. */
function isOfOneFlow(view: DataView, offset: number, other: DataView, otherOffset: number): boolean {
  for (let at = ipAt + 12; at < tcpAt + 4; at += 4) {
    if (view.getUint32(offset + at, false) !== other.getUint32(otherOffset + at, false)) return false
  }
  return true
}

/** Whether an acknowledgement without data replaces the one just before it. Its checksums must be right, so that no good one is lost. */
const saysMore = (view: DataView, offset: number, earlier: number): boolean =>
  isOfOneFlow(view, offset, view, earlier) &&
  view.getUint32(offset + tcpAt + 4, false) === view.getUint32(earlier + tcpAt + 4, false) &&
  // A repeated number must be passed: it reports a loss, or a new window.
  ((view.getUint32(offset + tcpAt + 8, false) - view.getUint32(earlier + tcpAt + 8, false)) | 0) > 0 &&
  foldSum(sumWords(view, offset + ipAt, 20)) === 0 &&
  foldSum(headerSum(view, offset, 0)) === 0

/** Whether a frame is a TCP segment by IPv4 without options, fragments and flags other than ACK and PSH. */
function isPlain({ bytes, view }: Frames, offset: number, length: number): boolean {
  return (
    length >= payloadAt &&
    view.getUint16(offset + 12, false) === etherType.ip4 &&
    bytes[offset + ipAt] === 0x45 &&
    bytes[offset + ipAt + 9] === protocol.tcp &&
    (view.getUint16(offset + ipAt + 6, false) & 0x3fff) === 0 &&
    (bytes[offset + tcpAt + 12] as number) >> 4 === 5 &&
    ((bytes[offset + tcpAt + 13] as number) & ~pushes) === acknowledges
  )
}

/** Of the TCP header and the pseudo-header (RFC 9293, 3.1). */
const headerSum = (view: DataView, offset: number, payloadBytes: number): number =>
  sumWords(view, offset + tcpAt, 20) + sumWords(view, offset + ipAt + 12, 8) + protocol.tcp + 20 + payloadBytes
