import { chmodSync, lstatSync, readFileSync, rmSync } from 'node:fs'
import { KeeperError } from '../../keeper/protocol/error.ts'
import { type Libc, linux, type Pointer } from '../../os/system/libc.ts'
import { LockFile } from '../../os/system/lock-file.ts'
import { Memory } from './memory.ts'
import { claimDirectory } from './netio-directory.ts'

/** Length of the header before the frame: destination id, source id, destination port, source port, type, channel. */
export const netioHeaderBytes = 8
export const longestNetioFrame = 4096
/** struct sockaddr_un { u16 family; char path[108]; } */
export const netioNameBytes = 110
/** Twice the send buffer space of one short datagram, bytes. */
const bufferBytesEach = 1536
/** Added to the application id of an instance: the id of its bridge. */
export const bridgeOffset = 512
/** Type and channel of a data frame, as a big-endian number. */
export const netioData = 0x0100

type NetioIds = { readonly own: number; readonly peer: number }
const ports = 256
const headersAt = 128
const scratchAt = headersAt + ports * netioHeaderBytes

/**
 * The UNIX datagram socket of an IOU instance or of its bridge: `own` is its id, `peer` the id of the other side. A lock file
 * excludes a second program with the id. The socket is not connected, because the peer may restart.
 */
export class NetioSocket {
  readonly fd: number
  readonly own: number
  readonly peer: number
  /** The address of the peer. */
  readonly name: Pointer
  readonly #libc: Libc
  readonly #memory: Memory
  readonly #path: string
  readonly #lock: LockFile
  readonly #bufferBytes: number

  private constructor(libc: Libc, memory: Memory, fd: number, ids: NetioIds, lock: LockFile, path: string) {
    this.#libc = libc
    this.#memory = memory
    this.fd = fd
    this.own = ids.own
    this.peer = ids.peer
    this.name = memory.address
    this.#lock = lock
    this.#path = path
    this.#bufferBytes = this.#limitBuffer()
    for (let port = 0; port < ports; port++) {
      const at = headersAt + port * netioHeaderBytes
      memory.view.setUint16(at, ids.peer, false)
      memory.view.setUint16(at + 2, ids.own, false)
      memory.bytes[at + 4] = port
      memory.bytes[at + 5] = port
      memory.view.setUint16(at + 6, netioData, false)
    }
  }

  /** `port_taken` when another program has the id, `no_privilege` when another user owns the directory. */
  static open(libc: Libc, directory: string, ids: NetioIds): NetioSocket {
    claimDirectory(directory)
    const path = `${directory}/${ids.own}`
    const taken = () => new KeeperError('port_taken', `another program has the IOU application id ${ids.own} (${path})`)
    const lock = LockFile.acquire(libc, `${path}.lck`)
    if (lock === undefined) throw taken()
    const memory = new Memory(libc, scratchAt + netioNameBytes)
    const name = memory.address + scratchAt
    writeName(memory, 0, `${directory}/${ids.peer}`)
    writeName(memory, scratchAt, path)
    let fd = -1
    try {
      fd = openDatagramSocket(libc)
      // A program that listens without a lock keeps its socket; the socket of a killed program is replaced.
      if (listens(libc, name)) throw taken()
      rmSync(path, { force: true })
      if (libc.bind(fd, name, netioNameBytes) < 0)
        throw new KeeperError('internal', `${path} cannot be made: errno ${libc.errno()}`)
      // A confined instance may run as another user. The private directory protects the socket.
      chmodSync(path, 0o666)
      return new NetioSocket(libc, memory, fd, ids, lock, path)
    } catch (error) {
      if (fd >= 0) libc.close(fd)
      lock.release()
      throw error
    }
  }

  /** The header of frames to a port; the peer's ports have the same numbers. */
  headerOf(port: number): Pointer {
    return this.#memory.address + headersAt + port * netioHeaderBytes
  }

