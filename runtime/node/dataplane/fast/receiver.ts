import { type Libc, linux, messageBytes, pieceBytes } from '../../os/system/libc.ts'
import { completeChecksum } from './checksum.ts'
import { Memory } from './memory.ts'
import { netioHeaderBytes } from './netio-socket.ts'
import { Segmenter } from './segmentation.ts'
import { gso, needsChecksum, remaining, vnetHeaderBytes } from './vnet-header.ts'

/** Frames in a system call. */
export const batch = 64
/**
 * Size of a buffer: the largest datagram, also joined (UDP_GRO), or super-frame (an IP packet of 65,535 bytes), after room for
 * headers.
 */
const bufferBytes = 65_536 + 64
/** Room for super-frames of one call that are cut, bytes: enough if all are full and have segments of 1000 bytes. */
const splitBytes = 80_000 * batch
const headroom = 64
const controlBytes = 64
const vlanTagBytes = 4
const addressBytes = 12
/** Limits of a super-frame, far above what a sender makes of its own accord: segments, and bytes of all. */
const mostSegments = 2048
const longestCut = 512 << 10
/** Bytes of a TAP after which its frames are forwarded before more are read. */
const tapBytes = 128 << 10

/** Result of the last receive: frame `i` is at `offsets[i]` of `bytes`, `lengths[i]` long. */
export class Receiver {
  readonly #libc: Libc
  readonly #memory: Memory
  readonly #pieces: number
  readonly #controls: number
  readonly #buffers: number
  readonly #splits: number
  /** Messages without room for control messages. */
  readonly #plain: number
  readonly #segmenter: Segmenter
  readonly bytes: Uint8Array
  readonly view: DataView
  /** Address of `bytes`. */
  readonly address: number
  readonly offsets = new Int32Array(batch)
  readonly lengths = new Int32Array(batch)
  /** Size of each but the last of the adjacent frames at an index; 0 for a single frame. */
  readonly segments = new Int32Array(batch)
  /** Of frames of devices: what the header before each leaves to a device (`remaining`). */
  readonly remains = new Uint8Array(batch)
  /** What a super-frame stands for: segments, bytes of all of them, and of the longest one. Of another frame itself. */
  readonly counts = new Int32Array(batch)
  readonly totals = new Int32Array(batch)
  readonly longest = new Int32Array(batch)
  /** Number of frames that were truncated, or had no room when they were cut; their length is 0. */
  lost = 0
  /** Whether there may be more to receive at once. */
  isFull = false
  #splitTo = 0

  constructor(libc: Libc) {
    this.#libc = libc
    this.#pieces = batch * messageBytes
    this.#controls = this.#pieces + batch * pieceBytes
    this.#plain = this.#controls + batch * controlBytes
    this.#buffers = this.#plain + batch * messageBytes
    this.#splits = this.#buffers + batch * (headroom + bufferBytes)
    this.#memory = new Memory(libc, this.#splits + splitBytes)
    this.bytes = this.#memory.bytes
    this.view = this.#memory.view
    this.address = this.#memory.address
    this.#segmenter = new Segmenter(this.bytes, this.#memory.view)
    for (let index = 0; index < batch; index++) {
      const piece = this.#pieces + index * pieceBytes
      this.#memory.u64(piece, this.address + this.#bufferOf(index))
      this.#memory.u64(piece + 8, bufferBytes)
      this.#memory.u64(index * messageBytes + 16, this.address + piece)
      this.#memory.u64(index * messageBytes + 24, 1)
      this.#memory.u64(index * messageBytes + 32, this.address + this.#controls + index * controlBytes)
      this.#memory.u64(index * messageBytes + 40, controlBytes)
      this.#memory.u64(this.#plain + index * messageBytes + 16, this.address + piece)
      this.#memory.u64(this.#plain + index * messageBytes + 24, 1)
    }
  }

