import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { KeeperError } from '../../keeper-protocol/error.ts'

/** Bursts must fit while the event loop is busy; the kernel gives what it allows (net.core.rmem_max). */
const bufferBytes = 1 << 20

export interface UdpPeer {
  readonly address: string
  readonly port: number
}

/** A UDP socket that is bound here and connected there: only datagrams of the peer come in. */
export class UdpSocket {
  readonly port: number
  readonly #socket: Socket
  readonly #refused: () => void
  #isOpen = true

  private constructor(socket: Socket, refused: () => void) {
    this.#socket = socket
    this.#refused = refused
    this.port = socket.address().port
  }

  /** `port_taken` when the local port cannot be bound; port 0 takes a free one. */
  static async open(
    local: UdpPeer,
    remote: UdpPeer,
    receive: (frame: Buffer) => void,
    refused: () => void,
  ): Promise<UdpSocket> {
    const socket = createSocket({ type: isIPv6(local.address) ? 'udp6' : 'udp4' })
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.bind({ port: local.port, address: local.address, exclusive: true }, resolve)
      })
    } catch (cause) {
      socket.close()
      throw new KeeperError('port_taken', `UDP port ${local.port} cannot be bound: ${(cause as Error).message}`, {
        cause,
      })
    }
    try {
      await new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        socket.connect(remote.port, remote.address, () => resolve())
      })
    } catch (cause) {
      socket.close()
      throw new KeeperError('bad_request', `${remote.address} cannot be reached: ${(cause as Error).message}`, {
        cause,
      })
    }
    socket.removeAllListeners('error')
    // A peer that is not there answers ICMP port unreachable, which comes here as an error: the wire is silent, no more.
    socket.on('error', refused)
    grow(socket)
    socket.on('message', receive)
    return new UdpSocket(socket, refused)
  }

  send(frame: Buffer): void {
    if (!this.#isOpen) return
    this.#socket.send(frame, (error) => {
      if ((error as NodeJS.ErrnoException | null)?.code !== 'ECONNREFUSED') return
      // An answer to an earlier frame: it was taken from the socket, and this one may go.
      this.#refused()
      if (this.#isOpen) this.#socket.send(frame, ignore)
    })
  }

  close(): Promise<void> {
    if (!this.#isOpen) return Promise.resolve()
    this.#isOpen = false
    return new Promise((resolve) => this.#socket.close(() => resolve()))
  }
}

const ignore = () => {}

function grow(socket: Socket): void {
  try {
    socket.setRecvBufferSize(bufferBytes)
    socket.setSendBufferSize(bufferBytes)
  } catch {
    // A smaller buffer loses frames earlier; nothing else.
  }
}
