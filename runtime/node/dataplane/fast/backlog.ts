import { type Libc, linux, messageBytes, type Pointer, pieceBytes } from '../../os/system/libc.ts'
import { Memory } from './memory.ts'
import { isNobodyThere, longestNetioFrame, netioHeaderBytes, netioNameBytes } from './netio-socket.ts'
import type { Output } from './transmitter.ts'

const slots = 256
const slotBytes = netioHeaderBytes + longestNetioFrame
const piecesAt = slots * messageBytes
const slotsAt = piecesAt + slots * pieceBytes

/**
 * Datagrams for which the socket of an IOU instance has no room. The kernel queues only net.unix.max_dgram_qlen of them (default
 * 10), less than a burst. They leave in order as soon as the instance reads.
 */
export class Backlog {
  readonly #libc: Libc
  readonly #fd: number
  readonly #name: Pointer
  /** Schedules `drain` for when there may be room. `isNew`: the last wait, if any, brought none. */
  readonly #awaitRoom: (isNew: boolean) => void
  readonly #outputs: (Output | null)[] = []
  #memory: Memory | undefined
  #first = 0
  #size = 0

  constructor(libc: Libc, fd: number, name: Pointer, awaitRoom: (isNew: boolean) => void) {
    this.#libc = libc
    this.#fd = fd
    this.#name = name
    this.#awaitRoom = awaitRoom
  }

  /** While it is not empty, all further datagrams must wait here too. */
  get isEmpty(): boolean {
    return this.#size === 0
  }

  /** Copies a datagram; drops it when the backlog is full. */
  put(output: Output, header: Pointer, frame: Pointer, length: number): void {
    if (this.#size === slots) return output.failed(1)
    const memory = this.#memory ?? this.#allocate()
    const slot = (this.#first + this.#size) % slots
    const address = memory.address + slotsAt + slot * slotBytes
    this.#libc.memcpy(address, header, netioHeaderBytes)
    this.#libc.memcpy(address + netioHeaderBytes, frame, length)
    memory.u32(piecesAt + slot * pieceBytes + 8, netioHeaderBytes + length)
    this.#outputs[slot] = output
    this.#size += 1
    if (this.#size === 1) this.#awaitRoom(true)
  }

  /** Sends as many datagrams as there is room for. */
  drain(): void {
    const memory = this.#memory
    let hasSent = false
    while (memory !== undefined && this.#size > 0) {
      const count = Math.min(this.#size, slots - this.#first)
      const messages = memory.address + this.#first * messageBytes
      const sent = this.#libc.sendmmsg(this.#fd, messages, count, linux.MSG_DONTWAIT)
      if (sent > 0) {
        this.#drop(sent)
        hasSent = true
        if (sent === count) continue
        return this.#awaitRoom(false)
      }
      const errno = this.#libc.errno()
      if (errno === linux.EAGAIN || errno === linux.ENOBUFS) return this.#awaitRoom(!hasSent)
      if (isNobodyThere(errno)) return this.refuse()
      if (errno === linux.EINTR) continue
      this.#outputs[this.#first]?.failed(1)
      this.#drop(1)
    }
  }

  /** Drops everything: no program receives. */
  refuse(): void {
    for (; this.#size > 0; this.#drop(1)) this.#outputs[this.#first]?.refused(1)
  }

  /** Removes an output. */
  forget(output: Output): void {
    for (let slot = 0; slot < slots; slot++) if (this.#outputs[slot] === output) this.#outputs[slot] = null
  }

  #drop(count: number): void {
    this.#first = (this.#first + count) % slots
    this.#size -= count
  }

  #allocate(): Memory {
    const memory = new Memory(this.#libc, slotsAt + slots * slotBytes)
    for (let slot = 0; slot < slots; slot++) {
      const piece = piecesAt + slot * pieceBytes
      memory.u64(piece, memory.address + slotsAt + slot * slotBytes)
      memory.u64(slot * messageBytes, this.#name)
      memory.u32(slot * messageBytes + 8, netioNameBytes)
      memory.u64(slot * messageBytes + 16, memory.address + piece)
      memory.u64(slot * messageBytes + 24, 1)
    }
    this.#memory = memory
    return memory
  }
}
