import { ApiError, forbidden } from '../errors.ts'
import type { Tickets } from './tickets.ts'

/** Who is let in. Read for every request, so that a reload of the configuration is in force at once. */
export interface Access {
  /** Lower-case host names and addresses (IPv6 in brackets) by which clients may call us, without port. */
  readonly hosts: ReadonlySet<string>
  /** Origins of web pages that may use the service, beside our own. */
  readonly allowedOrigins: ReadonlySet<string>
  /** HTTP Basic; both empty: not used. */
  readonly user: string
  readonly password: string
  /** Bearer; empty: not used. */
  readonly token: string
}

const isProtected = ({ user, password, token }: Access): boolean => user !== '' || password !== '' || token !== ''

/**
 * Throws unless the request may come in: 401 without valid credentials when some are configured, 403 for a host name that is
 * not ours (a rebound DNS name) or a foreign web page. Valid credentials open both: a page that has them was given them.
 */
export async function admit(
  request: Request,
  access: Access,
  tickets: Tickets,
  takesTicket: () => Promise<boolean>,
): Promise<void> {
  if (isProtected(access)) {
    if (await hasCredentials(request, access)) return
    const ticket = request.url.includes('ticket=') ? new URL(request.url).searchParams.get('ticket') : null
    if (ticket !== null && (await takesTicket()) && tickets.redeem(ticket)) return
    // A preflight cannot carry credentials; it is judged by its origin.
    if (!isPreflight(request)) throw unauthorized()
  }
  const host = hostOf(request)
  if (host === undefined || !access.hosts.has(host.name)) {
    throw forbidden(
      `Host: "${host?.text.slice(0, 80) ?? ''}" is not a name of this service; add it to allowed_hosts to use it`,
    )
  }
  const origin = request.headers.get('origin')
  if (origin !== null) {
    if (isOwnOrigin(origin, host.text) || access.allowedOrigins.has(origin.toLowerCase())) return
    throw forbidden(
      `Origin: pages of ${origin.slice(0, 80)} may not use this service; add the origin to allowed_origins to let them`,
    )
  }
  // Browsers leave Origin out of plain GETs, but say where those come from.
  const site = request.headers.get('sec-fetch-site')
  const isForeign = site === 'cross-site' || site === 'same-site'
  if (isForeign && request.headers.get('sec-fetch-mode') !== 'navigate') {
    throw forbidden('Sec-Fetch-Site: a page of another site may not use this service')
  }
}

/** The origin to name in Access-Control-Allow-Origin for a request that was let in. */
export const corsOrigin = (request: Request): string | undefined => request.headers.get('origin') ?? undefined

export const isPreflight = (request: Request): boolean =>
  request.method === 'OPTIONS' && request.headers.has('access-control-request-method')

/** The Host header, as it was sent and as a bare lower-case name. The URL is no help: an absolute request line sets it. */
function hostOf(request: Request): { text: string; name: string } | undefined {
  const text = request.headers.get('host') ?? new URL(request.url).host
  const name = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(text)?.[1]
  return name === undefined ? undefined : { text, name: name.toLowerCase() }
}

function isOwnOrigin(origin: string, host: string): boolean {
  return /^https?:\/\//.test(origin) && origin.slice(origin.indexOf('://') + 3).toLowerCase() === host.toLowerCase()
}

async function hasCredentials(request: Request, access: Access): Promise<boolean> {
  const [, scheme, value] = /^(\w+)\s+(\S+)$/.exec(request.headers.get('authorization') ?? '') ?? []
  if (scheme === undefined || value === undefined) return false
  if (scheme.toLowerCase() === 'bearer') return access.token !== '' && (await same(value, access.token))
  // A configuration with only half of the pair lets nobody in by it.
  if (scheme.toLowerCase() !== 'basic' || access.user === '' || access.password === '') return false
  const given = fromBase64(value)
  return given !== undefined && (await same(given, `${access.user}:${access.password}`))
}

/** Basic credentials are UTF-8 (RFC 7617). */
function fromBase64(text: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

/** Digests first, so that neither the length nor the first wrong character shows in the time. */
async function same(a: string, b: string): Promise<boolean> {
  const digest = async (text: string) =>
    new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
  const [x, y] = await Promise.all([digest(a), digest(b)])
  let difference = 0
  for (let index = 0; index < x.length; index++) difference |= (x[index] ?? 0) ^ (y[index] ?? 0)
  return difference === 0
}

const unauthorized = () =>
  new ApiError(401, 'Authorization: valid credentials are needed, HTTP Basic or a Bearer token', {
    headers: { 'WWW-Authenticate': 'Basic realm="patchbay", charset="UTF-8"', Connection: 'close' },
  })
