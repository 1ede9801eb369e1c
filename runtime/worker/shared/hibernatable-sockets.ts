import { type Socket, subprotocolOf, type Upgrade } from '../../../src/lib/http/socket.ts'

interface Listeners {
  readonly receive: ((data: string | Uint8Array) => void)[]
  readonly closed: ((code: number) => void)[]
}

/** `tunnel`: of a joined compute; `feed`: of an isolate that reads a feed. */
export type SocketPurpose = 'tunnel' | 'feed'

/** A websocket with an attachment (`keep`) that outlives the memory of the object. */
export type HibernatableSocket = Socket & Required<Pick<Socket, 'keep'>>

/**
 * Websockets that outlive the memory of the Durable Object: Cloudflare keeps them open during hibernation, and wakes the object with the
 * next message. The new program takes them over by `existingSockets`.
 */
export class HibernatableSockets {
  readonly #state: DurableObjectState
  readonly #listeners = new Map<WebSocket, Listeners>()

  constructor(state: DurableObjectState) {
    this.#state = state
    // Cloudflare answers heartbeats without waking the object.
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

  /** The open websockets that an earlier program of the object accepted, with their attachments. */
  existingSockets(purpose: SocketPurpose): { readonly socket: HibernatableSocket; readonly kept: unknown }[] {
    return this.#state
      .getWebSockets(purpose)
      .filter((server) => !this.#listeners.has(server) && server.readyState === WebSocket.OPEN)
      .map((server) => ({ socket: this.#socketOf(server), kept: server.deserializeAttachment() }))
  }

  message(server: WebSocket, data: string | ArrayBuffer): void {
    const piece = typeof data === 'string' ? data : new Uint8Array(data)
    for (const receive of this.#listeners.get(server)?.receive ?? []) receive(piece)
  }

  closed(server: WebSocket, code: number): void {
    const listeners = this.#listeners.get(server)
    this.#listeners.delete(server)
    for (const closed of listeners?.closed ?? []) closed(code)
    try {
      // The peer waits for the close frame. 1005 and 1006 must not be sent (RFC 6455, 7.4.1).
      server.close(code === 1005 || code === 1006 ? 1000 : code)
    } catch {
      // Already closed, or broken.
    }
  }

  #socketOf(server: WebSocket): HibernatableSocket {
    const listeners: Listeners = { receive: [], closed: [] }
    this.#listeners.set(server, listeners)
    return {
      send: (data) => server.send(data),
      close(code, reason) {
        try {
          server.close(code, reason)
        } catch {
          // Already closed by the other end.
        }
      },
      onMessage: (receive) => void listeners.receive.push(receive),
      onClose: (closed) => void listeners.closed.push(closed),
      drained: async () => {},
      keep: (value) => server.serializeAttachment(value),
    }
  }
}
