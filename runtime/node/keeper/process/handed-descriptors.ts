import { closeSync, writeSync } from 'node:fs'
import { type Libc, linux, loadLibc, pieceBytes } from '../../os/system/libc.ts'

/** Bytes of struct msghdr (64-bit), of a name, and of a control message with one descriptor: struct cmsghdr and an int, aligned. */
const headerBytes = 56
const nameBytes = 512
const controlBytes = 24
/** Offsets in the memory of a call. */
const [piece, name, control] = [headerBytes + 8, 128, 128 + nameBytes]

/** A socket over which a program hands over open descriptors, each with a name (unix(7), SCM_RIGHTS). */
export class DescriptorChannel {
  /** The program's end; the caller closes it when the program has started. */
  readonly theirs: number
  readonly #ours: number
  readonly #libc: Libc

  private constructor(libc: Libc, ours: number, theirs: number) {
    this.#libc = libc
    this.#ours = ours
    this.theirs = theirs
  }

  /** Throws when the kernel gives no socket. */
  static open(): DescriptorChannel {
    const libc = loadLibc()
    const pair = new Int32Array(2)
    const bytes = new Uint8Array(pair.buffer)
    // Messages keep their bounds, and the end of the program is seen.
    const type = linux.SOCK_SEQPACKET | linux.SOCK_CLOEXEC | linux.SOCK_NONBLOCK
    if (libc.socketpair(linux.AF_UNIX, type, 0, libc.addressOf(bytes)) < 0)
      throw new Error(`no pair of sockets: errno ${libc.errno()}`)
    return new DescriptorChannel(libc, pair[0] as number, pair[1] as number)
  }

  /** The descriptors that have arrived, by their names; the caller closes them. A second one of a name is closed. */
  take(): Map<string, number> {
    const taken = new Map<string, number>()
    for (;;) {
      const next = this.next()
      if (next === undefined) return taken
      if (next.descriptor === undefined) continue
      if (taken.has(next.name)) closeSync(next.descriptor)
      else taken.set(next.name, next.descriptor)
    }
  }

  /** Sends a text as one message; throws when the program has ended, or reads nothing. */
  send(text: string): void {
    writeSync(this.#ours, text)
  }

  close(): void {
    closeSync(this.#ours)
  }

  /** The next message that has arrived; the caller closes its descriptor. */
  next(): { readonly name: string; readonly descriptor: number | undefined } | undefined {
    const memory = new Uint8Array(control + controlBytes)
    const view = new DataView(memory.buffer)
    const base = this.#libc.addressOf(memory)
    const pointer = (at: number, value: number) => view.setBigUint64(at, BigInt(value), true)
    // struct msghdr { name, namelen, iov, iovlen, control, controllen, flags }
    pointer(16, base + piece)
    pointer(24, 1)
    pointer(32, base + control)
    // Room for one descriptor: the kernel closes others of the same message.
    pointer(40, controlBytes - 4)
    pointer(piece, base + name)
    pointer(piece + pieceBytes / 2, nameBytes)
    const length = this.#libc.recvmsg(this.#ours, base, linux.MSG_CMSG_CLOEXEC | linux.MSG_DONTWAIT)
    // The signal of a child that has ended may come between.
    if (length < 0 && this.#libc.errno() === linux.EINTR) return this.next()
    if (length <= 0) return undefined
    const hasDescriptor =
      Number(view.getBigUint64(40, true)) >= controlBytes - 4 &&
      view.getInt32(control + 8, true) === linux.SOL_SOCKET &&
      view.getInt32(control + 12, true) === linux.SCM_RIGHTS
    return {
      name: Buffer.from(memory.subarray(name, name + length)).toString('latin1'),
      descriptor: hasDescriptor ? view.getInt32(control + 16, true) : undefined,
    }
  }
}