  /**
   * Whether unread sent data fills more than a quarter of the send buffer. Only then the kernel reports when the socket becomes
   * writable (unix_writable in net/unix/af_unix.c).
   */
  get isFull(): boolean {
    const { address, view } = this.#memory
    if (this.#libc.ioctl(this.fd, linux.SIOCOUTQ, address + scratchAt) < 0) return false
    return view.getUint32(scratchAt, true) * 4 > this.#bufferBytes
  }

  /**
   * Makes the send buffer so small that it fills before the peer's queue, or is half full then. The buffer wakes the thread when
   * three quarters were read; a queue would wake it for every datagram. Returns the buffer size, bytes.
   */
  #limitBuffer(): number {
    const { address, view } = this.#memory
    const buffer = address + scratchAt
    this.#memory.u32(scratchAt + 4, 4)
    this.#libc.getsockopt(this.fd, linux.SOL_SOCKET, linux.SO_SNDBUF, buffer, buffer + 4)
    const wanted = (queueLength() + 1) * bufferBytesEach
    if (wanted >= view.getUint32(scratchAt, true)) return view.getUint32(scratchAt, true)
    // The kernel doubles the value (socket(7)).
    this.#memory.u32(scratchAt, wanted / 2)
    this.#libc.setsockopt(this.fd, linux.SOL_SOCKET, linux.SO_SNDBUF, buffer, 4)
    this.#libc.getsockopt(this.fd, linux.SOL_SOCKET, linux.SO_SNDBUF, buffer, buffer + 4)
    return view.getUint32(scratchAt, true)
  }

  /** Removes its files. */
  close(): void {
    rmSync(this.#path, { force: true })
    this.#libc.close(this.fd)
    this.#lock.release()
  }
}

/** Whether a program uses the id: it holds the lock file, or listens without one. */
export function isNetioTaken(libc: Libc, directory: string, id: number): boolean {
  const path = `${directory}/${id}`
  if (LockFile.isHeld(libc, `${path}.lck`)) return true
  if (!isThere(path)) return false
  const memory = new Memory(libc, netioNameBytes)
  writeName(memory, 0, path)
  return listens(libc, memory.address)
}

/** Removes the socket files of an id, unless a program uses them. */
export function removeLeftover(libc: Libc, directory: string, id: number): void {
  const path = `${directory}/${id}`
  const hadLock = isThere(`${path}.lck`)
  if (!hadLock && !isThere(path)) return
  claimDirectory(directory)
  const lock = LockFile.acquire(libc, `${path}.lck`)
  if (lock === undefined) return
  const memory = new Memory(libc, netioNameBytes)
  writeName(memory, 0, path)
  const isListening = listens(libc, memory.address)
  if (!isListening) rmSync(path, { force: true })
  // A program that listens without a lock may still take it.
  if (isListening && hadLock) lock.leave()
  else lock.release()
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

export function openDatagramSocket(libc: Libc): number {
  const fd = libc.socket(linux.AF_UNIX, linux.SOCK_DGRAM | linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC, 0)
  if (fd < 0) throw new KeeperError('internal', `no UNIX socket can be opened: errno ${libc.errno()}`)
  return fd
}

/** Whether a send failed because the receiver does not run: its socket is stale or missing. */
export const isNobodyThere = (errno: number): boolean => errno === linux.ECONNREFUSED || errno === linux.ENOENT

/** Limit of queued datagrams of a UNIX socket beyond the first; Infinity when unknown. */
function queueLength(): number {
  try {
    return Number(readFileSync('/proc/sys/net/unix/max_dgram_qlen', 'utf8'))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function writeName(memory: Memory, at: number, path: string): void {
  memory.u16(at, linux.AF_UNIX)
  new TextEncoder().encodeInto(path, memory.bytes.subarray(at + 2, at + netioNameBytes - 1))
}

function listens(libc: Libc, name: Pointer): boolean {
  const fd = openDatagramSocket(libc)
  try {
    // A socket that is connected to another peer refuses with another error.
    return libc.connect(fd, name, netioNameBytes) === 0 || !isNobodyThere(libc.errno())
  } finally {
    libc.close(fd)
  }
}
