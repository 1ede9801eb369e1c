import { createSocket, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { KeeperError } from '../../keeper/protocol/error.ts'
import type { KeeperErrorCode } from '../../keeper/protocol/protocol.ts'

/** Size of socket buffers for bursts while the event loop is busy, bytes; the kernel limits it to net.core.rmem_max. */
const bufferBytes = 1 << 20

export type SocketPeer = { readonly address: string; readonly port: number }

/** A connected UDP socket: it receives only datagrams of its peer. */
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

  /** `port_taken` when the local port cannot be bound; port 0 chooses a free one. */
  static async open(
    local: SocketPeer,
    remote: SocketPeer,
    receive: (frame: Buffer) => void,
    refused: () => void,
  ): Promise<UdpSocket> {
    const socket = createSocket({ type: isIPv6(local.address) ? 'udp6' : 'udp4' })
    const settle = async (code: KeeperErrorCode, what: string, run: (resolve: () => void) => void) => {
      const done = new Promise<void>((resolve, reject) => {
        socket.once('error', reject)
        run(resolve)
      })
      await done.catch((cause: Error) => {
        socket.close()
        throw new KeeperError(code, `${what}: ${cause.message}`, { cause })
      })
    }
    const { port, address } = local
    await settle('port_taken', `UDP port ${port} cannot be bound`, (resolve) =>
      socket.bind({ port, address, exclusive: true }, resolve),
    )
    await settle('bad_request', `${remote.address} cannot be reached`, (resolve) =>
      socket.connect(remote.port, remote.address, () => resolve()),
    )
    socket.removeAllListeners('error')
    // ICMP port unreachable of a missing peer arrives as an error; the frame is only lost.
    socket.on('error', refused)
    grow(socket)
    // A datagram of anybody else came before `connect`.
    socket.on('message', (frame, from) => {
      if (from.port === remote.port) receive(frame)
    })
    return new UdpSocket(socket, refused)
  }

  send(frame: Buffer): void {
    if (!this.#isOpen) return
    this.#socket.send(frame, (error) => {
      if ((error as NodeJS.ErrnoException | null)?.code !== 'ECONNREFUSED') return
      // A pending error of an earlier frame; it is now cleared, and this frame is sent again.
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
    // A smaller buffer only loses frames earlier.
  }
}
