/** The remote side of a request: the client, or a proxy that is not configured as trusted. */
export interface Peer {
  /** IP address: behind a trusted proxy the forwarded address. Empty when the runtime does not give it. */
  readonly address: string
  /** The request came by TLS, to this service or to a trusted proxy before it. */
  readonly isSecure: boolean
}

/** The peer of requests that come by no connection of their own: from within the service, and through the tunnel of a gateway. Wrong log-ins among them count together. */
export const insidePeer: Peer = { address: 'inside', isSecure: true }

/** The peer for a runtime that has only the URL of the request. */
export const peerByUrl = ({ url }: Request): Peer => ({ address: '', isSecure: url.startsWith('https:') })
