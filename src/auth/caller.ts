import type { Identity } from './identity.ts'

/**
 * Whether a client may do everything, as the gateway that hands its request on tells a compute: `admin`, or `user`. A compute
 * believes it because the request came with the credentials of the compute, or through the tunnel. It only takes rights away.
 */
export const viaHeader = 'x-patchbay-via'

export type Via = 'admin' | 'user'

/** Names a request in the logs of the gateway and of the compute; see `requestIdOf`. */
export const requestIdHeader = 'x-request-id'

/** Names the client of a gateway in the events and logs of a compute, percent-encoded; nothing is decided by it. */
const nameHeader = 'x-patchbay-by'
const maxName = 255

/** Who calls, as far as the compute decides by it what a request may name on its disk and what may be run. */
export interface Caller {
  /** False for a request that a gateway handed on, or that came through a tunnel: such a request is never in local mode. */
  readonly isDirect: boolean
  /** Whether the caller may bring programs that the compute runs: an administrator with credentials. */
  readonly mayExecute: boolean
  /** The id of the request, as the client gave it or the service made it. */
  readonly requestId?: string
  /** Of the token or the user; absent where no credentials are asked for. */
  readonly name?: string
}

/** The caller of a request that came with these credentials; without any (an empty `key`) nobody is an administrator. */
export function callerOf({ name, role, key }: Identity, request: Request, requestId: string): Caller {
  const via = request.headers.get(viaHeader)
  const isAdmin = role === 'admin' && key !== ''
  // A gateway names its client. What it comes in with is named, too: anybody could send that header.
  const told = via === null ? undefined : nameIn(request)
  return {
    ...{ isDirect: via === null, mayExecute: isAdmin && (via === null || via === 'admin'), requestId },
    ...(key !== '' && { name: told === undefined ? name : `${told} (${name})` }),
  }
}

/** The caller of a request that came through the tunnel of a gateway, which has looked at the credentials. */
export function callerThroughTunnel(request: Request, requestId: string): Caller {
  const name = nameIn(request)
  return {
    ...{ isDirect: false, mayExecute: request.headers.get(viaHeader) === 'admin', requestId },
    ...(name !== undefined && { name }),
  }
}

/** What a compute is told of the caller and its request, and nothing else of it. */
export const headersFor = ({ mayExecute, requestId, name }: Caller): Record<string, string> => ({
  [viaHeader]: (mayExecute ? 'admin' : 'user') satisfies Via,
  ...(requestId !== undefined && { [requestIdHeader]: requestId }),
  ...(name !== undefined && { [nameHeader]: encodeURIComponent(wellFormed(name.slice(0, maxName))) }),
})

/** With a replacement character for half of a surrogate pair, which has no UTF-8. */
const wellFormed = (text: string): string => new TextDecoder().decode(new TextEncoder().encode(text))

/** What a gateway calls its client. */
function nameIn({ headers }: Request): string | undefined {
  try {
    return decodeURIComponent(headers.get(nameHeader) ?? '').slice(0, maxName) || undefined
  } catch {
    return undefined
  }
}

/** The id that a client gave its request: 1 to 64 letters, digits and `-`; undefined for none, or for what is none. */
export function requestIdOf(request: Request): string | undefined {
  const id = request.headers.get(requestIdHeader)
  return id !== null && /^[A-Za-z0-9-]{1,64}$/.test(id) ? id : undefined
}
