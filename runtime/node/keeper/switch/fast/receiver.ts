import { type Libc, linux } from './libc.ts'
import { Memory } from './memory.ts'
import { vnetHeaderBytes } from './sockets.ts'

/** Frames a call. */
export const batch = 64
/** The largest datagram; joined ones (UDP_GRO) are that long. Frames begin after room for what is put before them. */
const bufferBytes = 65_536
const headroom = 64
const messageBytes = 64
const controlBytes = 64
const vlanTagBytes = 4
const addressBytes = 12

/** What the last `receive` took: frame `i` is at `offsets[i]` of `bytes`, `lengths[i]` long. */
export class Receiver {
  readonly #libc: Libc
  readonly #memory: Memory
  readonly #pieces: number
  readonly #controls: number
  readonly #buffers: number
  readonly bytes: Uint8Array
  /** Where `bytes` is in memory. */
  readonly address: number
  readonly offsets = new Int32Array(batch)
  readonly lengths = new Int32Array(batch)
  /** Size of the datagrams that were joined into one; 0 for a single one. */
  readonly segments = new Int32Array(batch)

  constructor(libc: Libc) {
    this.#libc = libc
    this.#pieces = batch * messageBytes
    this.#controls = this.#pieces + batch * 16
    this.#buffers = this.#controls + batch * controlBytes
    this.#memory = new Memory(libc, this.#buffers + batch * (headroom + bufferBytes))
    this.bytes = this.#memory.bytes
    this.address = this.#memory.address
    for (let index = 0; index < batch; index++) {
      const piece = this.#pieces + index * 16
      this.#memory.u64(piece, this.address + this.#bufferOf(index))
      this.#memory.u64(piece + 8, bufferBytes)
      this.#memory.u64(index * messageBytes + 16, this.address + piece)
      this.#memory.u64(index * messageBytes + 24, 1)
      this.#memory.u64(index * messageBytes + 32, this.address + this.#controls + index * controlBytes)
      this.#memory.u64(index * messageBytes + 40, controlBytes)
    }
  }

  /** Datagrams of a UDP socket; how many, or -1 with `errno`. */
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

  /** Frames of a packet socket: checksums that were left to the device are made, tags that it took away are put back. */
  ethernet(fd: number): number {
    const count = this.#libc.recvmmsg(fd, this.address, batch, linux.MSG_DONTWAIT, 0)
    for (let index = 0; index < count; index++) {
      const message = index * messageBytes
      const header = this.#bufferOf(index)
      this.offsets[index] = header + vnetHeaderBytes
      this.lengths[index] = Math.max(0, this.#memory.view.getUint32(message + 56, true) - vnetHeaderBytes)
      this.segments[index] = 0
      this.#completeChecksum(header, index)
      if (this.#memory.view.getUint32(message + 40, true) >= 36) this.#restoreTag(index)
      this.#memory.u32(message + 40, controlBytes)
    }
    return count
  }

  /** Frames of a TAP device, which gives one a call. */
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
  #completeChecksum(header: number, index: number): void {
    const { view } = this.#memory
    const needsChecksum = 1
    if ((view.getUint8(header) & needsChecksum) === 0) return
    const start = view.getUint16(header + 6, true)
    const place = start + view.getUint16(header + 8, true)
    const frame = this.offsets[index] as number
    const length = this.lengths[index] as number
    if (place + 2 > length) return
    // The field holds the sum of the pseudo-header already.
    let sum = 0
    for (let at = start; at + 1 < length; at += 2) sum += view.getUint16(frame + at, false)
    if ((length - start) % 2 === 1) sum += view.getUint8(frame + length - 1) << 8
    while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000)
    const checksum = ~sum & 0xffff
    view.setUint16(frame + place, checksum === 0 ? 0xffff : checksum, false)
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
