import { type Static, Type } from '@sinclair/typebox'
import { Check } from '@sinclair/typebox/value'
import type { KeptTunnel, Tunnels } from '../../../src/fleet/pool/tunnels.ts'
import type { Socket, Upgrade } from '../../../src/lib/http/socket.ts'
import { ComputeHello } from '../../../src/model/tunnel.ts'
import type { HibernatableSocket, HibernatableSockets } from '../shared/hibernatable-sockets.ts'
import type { EventSubscription } from './event-pump.ts'

/** The attachment of the websocket of a joined compute. */
type Kept = Static<typeof Kept>
const Kept = Type.Object({
  hello: ComputeHello,
  /** The key of its token. */
  token: Type.Optional(Type.String()),
  /** From where it was opened. */
  address: Type.Optional(Type.String()),
  /** See `EventSubscription`. */
  listening: Type.Optional(Type.Object({ turn: Type.String(), heard: Type.Optional(Type.Integer({ minimum: 0 })) })),
})

/** `limits`: at most 32 MiB wait when no stream of the compute is read; an object has 128 MB in all. */
export const tunnelOptions = {
  watch: 'busy',
  limits: { window: 256 * 1024, streams: 128 },
  /**
   * A timer also makes workerd look at all its connections. It does that when it has nothing else to do, and a tunnel by which answers come as
   * quickly as requests go leaves it no such moment: other clients waited for a second.
   */
  later: (run: () => void) => void setTimeout(run, 0),
} as const

/** The websockets of a joined compute: one, and another one while the compute joins again. */
export class TunnelSockets {
  readonly #sockets: HibernatableSockets
  #joined: { readonly socket: HibernatableSocket; kept: Kept } | undefined

  constructor(sockets: HibernatableSockets) {
    this.#sockets = sockets
  }

  readonly upgrade: Upgrade = (request, on) =>
    this.#sockets.accept('tunnel', request, { open: (socket) => on.open(this.#keeping(socket)) })

  /** Resumes the websockets that an earlier program accepted. */
  resume(tunnels: Tunnels): void {
    for (const { socket, kept } of this.#sockets.existingSockets('tunnel')) {
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

  get listening(): EventSubscription | undefined {
    const { turn: subscriptionId, ...rest } = this.#joined?.kept.listening ?? {}
    return subscriptionId === undefined ? undefined : { subscriptionId, ...rest }
  }

  /** Stores the subscription of the directory, until the compute joins again. */
  listen(listening: EventSubscription | undefined): void {
    const joined = this.#joined
    if (joined === undefined) return
    const { listening: _, ...kept } = joined.kept
    if (listening === undefined) joined.kept = kept
    else {
      const { subscriptionId: turn, ...rest } = listening
      joined.kept = { ...kept, listening: { turn, ...rest } }
    }
    joined.socket.keep(joined.kept)
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
    this.#joined = { socket, kept }
    socket.onClose(() => {
      if (this.#joined?.socket === socket) this.#joined = undefined
    })
  }
}
