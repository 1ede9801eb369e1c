import { type Libc, linux, messageBytes, pieceBytes } from '../../os/system/libc.ts'
import { crc32c, foldSum, sumWords } from './checksum.ts'
import { Memory } from './memory.ts'
import { netioHeaderBytes } from './netio-socket.ts'
import { gso, Segmenter } from './segmentation.ts'
import { vnetHeaderBytes } from './sockets.ts'

/** Frames in a system call. */
export const batch = 64
/**
 * Size of a buffer: the largest datagram, also joined (UDP_GRO), or super-frame (an IP packet of 65,535 bytes), after room for
 * headers.
 */
const bufferBytes = 65_536 + 64
/** Room for split super-frames of one call, bytes: enough if all are full and have segments of 1000 bytes. */
const splitBytes = 80_000 * batch
const headroom = 64
const controlBytes = 64
const vlanTagBytes = 4
const addressBytes = 12
const sctpChecksumOffset = 8

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
  /** Number of truncated frames; their length is 0. */
  lost = 0

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
    return count
  }

  /** Receives frames of a packet socket. Computes offloaded checksums, splits super-frames, restores stripped VLAN tags. */
  ethernet(fd: number): number {
    const count = this.#libc.recvmmsg(fd, this.address, batch, linux.MSG_DONTWAIT, 0)
    const { view } = this.#memory
    let splitTo = this.#splits
    this.lost = 0
    for (let index = 0; index < count; index++) {
      const message = index * messageBytes
      const header = this.#bufferOf(index)
      const isCut = (view.getUint32(message + 48, true) & linux.MSG_TRUNC) !== 0
      this.offsets[index] = header + vnetHeaderBytes
      this.lengths[index] = isCut ? 0 : Math.max(0, view.getUint32(message + 56, true) - vnetHeaderBytes)
      this.segments[index] = 0
      if (isCut) this.lost += 1
      else splitTo = this.#finish(index, header, view.getUint32(message + 40, true) >= 36, splitTo)
      this.#memory.u32(message + 40, controlBytes)
    }
    return count
  }

  /** Receives frames of a TAP device, one in a system call. */
  tap(fd: number): number {
    let count = 0
    for (; count < batch; count++) {
      const length = this.#libc.read(fd, this.address + this.#bufferOf(count), bufferBytes)
      if (length <= 0) break
      this.offsets[count] = this.#bufferOf(count)
      this.lengths[count] = length
      this.segments[count] = 0
    }
    return count === 0 ? -1 : count
  }

  #bufferOf(index: number): number {
    return this.#buffers + index * (headroom + bufferBytes) + headroom
  }

  /** struct virtio_net_hdr { u8 flags, gso_type; u16 hdr_len, gso_size, csum_start, csum_offset; } */
  #finish(index: number, header: number, hasControl: boolean, splitTo: number): number {
    const { view } = this.#memory
    const needsChecksum = (view.getUint8(header) & 1) !== 0
    const gsoType = view.getUint8(header + 1)
    // hdr_len is only a hint and often wrong (linear part of the kernel's buffer); the headers have the length.
    const gsoSize = view.getUint16(header + 4, true)
    const start = needsChecksum ? view.getUint16(header + 6, true) : 0
    const field = start + view.getUint16(header + 8, true)
    const untagged = this.offsets[index] as number
    if (needsChecksum && (gsoType === gso.none || gsoSize === 0)) this.#completeChecksum(index, start, field)
    // This overwrites the virtio header.
    if (hasControl) this.#restoreTag(index)
    if (gsoType === gso.none || gsoSize === 0) return splitTo
    const offset = this.offsets[index] as number
    const length = this.lengths[index] as number
    const segmenter = this.#segmenter
    // A frame that cannot be split is forwarded unchanged.
    if (!segmenter.parse(offset, length, gsoType, start === 0 ? 0 : start + untagged - offset)) return splitTo
    if (segmenter.roomFor(length, gsoSize) > this.bytes.length - splitTo) {
      this.lengths[index] = 0
      this.lost += 1
      return splitTo
    }
    segmenter.split(offset, length, gsoType, gsoSize, splitTo)
    this.offsets[index] = splitTo
    this.lengths[index] = segmenter.total
    this.segments[index] = segmenter.frameBytes
    return splitTo + segmenter.total
  }

  #completeChecksum(index: number, start: number, field: number): void {
    const { view, bytes } = this.#memory
    const frame = this.offsets[index] as number
    const length = this.lengths[index] as number
    if (field + 2 > length) return
    if (field - start === sctpChecksumOffset && field + 4 <= length) {
      view.setUint32(frame + field, 0, true)
      view.setUint32(frame + field, crc32c(bytes, frame + start, length - start), true)
      return
    }
    // The field already has the pseudo-header sum. 0 would mean no checksum (UDP).
    view.setUint16(frame + field, foldSum(sumWords(view, frame + start, length - start)) || 0xffff, false)
  }

  /** struct tpacket_auxdata { u32 status, len, snaplen; u16 mac, net, vlan_tci, vlan_tpid; } after the cmsghdr. */
  #restoreTag(index: number): void {
    const { view, bytes } = this.#memory
    const aux = this.#controls + index * controlBytes + 16
    if (view.getUint32(aux - 4, true) !== linux.PACKET_AUXDATA) return
    const status = view.getUint32(aux, true)
    if ((status & linux.TP_STATUS_VLAN_VALID) === 0) return
    const tag = view.getUint16(aux + 16, true)
    const type = (status & linux.TP_STATUS_VLAN_TPID_VALID) === 0 ? 0x8100 : view.getUint16(aux + 18, true)
    const frame = this.offsets[index] as number
    const moved = frame - vlanTagBytes
    bytes.copyWithin(moved, frame, frame + addressBytes)
    view.setUint16(moved + addressBytes, type, false)
    view.setUint16(moved + addressBytes + 2, tag, false)
    this.offsets[index] = moved
    this.lengths[index] = (this.lengths[index] as number) + vlanTagBytes
  }
}
