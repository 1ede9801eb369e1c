/**
 * The part of a WebSocket that the routes use. Each runtime wraps its own: `ws` on Node, WebSocketPair in workerd.
 * Text arrives as string, binary as Uint8Array.
 */
export interface Socket {
  send(data: string | Uint8Array): void
  close(code?: number, reason?: string): void
  onMessage(receive: (data: string | Uint8Array) => void): void
  /** Called once, whoever closed it, also after an error; with the code of the other end, or 1006 without one. */
  onClose(closed: (code: number) => void): void
  /** Resolves when little of what was sent still waits to leave; at once where the runtime does not tell. */
  drained(): Promise<void>
  /** Where a runtime has these: nothing is read from the other end until it goes on. */
  pause?(): void
  resume?(): void
  /** Where the websocket may outlive this program: keeps something with it, for the next one. */
  keep?(value: unknown): void
}

/**
 * Turns the request into a websocket. `open` is called with it; or `abandon`, when the client went away before that, so that
 * what was prepared can be given back. The response is only a token for the runtime.
 */
export type Upgrade = (request: Request, on: { open(socket: Socket): void; abandon(): void }) => Response

/** On runtimes where a Response cannot have status 101, the upgrade's token is marked by this header. */
export const upgradeToken = 'x-upgrade-token'

export const isUpgrade = (request: Request): boolean => request.headers.get('upgrade')?.toLowerCase() === 'websocket'

/**
 * The subprotocol to answer with, of those that a client offered. Older noVNC offers `binary` (and `base64`, which is not
 * spoken here); a browser that offered some and is told of none closes the socket again.
 */
export const subprotocolOf = (offered: Iterable<string>): 'binary' | undefined =>
  [...offered].some((word) => word.trim() === 'binary') ? 'binary' : undefined