  /** Receives datagrams of a UDP socket; returns their number, or -1 with `errno`. */
  udp(fd: number, gro: boolean): number {
    const count = this.#libc.recvmmsg(fd, this.address, batch, linux.MSG_DONTWAIT, 0)
    const { view } = this.#memory
    for (let index = 0; index < count; index++) {
      const message = index * messageBytes
      const control = this.#controls + index * controlBytes
      this.offsets[index] = this.#bufferOf(index)
      this.lengths[index] = view.getUint32(message + 56, true)
      // struct cmsghdr { size_t len; int level, type; } and the segment size.
      const isJoined =
        gro && view.getUint32(message + 40, true) >= 20 && view.getUint32(control + 12, true) === linux.UDP_GRO
      this.segments[index] = isJoined ? view.getUint32(control + 16, true) : 0
      this.#memory.u32(message + 40, controlBytes)
    }
    this.isFull = count === batch
    return count
  }

  /**
   * Receives frames of an IOU instance from its UNIX socket, each after a header. Datagrams shorter than a header get a length of 0
   * or less.
   */
  netio(fd: number): number {
    // Without room for control messages, passed descriptors (SCM_RIGHTS) are discarded.
    const count = this.#libc.recvmmsg(fd, this.address + this.#plain, batch, linux.MSG_DONTWAIT, 0)
    for (let index = 0; index < count; index++) {
      this.offsets[index] = this.#bufferOf(index) + netioHeaderBytes
      this.lengths[index] = this.view.getUint32(this.#plain + index * messageBytes + 56, true) - netioHeaderBytes
      this.segments[index] = 0
    }
    this.isFull = count === batch
    return count
  }

  /**
   * Receives frames of a packet socket, and restores VLAN tags that the kernel stripped. What their senders left to a device is
   * still to be done: `finish`.
   */
  ethernet(fd: number): number {
    const count = this.#libc.recvmmsg(fd, this.address, batch, linux.MSG_DONTWAIT, 0)
    const { view } = this.#memory
    this.#begin(count)
    for (let index = 0; index < count; index++) {
      const message = index * messageBytes
      const header = this.#bufferOf(index)
      const isCut = (view.getUint32(message + 48, true) & linux.MSG_TRUNC) !== 0
      const length = view.getUint32(message + 56, true) - vnetHeaderBytes
      if (isCut || length < 0) this.#drop(index)
      else {
        const tagBytes = view.getUint32(message + 40, true) >= 36 ? this.#restoreTag(index, header, length) : 0
        this.#take(index, header - tagBytes + vnetHeaderBytes, length + tagBytes)
      }
      this.#memory.u32(message + 40, controlBytes)
    }
    return count
  }

  /** Receives frames of a TAP device, one in a system call; after a header: not more than the cache of the processor holds. */
  tap(fd: number, hasHeader: boolean): number {
    this.#begin(batch)
    let count = 0
    for (let bytes = 0; count < batch && bytes < tapBytes; count++) {
      const buffer = this.#bufferOf(count)
      const length = this.#libc.read(fd, this.address + buffer, bufferBytes)
      if (length <= 0) {
        this.isFull = false
        break
      }
      if (!hasHeader) {
        this.offsets[count] = buffer
        this.lengths[count] = length
        this.segments[count] = 0
        continue
      }
      // The kernel does not say how much of a frame did not fit.
      if (length < vnetHeaderBytes || length === bufferBytes) this.#drop(count)
      else this.#take(count, buffer + vnetHeaderBytes, length - vnetHeaderBytes)
      bytes += this.totals[count] as number
    }
    return count === 0 ? -1 : count
  }

  /**
   * Does what the sender of a frame with a header left to its device: completes its checksum, or cuts it into the segments of a
   * super-frame. Only the first call does anything. A super-frame stays as it was for outputs that take it, at its former offset.
   */
  finish(index: number): void {
    const what = this.remains[index]
    if (what === remaining.checksum) this.#completeChecksum(index)
    else if (what === remaining.segments) this.#cut(index)
  }

  /** Puts an empty header before a frame. */
  clearHeader(offset: number): void {
    this.view.setFloat64(offset - vnetHeaderBytes, 0)
    this.view.setUint16(offset - 2, 0)
  }

  #bufferOf(index: number): number {
    return this.#buffers + index * (headroom + bufferBytes) + headroom
  }

