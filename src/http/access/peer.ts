/** The other end of a request: the client, or the proxy before it that nobody told us of. */
export interface Peer {
  /** IP address: the forwarded one behind a trusted proxy. Empty when the runtime does not tell. */
  readonly address: string
  /** The request came by TLS, to this service or to a trusted proxy before it. */
  readonly isSecure: boolean
}

/** What a runtime that knows no more can tell: the scheme of the URL. */
export const peerByUrl = ({ url }: Request): Peer => ({ address: '', isSecure: url.startsWith('https:') })
