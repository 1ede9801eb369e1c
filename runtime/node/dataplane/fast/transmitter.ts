import { type Libc, linux, messageBytes, type Pointer, pieceBytes } from '../../os/system/libc.ts'
import type { Backlog } from './backlog.ts'
import { Memory } from './memory.ts'
import { isNobodyThere, longestNetioFrame, netioHeaderBytes, netioNameBytes } from './netio-socket.ts'
import { vnetHeaderBytes } from './vnet-header.ts'

/** Number of messages and of pieces in a system call. */
const messages = 128
const pieces = 1024
/** Size of one control message: struct cmsghdr and a padded 16-bit segment size. */
const controlBytes = 32
const controlLength = 24
/** Limits of one joined send: segments (UDP_MAX_SEGMENTS of older kernels), and bytes. */
const maxSegments = 64
const maxBytes = 64_000
/** Number of retries on a full send buffer before a frame is dropped. */
const retries = 32

/** A destination of frames. */
export interface Output {
  fd: number
  readonly kind: 'udp' | 'ethernet' | 'tap' | 'netio' | 'bridge'
  /** Whether runs of equal-sized frames are joined; turned off after a send fails because of it. */
  gso: boolean
  /** Whether a struct virtio_net_hdr is before every frame. */
  readonly hasHeader: boolean
  /** Set for a port of an IOU instance. */
  readonly netio?: Netio | undefined
  /** Called when the peer refused, and when frames were lost. */
  refused(frames: number): void
  failed(frames: number): void
}

/** Parameters of datagrams to a port of an IOU instance. */
export interface Netio {
  /** The address of the instance. */
  readonly name: Pointer
  readonly header: Pointer
  /** The backlog of the instance. */
  readonly backlog: Backlog
}

/**
 * Collects frames for one output and sends them in few system calls. Only addresses are stored, frames are not copied. Runs of
 * equal-sized frames become one datagram that the kernel splits (UDP_SEGMENT).
 */
export class Transmitter {
  readonly #libc: Libc
  readonly #memory: Memory
  readonly #pieces: number
  readonly #controls: number
  /** An empty virtio_net_hdr. */
  readonly #emptyHeader: Pointer
  /** Two pieces: an empty header, and the frame for a TAP. */
  readonly #written: number
  /** Frames that a message without UDP_SEGMENT stands for. */
  readonly #counts = new Int32Array(messages)
  #output: Output | null = null
  #messageCount = 0
  #pieceCount = 0
  /** The last message: segment size, number of segments, bytes; whether more may join. */
  #segment = 0
  #joined = 0
  #total = 0
  #isOpen = false