  #begin(count: number): void {
    this.isFull = count === batch
    this.#splitTo = this.#splits
    this.lost = 0
  }

  #drop(index: number): void {
    this.lengths[index] = 0
    this.segments[index] = 0
    this.#describe(index, remaining.noHeader, 0, 0, 0)
    this.lost += 1
  }

  /** Takes a frame with a header before it, and finds what this leaves to a device. */
  #take(index: number, offset: number, length: number): void {
    const { view } = this
    const header = offset - vnetHeaderBytes
    this.offsets[index] = offset
    this.lengths[index] = length
    this.segments[index] = 0
    const flags = view.getUint16(header, true)
    const isUnsummed = (flags & needsChecksum) !== 0
    const gsoType = flags >>> 8
    this.#describe(index, isUnsummed ? remaining.checksum : remaining.nothing, 1, length, length)
    if (gsoType === gso.none) return
    const gsoSize = view.getUint16(header + 4, true)
    if (gsoSize === 0) {
      view.setUint8(header + 1, gso.none)
      return
    }
    // A frame that cannot be cut is forwarded unchanged.
    if (!this.#segmenter.parse(offset, length, gsoType, isUnsummed ? view.getUint16(header + 6, true) : 0)) {
      this.remains[index] = remaining.nothing
      return
    }
    // hdr_len is only a hint and often wrong (linear part of the kernel's buffer).
    const { headerBytes } = this.#segmenter
    const count = Math.ceil((length - headerBytes) / gsoSize)
    const total = length + (count - 1) * headerBytes
    if (count > mostSegments || total > longestCut) return this.#drop(index)
    this.#describe(index, remaining.segments, count, total, Math.min(length, headerBytes + gsoSize))
    // A device that joined it (LRO) left the checksum of the first segment, with which no receiver would take the whole.
    if (!isUnsummed) this.#cut(index)
  }

  #describe(index: number, remains: number, count: number, total: number, longest: number): void {
    this.remains[index] = remains
    this.counts[index] = count
    this.totals[index] = total
    this.longest[index] = longest
  }

  #completeChecksum(index: number): void {
    const offset = this.offsets[index] as number
    const header = offset - vnetHeaderBytes
    const start = this.view.getUint16(header + 6, true)
    const field = start + this.view.getUint16(header + 8, true)
    completeChecksum(this, offset, this.lengths[index] as number, start, field)
    this.clearHeader(offset)
    this.remains[index] = remaining.nothing
  }

  #cut(index: number): void {
    const segmenter = this.#segmenter
    const offset = this.offsets[index] as number
    const length = this.lengths[index] as number
    const gsoType = this.view.getUint8(offset - vnetHeaderBytes + 1)
    const gsoSize = this.view.getUint16(offset - vnetHeaderBytes + 4, true)
    this.remains[index] = remaining.noHeader
    if ((this.totals[index] as number) > this.bytes.length - this.#splitTo) {
      this.lengths[index] = 0
      this.lost += this.counts[index] as number
      return
    }
    segmenter.parse(offset, length, gsoType, 0)
    segmenter.split(offset, length, gsoType, gsoSize, this.#splitTo)
    this.offsets[index] = this.#splitTo
    this.lengths[index] = segmenter.total
    this.segments[index] = segmenter.frameBytes
    this.#splitTo += segmenter.total
  }

  /**
   * Restores the VLAN tag of a frame after a header; returns how far both moved. struct tpacket_auxdata { u32 status, len, snaplen;
   * u16 mac, net, vlan_tci, vlan_tpid; } is after the cmsghdr.
   */
  #restoreTag(index: number, header: number, length: number): number {
    const { view, bytes } = this.#memory
    const aux = this.#controls + index * controlBytes + 16
    if (view.getUint32(aux - 4, true) !== linux.PACKET_AUXDATA || length < addressBytes) return 0
    const status = view.getUint32(aux, true)
    if ((status & linux.TP_STATUS_VLAN_VALID) === 0) return 0
    const tag = view.getUint16(aux + 16, true)
    const type = (status & linux.TP_STATUS_VLAN_TPID_VALID) === 0 ? 0x8100 : view.getUint16(aux + 18, true)
    const moved = header - vlanTagBytes
    bytes.copyWithin(moved, header, header + vnetHeaderBytes + addressBytes)
    const at = header + addressBytes + vnetHeaderBytes - vlanTagBytes
    view.setUint16(at, type, false)
    view.setUint16(at + 2, tag, false)
    if ((view.getUint8(moved) & needsChecksum) !== 0)
      view.setUint16(moved + 6, view.getUint16(moved + 6, true) + vlanTagBytes, true)
    return vlanTagBytes
  }
}
