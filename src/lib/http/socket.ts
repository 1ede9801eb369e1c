/**
 * The part of a WebSocket that the routes use. Each runtime wraps its own: `ws` on Node, WebSocketPair in workerd.
 * Text arrives as string, binary as Uint8Array.
 */
export interface Socket {
  send(data: string | Uint8Array): void
  close(code?: number, reason?: string): void
  onMessage(receive: (data: string | Uint8Array) => void): void
  /** Called once when the socket is closed, by either end or by an error: with the close code of the other end, or 1006 (RFC 6455, 7.4.1). */
  onClose(closed: (code: number) => void): void
  /** Resolves when few sent bytes still wait; at once where the runtime does not report that. */
  drained(): Promise<void>
  /** Stops and continues reading, where the runtime can. */
  pause?(): void
  resume?(): void
  /** Attaches data to a websocket that can outlive this program, for the next one. */
  keep?(value: unknown): void
}

/**
 * Turns the request into a websocket. It calls `open` with the socket, or `abandon` when the client left before, so that the handler
 * can release what it prepared. The response is only a token for the runtime.
 */
export type Upgrade = (request: Request, on: { open(socket: Socket): void; abandon(): void }) => Response

/** On runtimes where a Response cannot have status 101, the upgrade's token is marked by this header. */
export const upgradeToken = 'x-upgrade-token'

export const isUpgrade = (request: Request): boolean => request.headers.get('upgrade')?.toLowerCase() === 'websocket'

/**
 * The subprotocol to answer with, of those that a client offered. Older noVNC offers `binary` (and `base64`, which is not
 * supported here). A browser that offered subprotocols closes the socket when none is chosen.
 */
export const subprotocolOf = (offered: Iterable<string>): 'binary' | undefined =>
  [...offered].some((word) => word.trim() === 'binary') ? 'binary' : undefined
