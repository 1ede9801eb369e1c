import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import { computeKey } from '../../src/fleet/computes.ts'
import type { KeptTunnel, Tunnels } from '../../src/fleet/tunnels.ts'
import type { Bookmarks } from '../../src/gateway/events.ts'
import type { Socket, Upgrade } from '../../src/http/socket.ts'
import { ComputeHello } from '../../src/model/tunnel.ts'
import type { HibernatableSocket, HibernatableSockets } from './hibernatable-sockets.ts'

/** The attachment of the websocket of a joined compute. */
type Kept = Static<typeof Kept>
const Kept = Type.Object({
  hello: ComputeHello,
  /** The key of its token. */
  token: Type.Optional(Type.String()),
  /** The `seq` of the last event of the compute in the feed of all computes. */
  heard: Type.Optional(Type.Integer({ minimum: 0 })),
})

/** The websockets of joined computes. */
export class TunnelSockets implements Bookmarks {
  readonly #sockets: HibernatableSockets
  readonly #joined = new Map<string, { readonly socket: HibernatableSocket; kept: Kept }>()

  constructor(sockets: HibernatableSockets) {
    this.#sockets = sockets
  }

  readonly upgrade: Upgrade = (request, on) =>
    this.#sockets.accept('tunnel', request, { open: (socket) => on.open(this.#keeping(socket)) })

  /** Resumes the websockets that an earlier program accepted. */
  resume(tunnels: Tunnels): void {
    for (const { socket, kept } of this.#sockets.survivors('tunnel')) {
      if (!Check(Kept, kept)) {
        // Its HELLO had not arrived; the compute connects again.
        socket.close(1012, 'The gateway restarts')
        continue
      }
      this.#know(socket, kept)
      const end = tunnels.resume({ ...socket, close: (code, reason) => socket.close(code, reason) }, kept)
      socket.onMessage((data) => end.message(data))
      socket.onClose((code) => end.closed(code))
    }
  }

  get(id: string): number | undefined {
    return this.#joined.get(id)?.kept.heard
  }

  put(id: string, heard: number): void {
    const joined = this.#joined.get(id)
    if (joined !== undefined && joined.kept.heard !== heard) this.#keep(joined, { ...joined.kept, heard })
  }

  clear(): void {
    for (const joined of this.#joined.values()) {
      const { hello, token } = joined.kept
      this.#keep(joined, { hello, ...(token !== undefined && { token }) })
    }
  }

  /** What `Tunnels` keeps with a websocket is a `KeptTunnel`. */
  #keeping(socket: HibernatableSocket): Socket {
    return {
      ...socket,
      keep: (value) => {
        const kept: Kept = value as KeptTunnel
        this.#know(socket, kept)
        socket.keep(kept)
      },
    }
  }

  #know(socket: HibernatableSocket, kept: Kept): void {
    const id = computeKey(kept.hello.compute_id)
    this.#joined.set(id, { socket, kept })
    socket.onClose(() => {
      if (this.#joined.get(id)?.socket === socket) this.#joined.delete(id)
    })
  }

  #keep(joined: { readonly socket: HibernatableSocket; kept: Kept }, kept: Kept): void {
    joined.kept = kept
    joined.socket.keep(kept)
  }
}
