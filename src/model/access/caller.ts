import type { Identity } from './identity.ts'

/**
 * The role of the client (`admin` or `user`), set by a gateway on the requests that it forwards. The compute trusts the header: the
 * request has the credentials of the compute, or comes through the tunnel. The header can only take rights away.
 */
export const viaHeader = 'x-patchbay-via'

/**
 * Set by a gateway on the NIOs of links that it makes itself, whose hosts no client has chosen. A compute heeds it from an administrator
 * or through its tunnel. A gateway never passes it on from a client.
 */
export const ownLinkHeader = 'x-patchbay-own-link'

export type Via = 'admin' | 'user'

/** Names a request in the logs of the gateway and of the compute; see `requestIdOf`. */
const requestIdHeader = 'x-request-id'

/** The client of a gateway, for the events and logs of a compute; percent-encoded. It grants no rights. */
const nameHeader = 'x-patchbay-by'
const maxName = 255

/** The rights of the client: which host files its request may name, and which programs it may bring. */
export interface Caller {
  /** False for a request from a gateway or a tunnel: such a request is never in local mode. */
  readonly isDirect: boolean
  /** Whether the caller may bring programs that the compute runs: an administrator with credentials. */
  readonly mayExecute: boolean
  /** The id of the request, as the client gave it or the service made it. */
  readonly requestId?: string
  /** The name of the token or the user; absent where the service needs no credentials. */
  readonly name?: string
}

/** The caller of a request with these credentials. A request without credentials (an empty `key`) is never an administrator. */
export function callerOf({ name, role, key }: Identity, request: Request, requestId: string): Caller {
  const via = request.headers.get(viaHeader)
  const isAdmin = role === 'admin' && key !== ''
  // Any client can send that header: the name of its credentials follows in parentheses.
  const client = via === null ? undefined : nameIn(request)
  const caller = { isDirect: via === null, mayExecute: isAdmin && (via === null || via === 'admin'), requestId }
  return key === '' ? caller : { ...caller, name: client === undefined ? name : `${client} (${name})` }
}

/** The caller of a request from the tunnel of a gateway. The gateway has checked the credentials. */
export function callerThroughTunnel(request: Request, requestId: string): Caller {
  const name = nameIn(request)
  return {
    isDirect: false,
    mayExecute: request.headers.get(viaHeader) === 'admin',
    requestId,
    ...(name !== undefined && { name }),
  }
}

/** The headers about the caller that a gateway sends to a compute; no other header names the caller. */
export function headersFor({ mayExecute, requestId, name }: Caller): Record<string, string> {
  // V8 takes a microsecond for a literal with a computed name.
  const headers: Record<string, string> = {}
  headers[viaHeader] = (mayExecute ? 'admin' : 'user') satisfies Via
  if (requestId !== undefined) headers[requestIdHeader] = requestId
  if (name !== undefined) headers[nameHeader] = encoded(name.slice(0, maxName))
  return headers
}

/** Names as they were encoded: a few of them ask again and again. */
const encodedNames = new Map<string, string>()
const maxEncodedNames = 1000

/** Percent-encoded, with a replacement character for half of a surrogate pair, which has no UTF-8. */
function encoded(name: string): string {
  const known = encodedNames.get(name)
  if (known !== undefined) return known
  if (encodedNames.size >= maxEncodedNames) encodedNames.clear()
  const text = encodedAnew(name)
  encodedNames.set(name, text)
  return text
}

function encodedAnew(text: string): string {
  try {
    return encodeURIComponent(text)
  } catch {
    return encodeURIComponent(new TextDecoder().decode(new TextEncoder().encode(text)))
  }
}

/** The name that a gateway gives for its client. */
function nameIn({ headers }: Request): string | undefined {
  try {
    return decodeURIComponent(headers.get(nameHeader) ?? '').slice(0, maxName) || undefined
  } catch {
    return undefined
  }
}

/** The id that a client gave its request: 1 to 128 printable ASCII characters without spaces; undefined for no id and for a malformed id. */
export function requestIdOf(request: Request): string | undefined {
  const id = request.headers.get(requestIdHeader)
  return id !== null && /^[!-~]{1,128}$/.test(id) ? id : undefined
}
