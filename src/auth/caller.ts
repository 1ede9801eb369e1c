import type { Identity } from './identity.ts'

/**
 * Whether a client may do everything, as the gateway that hands its request on tells a compute: `admin`, or `user`. A compute
 * believes it because the request came with the credentials of the compute, or through the tunnel. It only takes rights away.
 */
export const viaHeader = 'x-patchbay-via'

export type Via = 'admin' | 'user'

/** Names a request in the logs of the gateway and of the compute; see `requestIdOf`. */
export const requestIdHeader = 'x-request-id'

/** Who calls, as far as the compute decides by it what a request may name on its disk and what may be run. */
export interface Caller {
  /** False for a request that a gateway handed on, or that came through a tunnel: such a request is never in local mode. */
  readonly isDirect: boolean
  /** Whether the caller may bring programs that the compute runs: an administrator with credentials. */
  readonly mayExecute: boolean
  /** The id of the request, as the client gave it or the service made it. */
  readonly requestId?: string
}

/** The caller of a request that came with these credentials; without any (an empty `key`) nobody is an administrator. */
export function callerOf({ role, key }: Identity, request: Request, requestId: string): Caller {
  const via = request.headers.get(viaHeader)
  const isAdmin = role === 'admin' && key !== ''
  return { isDirect: via === null, mayExecute: isAdmin && (via === null || via === 'admin'), requestId }
}

/** The caller of a request that came through the tunnel of a gateway, which has looked at the credentials. */
export const callerThroughTunnel = (request: Request, requestId: string): Caller => ({
  isDirect: false,
  mayExecute: request.headers.get(viaHeader) === 'admin',
  requestId,
})

/** What a compute is told of the caller and its request, and nothing else of it. */
export const headersFor = ({ mayExecute, requestId }: Caller): Record<string, string> => ({
  [viaHeader]: (mayExecute ? 'admin' : 'user') satisfies Via,
  ...(requestId !== undefined && { [requestIdHeader]: requestId }),
})

/** The id that a client gave its request: 1 to 64 letters, digits and `-`; undefined for none, or for what is none. */
export function requestIdOf(request: Request): string | undefined {
  const id = request.headers.get(requestIdHeader)
  return id !== null && /^[A-Za-z0-9-]{1,64}$/.test(id) ? id : undefined
}