  constructor(libc: Libc) {
    this.#libc = libc
    const memory = new Memory(libc, messages * (messageBytes + controlBytes) + pieces * pieceBytes + 64)
    this.#memory = memory
    this.#pieces = messages * messageBytes
    this.#controls = this.#pieces + pieces * pieceBytes
    this.#written = this.#controls + messages * controlBytes + 16
    this.#emptyHeader = memory.address + this.#written - 16
    memory.u64(this.#written, this.#emptyHeader)
    memory.u64(this.#written + 8, vnetHeaderBytes)
    for (let index = 0; index < messages; index++) {
      const control = this.#controls + index * controlBytes
      // struct cmsghdr { size_t len; int level, type; } and the data.
      memory.u64(control, 18)
      memory.u32(control + 8, linux.SOL_UDP)
      memory.u32(control + 12, linux.UDP_SEGMENT)
    }
  }

  /** Adds a frame. Frames of another output are sent first. */
  add(output: Output, frame: Pointer, length: number): void {
    if (output !== this.#output || this.#pieceCount > pieces - 2) this.#begin(output)
    if (output.kind === 'tap') {
      // `writev` takes 40 ns more than `write`.
      if (output.hasHeader) return this.#writeAfterHeader(output, frame, length)
      return this.#write(output, frame, length, 1)
    }
    if (this.#isOpen && length <= this.#segment && this.#joined < maxSegments && this.#total + length <= maxBytes) {
      this.#piece(frame, length)
      this.#join(1, length)
      if (length < this.#segment) this.#isOpen = false
      return
    }
    if (this.#messageCount === messages) this.#begin(output)
    const first = this.#pieceCount
    if (output.netio !== undefined) {
      if (length > longestNetioFrame) return output.failed(1)
      this.#piece(output.netio.header, netioHeaderBytes)
    } else if (output.hasHeader) this.#piece(this.#emptyHeader, vnetHeaderBytes)
    this.#piece(frame, length)
    this.#message(first, this.#pieceCount - first, output.netio)
    this.#segment = length
    this.#joined = 1
    this.#total = length
    this.#isOpen = output.gso && length > 0
  }

  /**
   * Adds a frame as it was received after its header, perhaps a super-frame that stands for `count` frames. Only for outputs with a
   * header.
   */
  addWhole(output: Output, frame: Pointer, length: number, count: number): void {
    const start = frame - vnetHeaderBytes
    if (output.kind === 'tap') {
      if (output !== this.#output) this.#begin(output)
      return this.#write(output, start, vnetHeaderBytes + length, count)
    }
    if (output !== this.#output || this.#pieceCount > pieces - 2 || this.#messageCount === messages) this.#begin(output)
    this.#message(this.#pieceCount, 1, undefined, count)
    this.#piece(start, vnetHeaderBytes + length)
    this.#isOpen = false
  }

  /** Adds adjacent frames, each of `segment` bytes but the last. Only for outputs with `gso`. */
  addJoined(output: Output, frames: Pointer, length: number, segment: number): void {
    const most = Math.max(1, Math.min(maxSegments, Math.floor(maxBytes / segment))) * segment
    for (let done = 0; done < length; done += most)
      this.#addRun(output, frames + done, Math.min(most, length - done), segment)
  }

  #addRun(output: Output, frames: Pointer, length: number, segment: number): void {
    if (output !== this.#output || this.#pieceCount > pieces - 2 || this.#messageCount === messages) this.#begin(output)
    this.#message(this.#pieceCount, 1, undefined)
    this.#piece(frames, length)
    this.#segment = segment
    this.#joined = 0
    this.#total = 0
    this.#join(Math.ceil(length / segment), length)
    this.#isOpen = false
  }

  /** Sends the collected frames. */
  flush(): void {
    const output = this.#output
    const count = this.#messageCount
    this.#output = null
    this.#messageCount = 0
    this.#pieceCount = 0
    this.#isOpen = false
    if (output === null || count === 0) return
    if (output.netio !== undefined) return this.#deliver(output, output.netio, count)
    let sent = 0
    let tries = 0
    while (sent < count) {
      const address = this.#memory.address + sent * messageBytes
      const result = this.#libc.sendmmsg(output.fd, address, count - sent, linux.MSG_DONTWAIT)
      if (result > 0) {
        sent += result
        continue
      }
      const errno = this.#libc.errno()
      if (errno === linux.ECONNREFUSED) {
        // A pending ICMP error of an earlier frame; it is now cleared, and the message is sent again.
        output.refused(1)
        if (++tries <= 2) continue
      } else if ((errno === linux.EAGAIN || errno === linux.ENOBUFS || errno === linux.EINTR) && ++tries <= retries)
        continue
      else if (this.#isJoined(sent) && isNoSegmenting(errno)) {
        output.gso = false
        this.#sendApart(output, sent)
        sent += 1
        continue
      } else output.failed(this.#framesOf(sent))
      tries = 0
      sent += 1
    }
  }

  /** Sends to an IOU instance. Frames without room wait in the backlog; frames without a receiver are dropped. */
  #deliver(output: Output, { backlog, header }: Netio, count: number): void {
    let sent = 0
    while (sent < count && backlog.isEmpty) {
      const address = this.#memory.address + sent * messageBytes
      const result = this.#libc.sendmmsg(output.fd, address, count - sent, linux.MSG_DONTWAIT)
      if (result > 0) {
        sent += result
        // The next send reports the error.
        break
      }
      const errno = this.#libc.errno()
      if (isNobodyThere(errno)) return output.refused(count - sent)
      if (errno === linux.EAGAIN || errno === linux.ENOBUFS) break
      if (errno === linux.EINTR) continue
      output.failed(1)
      sent += 1
    }
    for (; sent < count; sent++) {
      // Every message has two pieces, header and frame.
      const piece = this.#pieces + (2 * sent + 1) * pieceBytes
      backlog.put(output, header, this.#memory.pointer(piece), this.#memory.view.getUint32(piece + 8, true))
    }
  }

  #begin(output: Output): void {
    this.flush()
    this.#output = output
  }

  #piece(address: Pointer, length: number): void {
    const at = this.#pieces + this.#pieceCount * pieceBytes
    this.#memory.u64(at, address)
    this.#memory.u32(at + 8, length)
    this.#pieceCount += 1
  }

  /** struct mmsghdr: name 0, namelen 8, iov 16, iovlen 24, control 32, controllen 40, flags 48, len 56. */
  #message(firstPiece: number, count: number, netio: Netio | undefined, frames = 1): void {
    const memory = this.#memory
    const at = this.#messageCount * messageBytes
    memory.u64(at, netio === undefined ? 0 : netio.name)
    memory.u32(at + 8, netio === undefined ? 0 : netioNameBytes)
    memory.u64(at + 16, memory.address + this.#pieces + firstPiece * pieceBytes)
    memory.u32(at + 24, count)
    memory.u32(at + 40, 0)
    this.#counts[this.#messageCount] = frames
    this.#messageCount += 1
  }

  /** Adds segments to the last message. */
  #join(count: number, bytes: number): void {
    const memory = this.#memory
    const last = this.#messageCount - 1
    const at = last * messageBytes
    this.#joined += count
    this.#total += bytes
    if (count === 1) memory.u32(at + 24, this.#joined)
    if (this.#joined < 2 || memory.view.getUint32(at + 40, true) !== 0) return
    const control = this.#controls + last * controlBytes
    memory.u16(control + 16, this.#segment)
    memory.u64(at + 32, memory.address + control)
    memory.u32(at + 40, controlLength)
  }

  #isJoined(message: number): boolean {
    return this.#memory.view.getUint32(message * messageBytes + 40, true) !== 0
  }

  #framesOf(message: number): number {
    if (!this.#isJoined(message)) return this.#counts[message] as number
    const at = message * messageBytes
    const count = this.#memory.view.getUint32(at + 24, true)
    if (count > 1) return count
    const piece = this.#memory.pointer(at + 16) - this.#memory.address
    const segment = this.#memory.view.getUint16(this.#controls + message * controlBytes + 16, true)
    return Math.ceil(this.#memory.view.getUint32(piece + 8, true) / segment)
  }

  /** Sends the frames of a joined message one by one, if the route cannot split them. */
  #sendApart(output: Output, message: number): void {
    const { view, address } = this.#memory
    const at = message * messageBytes
    const segment = view.getUint16(this.#controls + message * controlBytes + 16, true)
    const first = this.#memory.pointer(at + 16) - address
    for (let index = 0; index < view.getUint32(at + 24, true); index++) {
      const piece = first + index * pieceBytes
      const length = view.getUint32(piece + 8, true)
      for (let offset = 0; offset < length; offset += segment) {
        const frame = this.#memory.pointer(piece) + offset
        const result = this.#libc.send(output.fd, frame, Math.min(segment, length - offset), linux.MSG_DONTWAIT)
        if (result < 0) output.failed(1)
      }
    }
  }

  /** A character device takes one frame in a system call. It begins with its header, or has none. */
  #write(output: Output, start: Pointer, length: number, count: number): void {
    for (let tries = 0; tries < retries; tries++) {
      if (this.#libc.write(output.fd, start, length) >= 0) return
      if (this.#libc.errno() !== linux.EAGAIN) break
    }
    output.failed(count)
  }

  #writeAfterHeader(output: Output, frame: Pointer, length: number): void {
    const memory = this.#memory
    memory.u64(this.#written + pieceBytes, frame)
    memory.u32(this.#written + pieceBytes + 8, length)
    for (let tries = 0; tries < retries; tries++) {
      if (this.#libc.writev(output.fd, memory.address + this.#written, 2) >= 0) return
      if (this.#libc.errno() !== linux.EAGAIN) break
    }
    output.failed(1)
  }
}

/** Errors of a route without UDP_SEGMENT or checksum offload, or with a smaller MTU. */
const isNoSegmenting = (errno: number): boolean =>
  errno === linux.EIO || errno === linux.EINVAL || errno === linux.EMSGSIZE
