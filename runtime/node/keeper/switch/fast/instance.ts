import { KeeperError } from '../../error.ts'
import type { Counters } from '../counters.ts'
import type { NetioEnd } from '../path.ts'
import { Backlog } from './backlog.ts'
import { End } from './end.ts'
import type { Libc } from './libc.ts'
import { netioDirectory } from './netio-directory.ts'
import { bridgeOffset, NetioSocket, netioNameBytes, openDatagramSocket } from './netio-socket.ts'

const none = -1

export interface Watches {
  /** Has `backlog.drain` called once, when the descriptor can be written to; `isNew`: it was not watched before. */
  room(fd: number, isNew: boolean): void
  /** The last port was closed, and the socket. */
  over(): void
}

/** An IOU instance: the socket that all its ports share, and their ends. */
export class Instance {
  readonly socket: NetioSocket
  readonly backlog: Backlog
  /** By port. */
  readonly ends = new Map<number, End>()
  readonly #libc: Libc
  readonly #counters: Counters
  readonly #watches: Watches
  /** Connected to the instance, which makes it writable when the instance took something; sends nothing. */
  #room = none

  constructor(libc: Libc, applicationId: number, counters: Counters, watches: Watches) {
    const ids = { own: applicationId + bridgeOffset, peer: applicationId }
    this.socket = NetioSocket.open(libc, netioDirectory(), ids)
    this.#libc = libc
    this.#counters = counters
    this.#watches = watches
    this.backlog = new Backlog(libc, this.socket.fd, this.socket.name, () => this.#awaitRoom())
  }

  /** `port_taken` when the port is open already. */
  open(id: number, spec: NetioEnd): End {
    const { port, applicationId } = spec
    const { socket, backlog, ends } = this
    if (ends.has(port)) {
      throw new KeeperError('port_taken', `port ${port} of the IOU instance ${applicationId} is used by another node`)
    }
    const netio = { name: socket.name, header: socket.headerOf(port), backlog }
    const close = () => {
      ends.delete(port)
      backlog.forget(end)
      if (ends.size === 0) this.close()
    }
    const end = new End(id, spec, { fd: socket.fd, gro: false, gso: false, netio, close }, this.#counters)
    ends.set(port, end)
    return end
  }

  close(): void {
    if (this.#room !== none) this.#libc.close(this.#room)
    this.socket.close()
    this.#watches.over()
  }

  #awaitRoom(): void {
    const isNew = this.#room === none
    if (isNew) this.#room = openDatagramSocket(this.#libc)
    // Anew every time: the instance may have been started again since.
    if (this.#libc.connect(this.#room, this.socket.name, netioNameBytes) === 0) {
      this.#watches.room(this.#room, isNew)
      return
    }
    this.backlog.refuse()
    if (!isNew) return
    this.#libc.close(this.#room)
    this.#room = none
  }
}
