import { KeeperError } from '../../keeper/protocol/error.ts'
import type { Libc } from '../../os/system/libc.ts'
import type { Counters } from '../switch/core/counters.ts'
import type { NetioEnd } from '../switch/core/path.ts'
import { Backlog } from './backlog.ts'
import { FastPathEnd } from './end.ts'
import { netioDirectory } from './netio-directory.ts'
import { bridgeOffset, NetioSocket, netioNameBytes, openDatagramSocket } from './netio-socket.ts'

export interface InstanceWatcher {
  /** Calls `backlog.drain` once when the socket, or `room`, is writable. */
  awaitBuffer(socket: number): void
  awaitRoom(room: number): void
  closed(): void
}

/** An IOU instance: the socket of all its ports, and their ends. */
export class Instance {
  readonly socket: NetioSocket
  readonly backlog: Backlog
  /** Signals room: a socket connected to the instance is writable when its queue has room (unix_dgram_poll in af_unix.c of Linux). */
  readonly room: number
  /** By port. */
  readonly ends = new Map<number, FastPathEnd>()
  readonly #libc: Libc
  readonly #counters: Counters
  readonly #watcher: InstanceWatcher
  /** The own send buffer is full; the instance may have room. */
  #isBufferFull = false

  constructor(libc: Libc, applicationId: number, counters: Counters, watcher: InstanceWatcher) {
    const ids = { own: applicationId + bridgeOffset, peer: applicationId }
    this.socket = NetioSocket.open(libc, netioDirectory(), ids)
    this.#libc = libc
    this.#counters = counters
    this.#watcher = watcher
    try {
      this.room = openDatagramSocket(libc)
    } catch (error) {
      this.socket.close()
      throw error
    }
    this.backlog = new Backlog(libc, this.socket.fd, this.socket.name, (isNew) => this.#awaitRoom(isNew))
  }

  /** `port_taken` when the port is open already. */
  open(id: number, spec: NetioEnd): FastPathEnd {
    const { port, applicationId } = spec
    const { socket, backlog, ends } = this
    if (ends.has(port))
      throw new KeeperError('port_taken', `port ${port} of the IOU instance ${applicationId} is used by another node`)
    const netio = { name: socket.name, header: socket.headerOf(port), backlog }
    const close = () => {
      ends.delete(port)
      backlog.forget(end)
      if (ends.size === 0) this.close()
    }
    const opened = { fd: socket.fd, gro: false, gso: false, hasHeader: false, longest: 0, netio, close }
    const end = new FastPathEnd(id, spec, opened, this.#counters)
    ends.set(port, end)
    return end
  }

  close(): void {
    this.#libc.close(this.room)
    this.socket.close()
    this.#watcher.closed()
  }

  #awaitRoom(isNew: boolean): void {
    const { socket, room } = this
    if (isNew) {
      this.#isBufferFull = socket.isFull
      // The instance may have been restarted since the last connect.
      if (!this.#isBufferFull && this.#libc.connect(room, socket.name, netioNameBytes) < 0) return this.backlog.refuse()
    }
    if (this.#isBufferFull) this.#watcher.awaitBuffer(socket.fd)
    else this.#watcher.awaitRoom(room)
  }
}
