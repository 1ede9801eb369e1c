import { chmodSync, lstatSync, readFileSync, rmSync } from 'node:fs'
import { KeeperError } from '../../keeper-protocol/error.ts'
import { type Libc, linux, type Pointer } from '../../system/libc.ts'
import { LockFile } from './lock-file.ts'
import { Memory } from './memory.ts'
import { claimDirectory } from './netio-directory.ts'

/** What comes before the frame in a datagram: destination id, source id, destination port, source port, type, channel. */
export const netioHeaderBytes = 8
export const longestNetioFrame = 4096
/** struct sockaddr_un { u16 family; char path[108]; } */
export const netioNameBytes = 110
/** What one short datagram takes of a send buffer, twice. */
const bufferBytesEach = 1536
/** What is for bridges has the application id of the instance and this. */
export const bridgeOffset = 512
/** Type and channel of a frame, as a big-endian number. */
export const netioData = 0x0100

const ports = 256
const headersAt = 128
const scratchAt = headersAt + ports * netioHeaderBytes

/**
 * The UNIX datagram socket of one program that speaks with an IOU instance, or is one: `own` is its id, `peer` that of the other.
 * A lock file keeps a second one away. It is not connected, because the other one may come and go.
 */
export class NetioSocket {
  readonly fd: number
  readonly own: number
  readonly peer: number
  /** The address of the other one. */
  readonly name: Pointer
  readonly #libc: Libc
  readonly #memory: Memory
  readonly #path: string
  readonly #lock: LockFile
  readonly #bufferBytes: number

  private constructor(
    libc: Libc,
    memory: Memory,
    fd: number,
    ids: { own: number; peer: number },
    lock: LockFile,
    path: string,
  ) {
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
      const place = headersAt + port * netioHeaderBytes
      memory.view.setUint16(place, ids.peer, false)
      memory.view.setUint16(place + 2, ids.own, false)
      memory.bytes[place + 4] = port
      memory.bytes[place + 5] = port
      memory.view.setUint16(place + 6, netioData, false)
    }
  }

  /** `port_taken` when another program has the id, `no_privilege` when the directory is not ours. */
  static open(libc: Libc, directory: string, ids: { own: number; peer: number }): NetioSocket {
    claimDirectory(directory)
    const path = `${directory}/${ids.own}`
    const taken = () =>
      new KeeperError('port_taken', `another program has the id ${ids.own} among those of IOU (${path})`)
    const lock = LockFile.take(libc, `${path}.lck`)
    if (lock === undefined) throw taken()
    const memory = new Memory(libc, scratchAt + netioNameBytes)
    const name = memory.address + scratchAt
    writeName(memory, 0, `${directory}/${ids.peer}`)
    writeName(memory, scratchAt, path)
    let fd = -1
    try {
      fd = openDatagramSocket(libc)
      // Whoever listens there without a lock is left alone; what a killed program left is not.
      if (listens(libc, name)) throw taken()
      rmSync(path, { force: true })
      if (libc.bind(fd, name, netioNameBytes) < 0) {
        throw new KeeperError('internal', `${path} cannot be made: errno ${libc.errno()}`)
      }
      // A confined instance may run as another user. The directory lets nobody else in.
      chmodSync(path, 0o666)
      return new NetioSocket(libc, memory, fd, ids, lock, path)
    } catch (error) {
      if (fd >= 0) libc.close(fd)
      lock.release()
      throw error
    }
  }

  /** The header of what leaves for a port; the other one's ports have the same numbers. */
  headerOf(port: number): Pointer {
    return this.#memory.address + headersAt + port * netioHeaderBytes
  }

  /**
   * Whether what it sent and nobody read yet is more than a quarter of what may be under way; then it can be written to when it
   * is not any more, and otherwise always (unix_writable).
   */
  get isFull(): boolean {
    const { address, view } = this.#memory
    if (this.#libc.ioctl(this.fd, linux.SIOCOUTQ, address + scratchAt) < 0) return false
    return view.getUint32(scratchAt, true) * 4 > this.#bufferBytes
  }

  /**
   * Makes the send buffer so small that it is what is full first, or half full when the other one's queue is. It has room again
   * when three quarters of it were read, a queue when one datagram was: we would be woken for every one. Its bytes.
   */
  #limitBuffer(): number {
    const { address, view } = this.#memory
    const buffer = address + scratchAt
    this.#memory.u32(scratchAt + 4, 4)
    this.#libc.getsockopt(this.fd, linux.SOL_SOCKET, linux.SO_SNDBUF, buffer, buffer + 4)
    const wanted = (queueLength() + 1) * bufferBytesEach
    if (wanted >= view.getUint32(scratchAt, true)) return view.getUint32(scratchAt, true)
    // The system doubles what it is told.
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

/** Whether a program has that id in the directory: it holds the lock file, or listens without one. */
export function isNetioTaken(libc: Libc, directory: string, id: number): boolean {
  const path = `${directory}/${id}`
  if (LockFile.isHeld(libc, `${path}.lck`)) return true
  if (!isThere(path)) return false
  const memory = new Memory(libc, netioNameBytes)
  writeName(memory, 0, path)
  return listens(libc, memory.address)
}

/** Removes the files of the socket of an id, unless a program has them. */
export function removeLeftover(libc: Libc, directory: string, id: number): void {
  const path = `${directory}/${id}`
  const hadLock = isThere(`${path}.lck`)
  if (!hadLock && !isThere(path)) return
  claimDirectory(directory)
  const lock = LockFile.take(libc, `${path}.lck`)
  if (lock === undefined) return
  const memory = new Memory(libc, netioNameBytes)
  writeName(memory, 0, path)
  const isListening = listens(libc, memory.address)
  if (!isListening) rmSync(path, { force: true })
  // Whoever listens without a lock may still want to take it.
  if (isListening && hadLock) lock.leave()
  else lock.release()
}

const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined

export function openDatagramSocket(libc: Libc): number {
  const fd = libc.socket(linux.AF_UNIX, linux.SOCK_DGRAM | linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC, 0)
  if (fd < 0) throw new KeeperError('internal', `no UNIX socket can be opened: errno ${libc.errno()}`)
  return fd
}

/** Errors of a send to a program that does not run: its socket is left over, or gone. */
export const isNobodyThere = (errno: number): boolean => errno === linux.ECONNREFUSED || errno === linux.ENOENT

/** How many datagrams more than one may wait at a UNIX socket; Infinity when that is not known. */
function queueLength(): number {
  try {
    return Number(readFileSync('/proc/sys/net/unix/max_dgram_qlen', 'utf8'))
  } catch {
    return Number.POSITIVE_INFINITY
  }
}

function writeName(memory: Memory, place: number, path: string): void {
  memory.u16(place, linux.AF_UNIX)
  new TextEncoder().encodeInto(path, memory.bytes.subarray(place + 2, place + netioNameBytes - 1))
}

function listens(libc: Libc, name: Pointer): boolean {
  const fd = openDatagramSocket(libc)
  try {
    // Who is connected to somebody else refuses too, with another error.
    return libc.connect(fd, name, netioNameBytes) === 0 || !isNobodyThere(libc.errno())
  } finally {
    libc.close(fd)
  }
}
