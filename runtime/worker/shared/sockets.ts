import { originOf } from '../../../src/compute/remote/address.ts'
import type { SocketTransport } from '../../../src/compute/remote/transport.ts'
import { type Socket, subprotocolOf, type Upgrade } from '../../../src/lib/http/socket.ts'

/** A websocket of Workers; it delivers nothing before `accept`. */
type WorkerSocket = WebSocket & { accept(): void }

declare const WebSocketPair: new () => { 0: WebSocket; 1: WorkerSocket }

/** The websocket seam of Workers. */
export const upgrade: Upgrade = (request, on) => {
  const { 0: client, 1: server } = new WebSocketPair()
  on.open(accepted(server))
  const protocol = subprotocolOf(request.headers.get('sec-websocket-protocol')?.split(',') ?? [])
  const headers = protocol === undefined ? {} : { 'Sec-WebSocket-Protocol': protocol }
  return new Response(null, { status: 101, webSocket: client, headers } as ResponseInit)
}

/** Websockets to computes: the `fetch` of Workers opens them, too. */
export const socketTransport =
  (fetch: (url: string, init: RequestInit) => Promise<Response>): SocketTransport =>
  (address) =>
  async ({ path, headers, signal }) => {
    const response = await fetch(originOf(address) + path, {
      headers: { ...headers, Upgrade: 'websocket' },
      redirect: 'manual',
      signal,
    })
    const { webSocket } = response as { webSocket?: WorkerSocket | null }
    if (webSocket == null) return response
    // No message is lost: the caller adds its listeners before the next task.
    return accepted(webSocket)
  }

/** Accepts a websocket. */
export function accepted(socket: WorkerSocket): Socket {
  socket.binaryType = 'arraybuffer'
  socket.accept()
  return {
    send: (data) => socket.send(data as string),
    close: (code, reason) => socket.close(code, reason),
    onMessage: (receive) =>
      socket.addEventListener('message', ({ data }) =>
        receive(typeof data === 'string' ? data : new Uint8Array(data as ArrayBuffer)),
      ),
    onClose: (closed) => socket.addEventListener('close', ({ code }) => closed(code), { once: true }),
    drained: async () => {},
  }
}
