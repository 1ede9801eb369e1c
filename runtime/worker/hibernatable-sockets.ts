import { type Socket, subprotocolOf, type Upgrade } from '../../src/http/socket.ts'

interface Ears {
  readonly receive: ((data: string | Uint8Array) => void)[]
  readonly closed: ((code: number) => void)[]
}

/** Whose it is: of a compute that has joined, or of the feed of a client. */
export type SocketPurpose = 'tunnel' | 'feed'

/** A websocket of which more than the connection outlives the program. */
export type HibernatableSocket = Socket & Required<Pick<Socket, 'keep'>>

/**
 * Websockets that outlive the memory of the Durable Object: Cloudflare holds them while it sleeps, and wakes it with the next
 * message. What came to know of each must be told again then.
 */
export class HibernatableSockets {
  readonly #state: DurableObjectState
  readonly #ears = new Map<WebSocket, Ears>()

  constructor(state: DurableObjectState) {
    this.#state = state
    // A sign of life is given without waking.
    state.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
  }

  /** As `Upgrade`. */
  accept(
    purpose: SocketPurpose,
    request: Request,
    on: { open(socket: HibernatableSocket): void },
  ): ReturnType<Upgrade> {
    const { 0: client, 1: server } = new WebSocketPair()
    this.#state.acceptWebSocket(server, [purpose])
    on.open(this.#socketOf(server))
    const protocol = subprotocolOf(request.headers.get('sec-websocket-protocol')?.split(',') ?? [])
    const headers = protocol === undefined ? {} : { 'Sec-WebSocket-Protocol': protocol }
    return new Response(null, { status: 101, webSocket: client, headers })
  }

  /** Those that were accepted by the program before this one, and what was kept with them. */
  survivors(purpose: SocketPurpose): { readonly socket: HibernatableSocket; readonly kept: unknown }[] {
    return this.#state
      .getWebSockets(purpose)
      .filter((server) => !this.#ears.has(server) && server.readyState === WebSocket.OPEN)
      .map((server) => ({ socket: this.#socketOf(server), kept: server.deserializeAttachment() }))
  }

  message(server: WebSocket, data: string | ArrayBuffer): void {
    const piece = typeof data === 'string' ? data : new Uint8Array(data)
    for (const receive of this.#ears.get(server)?.receive ?? []) receive(piece)
  }

  closed(server: WebSocket, code: number): void {
    const ears = this.#ears.get(server)
    this.#ears.delete(server)
    for (const closed of ears?.closed ?? []) closed(code)
    try {
      // Who closed it waits for the answer; these two codes are never sent.
      server.close(code === 1005 || code === 1006 ? 1000 : code)
    } catch {
      // It was closed from here, or broke.
    }
  }

  #socketOf(server: WebSocket): HibernatableSocket {
    const ears: Ears = { receive: [], closed: [] }
    this.#ears.set(server, ears)
    return {
      send: (data) => server.send(data),
      close(code, reason) {
        try {
          server.close(code, reason)
        } catch {
          // It was closed by the other end meanwhile.
        }
      },
      onMessage: (receive) => void ears.receive.push(receive),
      onClose: (closed) => void ears.closed.push(closed),
      drained: async () => {},
      keep: (value) => server.serializeAttachment(value),
    }
  }
}
