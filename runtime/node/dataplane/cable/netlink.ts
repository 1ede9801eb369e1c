import { SerialQueue } from '../../../../src/lib/async/serial-queue.ts'
import { type Libc, linux } from '../../os/system/libc.ts'

/** struct nlmsghdr { u32 length; u16 type, flags; u32 sequence, sender; } and flags of linux/netlink.h. */
const headerBytes = 16
const [isRequest, isAcknowledged, isDump] = [1, 4, 0x300]
const [isError, isDone] = [2, 3]
const answerBytes = 64 << 10
/** Most pieces of one answer: the filters of a device are in the first. */
const maxPieces = 1000

/** A failure that the kernel reports, by its number in errno.h. */
export class NetlinkError extends Error {
  readonly errno: number

  constructor(what: string, errno: number) {
    super(`${what}: errno ${errno}`)
    this.errno = errno
  }
}

/** A message of rtnetlink(7): its type and what follows the header. */
export interface NetlinkMessage {
  readonly type: number
  readonly body: DataView
}

/** An attribute: a length and a type before its value, padded. */
export function attribute(type: number, ...values: readonly Uint8Array[]): Uint8Array {
  const value = Buffer.concat(values)
  const bytes = Buffer.alloc((4 + value.length + 3) & ~3)
  bytes.writeUInt16LE(4 + value.length, 0)
  bytes.writeUInt16LE(type, 2)
  value.copy(bytes, 4)
  return bytes
}

/** The attributes from an offset on, by their types. */
export function attributesOf(view: DataView, from: number): Map<number, DataView> {
  const found = new Map<number, DataView>()
  for (let at = from; at + 4 <= view.byteLength; ) {
    const length = view.getUint16(at, true)
    if (length < 4 || at + length > view.byteLength) break
    // The upper two bits are flags.
    found.set(view.getUint16(at + 2, true) & 0x3fff, new DataView(view.buffer, view.byteOffset + at + 4, length - 4))
    at += (length + 3) & ~3
  }
  return found
}

/**
 * Requests over a netlink socket that another program has opened in its network namespace. The kernel carries each out while it is sent, and
 * may wait for a lock of the whole system meanwhile: a thread of Node sends it. All of its answer is there then, or lost.
 */
export class Netlink {
  readonly #libc: Libc
  readonly #socket: number
  readonly #queue = new SerialQueue()
  readonly #answer = new Uint8Array(answerBytes)
  #sequence = 0

  constructor(libc: Libc, socket: number) {
    this.#libc = libc
    this.#socket = socket
    libc.fcntl(socket, linux.F_SETFL, libc.fcntl(socket, linux.F_GETFL, 0) | linux.O_NONBLOCK)
  }

  /** Has the kernel change something; NetlinkError. `flags`: beside those of every request. */
  async change(what: string, type: number, flags: number, body: Uint8Array): Promise<void> {
    await this.#ask(what, type, isAcknowledged | flags, body)
  }

  /** What the kernel lists. */
  list(what: string, type: number, body: Uint8Array): Promise<NetlinkMessage[]> {
    return this.#ask(what, type, isDump, body)
  }

  #ask(what: string, type: number, flags: number, body: Uint8Array): Promise<NetlinkMessage[]> {
    return this.#queue.run(async () => {
      const sequence = ++this.#sequence
      const message = Buffer.alloc(headerBytes + body.length)
      message.writeUInt32LE(message.length, 0)
      message.writeUInt16LE(type, 4)
      message.writeUInt16LE(isRequest | flags, 6)
      message.writeUInt32LE(sequence, 8)
      message.set(body, headerBytes)
      if ((await this.#libc.sendLater(this.#socket, message)) < 0) throw new NetlinkError(what, 0)
      return this.#read(what, sequence)
    })
  }

  #read(what: string, sequence: number): NetlinkMessage[] {
    const found: NetlinkMessage[] = []
    const address = this.#libc.addressOf(this.#answer)
    for (let pieces = 0; pieces < maxPieces; pieces++) {
      const length = this.#libc.read(this.#socket, address, answerBytes)
      if (length <= 0) throw new NetlinkError(what, this.#libc.errno())
      const view = new DataView(this.#answer.slice(0, length).buffer)
      for (let at = 0; at + headerBytes <= length; ) {
        const size = view.getUint32(at, true)
        if (size < headerBytes || at + size > length) break
        const type = view.getUint16(at + 4, true)
        const isOurs = view.getUint32(at + 8, true) === sequence
        if (isOurs && type === isDone) return found
        if (isOurs && type === isError) {
          const errno = -view.getInt32(at + headerBytes, true)
          if (errno !== 0) throw new NetlinkError(what, errno)
          return found
        }
        if (isOurs) found.push({ type, body: new DataView(view.buffer, at + headerBytes, size - headerBytes) })
        at += (size + 3) & ~3
      }
    }
    throw new NetlinkError(what, linux.EMSGSIZE)
  }
}
