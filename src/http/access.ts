import { type Identity, unauthorized, type Verifier } from '../auth/identity.ts'
import { sameText } from '../auth/secret.ts'
import { forbidden } from '../errors.ts'
import type { TicketOffice } from './tickets.ts'

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
  /** Knows further credentials. With it nobody comes in without any, also where none of those above is set. */
  readonly verifier?: Verifier | undefined
}

/** Everybody, where there are no credentials to ask for. */
const anybody: Identity = { name: 'anybody', role: 'admin', key: '' }

const isProtected = ({ user, password, token, verifier }: Access): boolean =>
  user !== '' || password !== '' || token !== '' || verifier !== undefined

/**
 * Who asks. Throws unless the request may come in: 401 without valid credentials when some are configured, 403 for a host name
 * that is not ours (a rebound DNS name) or a foreign web page. Valid credentials open both: a page that has them was given them.
 * Undefined for a preflight, which cannot carry credentials.
 */
export async function admit(
  request: Request,
  access: Access,
  tickets: Pick<TicketOffice, 'redeem'>,
  takesTicket: boolean,
): Promise<Identity | undefined> {
  if (!isProtected(access)) {
    requireHost(request, access)
    requireOrigin(request, access)
    return anybody
  }
  const identity = (await identify(request, access)) ?? (await holderOfTicket(request, tickets, takesTicket))
  if (identity === undefined) {
    // It is judged by its origin.
    if (!isPreflight(request)) throw unauthorized()
    requireHost(request, access)
  }
  // A rebound name has none of the credentials that a browser sends by itself, so the name does not matter with any.
  if (identity === undefined || identity.ambient === true) requireOrigin(request, access)
  return identity
}

async function holderOfTicket(
  request: Request,
  tickets: Pick<TicketOffice, 'redeem'>,
  takesTicket: boolean,
): Promise<Identity | undefined> {
  const ticket = request.url.includes('ticket=') ? new URL(request.url).searchParams.get('ticket') : null
  return ticket !== null && takesTicket ? tickets.redeem(ticket) : undefined
}

function requireHost(request: Request, { hosts }: Access): void {
  const host = hostOf(request)
  if (host !== undefined && hosts.has(host.name)) return
  throw forbidden(
    `Host: "${host?.text.slice(0, 80) ?? ''}" is not a name of this service; add it to allowed_hosts to use it`,
  )
}

/** Throws for what a page of another site asks. */
function requireOrigin(request: Request, { allowedOrigins }: Access): void {
  const origin = request.headers.get('origin')
  if (origin !== null) {
    if (isOwnOrigin(origin, hostOf(request)?.text) || allowedOrigins.has(origin.toLowerCase())) return
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

function isOwnOrigin(origin: string, host: string | undefined): boolean {
  return (
    host !== undefined &&
    /^https?:\/\//.test(origin) &&
    origin.slice(origin.indexOf('://') + 3).toLowerCase() === host.toLowerCase()
  )
}

/** The token of a Bearer header. */
export const bearerOf = (request: Request): string | undefined =>
  /^bearer\s+(\S+)$/i.exec(request.headers.get('authorization') ?? '')?.[1]

/** Whose credentials came with the request: those configured first, then what the verifier knows. */
async function identify(request: Request, access: Access): Promise<Identity | undefined> {
  const [, scheme, value] = /^(\w+)\s+(\S+)$/.exec(request.headers.get('authorization') ?? '') ?? []
  let token: string | undefined
  if (value !== undefined && scheme?.toLowerCase() === 'bearer') {
    token = value
    if (access.token !== '' && (await sameText(value, access.token))) return configured('token')
  } else if (value !== undefined && scheme?.toLowerCase() === 'basic') {
    const given = fromBase64(value)
    // A configuration with only half of the pair lets nobody in by it.
    const isUsed = given !== undefined && access.user !== '' && access.password !== ''
    if (isUsed && (await sameText(given, `${access.user}:${access.password}`))) return configured('user', access.user)
    // Old clients know only Basic: the token is their password, for any user.
    token = given?.includes(':') === true ? given.slice(given.indexOf(':') + 1) : undefined
  }
  return access.verifier?.(request, token)
}

/** Who has what the configuration says may do everything. */
const configured = (what: 'token' | 'user', name = 'the configured token'): Identity => ({
  name,
  role: 'admin',
  key: `configured:${what}`,
})

/** Basic credentials are UTF-8 (RFC 7617). */
function fromBase64(text: string): string | undefined {
  try {
    const bytes = Uint8Array.from(atob(text), (char) => char.charCodeAt(0))
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}
