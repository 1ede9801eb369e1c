import { Check } from '@sinclair/typebox/value'
import type { Tunnels } from '../../src/fleet/tunnels.ts'
import { type Socket, subprotocolOf, type Upgrade } from '../../src/http/socket.ts'
import { ComputeHello } from '../../src/model/tunnel.ts'

interface Ears {
  readonly receive: ((data: string | Uint8Array) => void)[]
  readonly closed: ((code: number) => void)[]
}

/**
 * Websockets that outlive the memory of the Durable Object: Cloudflare holds them while it sleeps, and wakes it with the next
 * message. What came to know of each must be told again then.
 */
export class LastingSockets {
  readonly #state: DurableObjectState
  readonly #ears = new Map<WebSocket, Ears>()

  constructor(state: DurableObjectState) {
    this.#state = state
    // A sign of life is given without waking.
    state.setWebSocketAutoResponse(new WebSocketRequestResponsePair('ping', 'pong'))
  }

  readonly upgrade: Upgrade = (request, on) => {
    const { 0: client, 1: server } = new WebSocketPair()
    this.#state.acceptWebSocket(server)
    on.open(this.#socketOf(server))
    const protocol = subprotocolOf(request.headers.get('sec-websocket-protocol')?.split(',') ?? [])
    const headers = protocol === undefined ? {} : { 'Sec-WebSocket-Protocol': protocol }
    return new Response(null, { status: 101, webSocket: client, headers })
  }

  /** Goes on with the tunnels that were accepted before. */
  resume(tunnels: Tunnels): void {
    for (const server of this.#state.getWebSockets()) {
      if (this.#ears.has(server)) continue
      const hello: unknown = server.deserializeAttachment()
      if (!Check(ComputeHello, hello)) {
        // It had not said who it is; it comes again.
        server.close(1012, 'The gateway begins anew')
        continue
      }
      const socket = this.#socketOf(server)
      const end = tunnels.resume({ ...socket, close: (code, reason) => socket.close(code, reason) }, hello)
      socket.onMessage((data) => end.message(data))
      socket.onClose((code) => end.closed(code))
    }
  }

  message(server: WebSocket, data: string | ArrayBuffer): void {
    const piece = typeof data === 'string' ? data : new Uint8Array(data)
    for (const receive of this.#ears.get(server)?.receive ?? []) receive(piece)
  }

  closed(server: WebSocket, code: number): void {
    const ears = this.#ears.get(server)
    this.#ears.delete(server)
    for (const closed of ears?.closed ?? []) closed(code)
  }

  #socketOf(server: WebSocket): Socket {
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
