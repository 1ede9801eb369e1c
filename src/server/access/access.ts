import { thenSync } from '../../lib/async/then-sync.ts'
import { isSecret } from '../../lib/crypto/secret.ts'
import { forbidden, notFound } from '../../lib/errors/api-error.ts'
import { textOfBytes } from '../../lib/http/header-text.ts'
import { hostOf } from '../../lib/http/host.ts'
import { isLoopback } from '../../lib/http/network.ts'
import {
  type Identified,
  type Identity,
  type Session,
  unauthorized,
  type Verifier,
} from '../../model/access/identity.ts'
import { organizationHeader } from '../../model/access/organization-header.ts'
import { type LoginAttempt, type LoginKind, type LoginLimit, madeToken } from '../auth/login-limit.ts'
import type { Sessions } from '../auth/sessions.ts'
import type { TicketOffice } from '../http/tickets.ts'
import { bearerOf, type Credentials, credentialsIn, credentialsOf, ticketOf } from './credentials.ts'
import { inOrganization } from './organization-access.ts'
import type { Peer } from './peer.ts'
import { isByBrowser, requireKnownSource } from './source.ts'

/** The access settings. Read for every request: a reload of the configuration applies at once. */
export interface Access {
  /** Lower-case names and addresses (IPv6 in brackets) of this service, without port. */
  readonly hosts: ReadonlySet<string>
  /** Other origins whose pages may use the service. */
  readonly allowedOrigins: ReadonlySet<string>
  /** HTTP Basic; both empty: not used. */
  readonly user: string
  readonly password: string
  /** Bearer; empty: not used. */
  readonly token: string
  /** Knows further credentials. With a verifier every request needs credentials, even when those above are empty. */
  readonly verifier?: Verifier | undefined
  /** The identity of a token that cannot be guessed, if the verifier needs to ask nobody for it; undefined: the verifier decides. */
  readonly atHand?: (token: string) => Identity | undefined
  /** Accepts HTTP Basic from other hosts without TLS, too. */
  readonly takesPlainBasic?: boolean
  /** Whether a client at the address gets streams without credentials: a controller of `clients = "gns3"` that sends none for them. */
  readonly streamsTo?: (address: string) => boolean
}

export interface AdmissionOptions {
  /** Read for every request. */
  readonly access: () => Access
  readonly tickets: Pick<TicketOffice, 'redeem'>
  readonly logins: LoginLimit
  /** Absent: the service has no sessions. */
  readonly sessions?: Sessions | undefined
  /** Counts a log-in as a request of its credential, by the key of that; throws 429 above the limit. */
  readonly count?: (key: string) => void
  /** Whether there is an organization of this id; absent: only `default` is. */
  readonly hasOrganization?: ((id: string) => boolean | Promise<boolean>) | undefined
}

/** The identity of every client of a service without credentials. */
const anybody: Identity = { name: 'anybody', role: 'admin', key: '', ambient: true, isOfDeployment: true }

const isProtected = ({ user, password, token, verifier }: Access): boolean =>
  user !== '' || password !== '' || token !== '' || verifier !== undefined

/**
 * Admits or refuses requests. Credentials that a browser sends by itself (HTTP Basic after one log-in, the header of Cloudflare
 * Access, or none) are *ambient*: any page can cause such requests, so the origin of the page is checked. A Bearer token or a
 * ticket is *explicit*: a page must know it to send it.
 */
export class Admission {
  readonly #options: AdmissionOptions

  constructor(options: AdmissionOptions) {
    this.#options = options
  }

  /**
   * The identity behind a request. 403 for a web page of another site, and for a host name that is not ours (DNS rebinding); 401 without
   * valid credentials where the service needs them. Undefined for a preflight, which cannot have credentials. `takesTicket`: the
   * request opens a websocket. `isStream`: `Access.streamsTo` counts. For the organization see `inOrganization`.
   */
  admit(request: Request, peer: Peer, takesTicket: boolean, isStream = false): Identified {
    // A ticket replaces the credentials only where a page cannot send a header.
    const ticket = takesTicket && isProtected(this.#options.access()) ? ticketOf(request) : undefined
    const holder = ticket === undefined ? undefined : this.#holderOf(ticket, peer)
    return thenSync(
      thenSync(holder, (known) => known ?? this.#admitted(request, peer, isStream)),
      (identity) => identity && this.#in(identity, request),
    )
  }

  /**
   * What `admit` gives for a Bearer token whose identity is at hand; undefined: `admit` decides. Such a token is compared whatever was wrong
   * before, and pages do not know it: neither log-ins nor the source are looked at.
   */
  atHand({ headers }: Request): Identity | undefined {
    const authorization = headers.get('authorization')
    if (authorization?.startsWith('Bearer pb_') !== true || headers.has(organizationHeader)) return undefined
    return this.#options.access().atHand?.(authorization.slice('Bearer '.length))
  }

  #holderOf(secret: string, { address }: Peer): Identified {
    const login = { kind: 'ticket', address, name: '', secret } as const
    return this.#options.logins.attempt(login, async () => this.#options.tickets.redeem(secret))
  }

  #in(identity: Identity, request: Request): Identity | Promise<Identity> {
    return inOrganization(identity, request, this.#options.hasOrganization ?? (() => false))
  }

  #admitted(request: Request, peer: Peer, isStream: boolean): Identified {
    const access = this.#options.access()
    const checkSource = () => requireKnownSource(request, access, peer.isSecure)
    if (!isProtected(access)) {
      requireHost(request, access)
      checkSource()
      return anybody
    }
    const credentials = credentialsOf(request)
    // Before the check of the credentials: otherwise a page could guess passwords from the browsers of its visitors.
    if (credentials.kind !== 'bearer') checkSource()
    if (credentials.kind === 'basic' && isByBrowser(request)) requireUnreboundHost(request, access, peer)
    return thenSync<Identity | undefined, Identity | undefined>(
      this.#identify(request, credentials, access, peer),
      (identity) => {
        if (identity === undefined) {
          if (isStream && credentials.kind === 'none' && access.streamsTo?.(peer.address) === true) {
            requireHost(request, access)
            return {
              name: `the controller at ${peer.address}`,
              role: 'operate',
              key: `controller ${peer.address}`,
              ambient: true,
            }
          }
          if (!isPreflight(request)) throw unauthorized({ asksBasic: !isByScript(request) })
          requireHost(request, access)
          return undefined
        }
        // A browser has no ambient credentials for a rebound name: with explicit credentials the host name does not matter.
        if (identity.ambient === true) checkSource()
        return identity
      },
    )
  }

  /** Whole seconds that a request with this Authorization has to wait after too many wrong log-ins; 0: none. */
  secondsToWait(authorization: string, { address }: Peer): number {
    if (!isProtected(this.#options.access())) return 0
    const credentials = credentialsIn(authorization)
    if (credentials.kind !== 'bearer' && credentials.kind !== 'basic') return 0
    return this.#options.logins.secondsToWait(loginOf(credentials, address))
  }

  /** The identity for a public endpoint; 403 for a page of another site, as in `admit`. */
  admitAnybody(request: Request, { isSecure }: Peer): Identity {
    requireKnownSource(request, this.#options.access(), isSecure)
    return { name: anybody.name, role: 'read', key: '', ambient: true }
  }

  /**
   * A new session and its cookie, in the organization that the request names. 401 for wrong credentials, 429 after too many, 403 for a password over an unencrypted network,
   * and for a host name that is not ours (DNS rebinding), 404 where the service has no sessions.
   */
  async logIn(
    given: { readonly token: string } | { readonly user: string; readonly password: string },
    request: Request,
    peer: Peer,
  ): Promise<{ session: Session; cookie: string }> {
    const sessions = this.#sessions()
    const access = this.#options.access()
    requireUnreboundHost(request, access, peer)
    const credentials: Credentials =
      'token' in given
        ? { kind: 'bearer', token: given.token }
        : { kind: 'basic', ...given, pair: `${given.user}:${given.password}` }
    // Without the headers of the request: only the given credentials count.
    const identity = await this.#identify(new Request(request.url), credentials, access, peer, 'session')
    if (identity === undefined) throw unauthorized({ asksBasic: false })
    this.#options.count?.(identity.key)
    const acting = await this.#in(identity, request)
    const { session, text } = await sessions.begin(acting, configuredSecret(identity.key, access))
    const lifeS = Math.ceil((session.endsAt - session.begunAt) / 1000)
    return { session, cookie: await cookieOf(sessions, text, lifeS, peer.isSecure) }
  }

  /**
   * Ends the session of the request, if any; the cookie deletes it in the browser. `ended` is called on a full disk (507), too: the
   * session stays ended until the service restarts.
   */
  async logOut(request: Request, { isSecure }: Peer, ended: (session: Session) => void): Promise<{ cookie: string }> {
    const sessions = this.#sessions()
    const session = await this.#sessionOf(request, isSecure)
    if (session !== undefined) {
      ended(session)
      await sessions.end(session)
    }
    return { cookie: await cookieOf(sessions, '', 0, isSecure) }
  }

  #sessions(): Sessions {
    const { sessions, access } = this.#options
    if (sessions === undefined || !isProtected(access())) {
      throw notFound('This service has no sessions: no credentials are configured, so none are needed')
    }
    return sessions
  }

  async #sessionOf(request: Request, isSecure: boolean): Promise<Session | undefined> {
    const { sessions } = this.#options
    const cookies = request.headers.get('cookie')
    if (sessions === undefined || cookies === null) return undefined
    const text = cookieIn(cookies, await sessions.cookieName(isSecure))
    const access = this.#options.access()
    return text === undefined ? undefined : sessions.read(text, (key) => configuredSecret(key, access))
  }

  /**
   * The result of `check` for a Bearer token, such as a join token; undefined: the token is wrong, and is counted. 429 after too
   * many wrong tokens from that address.
   */
  async checkJoinToken<T>(
    request: Request,
    { address }: Peer,
    check: () => Promise<T | undefined>,
  ): Promise<T | undefined> {
    const secret = bearerOf(request)
    if (secret === undefined) return check()
    return this.#options.logins.attempt({ kind: 'join', address, name: nameOfToken(secret), secret }, check)
  }

  /** The identity of credentials, by the configuration, then by the verifier. 429 after too many wrong log-ins. */
  #identify(request: Request, credentials: Credentials, access: Access, peer: Peer, way?: LoginKind): Identified {
    const { address } = peer
    const { logins } = this.#options
    const known = (token: string | undefined) => access.verifier?.(request, token)
    switch (credentials.kind) {
      case 'bearer': {
        const secret = credentials.token
        return logins.attempt(loginOf(credentials, address, way), () =>
          isSecret(textOfBytes(secret), textOfBytes(access.token)) ? configured('token') : known(secret),
        )
      }
      case 'basic': {
        requirePrivate(peer, access)
        const { pair, user, password } = credentials
        // A user without a password, or a password without a user, admits no client.
        const isUsed = access.user !== '' && access.password !== ''
        // Old clients support only Basic: they send the token as the password of any user.
        const found = logins.attempt(loginOf(credentials, address, way), () =>
          isUsed && isSecret(textOfBytes(pair), textOfBytes(`${access.user}:${access.password}`))
            ? configured('user', user)
            : known(password),
        )
        return thenSync(found, (identity) => identity && { ...identity, ambient: true })
      }
      case 'none':
        return thenSync<Session | undefined, Identity | undefined>(
          this.#sessionOf(request, peer.isSecure),
          (session) => (session === undefined ? known(undefined) : identityIn(session, access)),
        )
      default:
        return known(undefined)
    }
  }
}

function identityIn(session: Session, access: Access): Identity {
  const { name, role, key, endsAt, projects, limits, organization } = session
  return {
    name,
    role,
    key,
    ambient: true,
    expiresAt: endsAt,
    session,
    ...(configuredSecret(key, access) !== undefined && { isOfDeployment: true }),
    ...(projects && { projects }),
    ...(limits && { limits }),
    ...(organization !== undefined && { organization }),
  }
}

/** The configured credentials of a key; undefined for other credentials. */
function configuredSecret(key: string, { user, password, token }: Access): string | undefined {
  if (key === keyOfUser) return `${user}:${password}`
  return key === keyOfConfiguredToken ? token : undefined
}

async function cookieOf(sessions: Sessions, text: string, lifeS: number, isSecure: boolean): Promise<string> {
  const name = await sessions.cookieName(isSecure)
  return `${name}=${text}; Path=/; Max-Age=${lifeS}; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}`
}

/** The value of the cookie (RFC 6265, 4.2.1). */
function cookieIn(header: string, name: string): string | undefined {
  const found = header
    .split(';')
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(`${name}=`))
  return found?.slice(name.length + 1)
}

type Guess = Extract<Credentials, { kind: 'bearer' | 'basic' }>

/** The log-in that wrong credentials count as. */
function loginOf(credentials: Guess, address: string, way?: LoginKind): LoginAttempt {
  if (credentials.kind === 'bearer') {
    const { token } = credentials
    return {
      kind: way ?? 'bearer',
      address,
      secret: token,
      // Only wrong and limited log-ins are counted by it.
      get name() {
        return nameOfToken(token)
      },
    }
  }
  const { user, password } = credentials
  const name = madeToken.test(password) ? nameOfToken(password) : user
  return { kind: way ?? 'basic', address, name, secret: password }
}

/** The name under which wrong tokens are counted. */
const nameOfToken = (token: string): string => (madeToken.test(token) ? token.slice(0, 19) : '')

/** A script shows its own log-in form. The browser must not show its Basic prompt over that form. */
const isByScript = ({ headers }: Request): boolean => headers.get('sec-fetch-dest') === 'empty'

function requireHost(request: Request, { hosts }: Access): void {
  const host = hostOf(request)
  if (host !== undefined && hosts.has(host.name)) return
  throw forbidden(
    `Host: "${host?.text.slice(0, 80) ?? ''}" is not a name of this service; add it to allowed_hosts to use it`,
  )
}

/**
 * 403 for a host name that is not ours, when the request may be of a page that has had its own name lead here (DNS rebinding): it could try
 * passwords from the browsers of its visitors. A page that came by TLS has a certificate for the name, and a page at an address came from that address.
 */
function requireUnreboundHost(request: Request, access: Access, { isSecure }: Peer): void {
  const isTls = isSecure || request.headers.get('origin')?.startsWith('https:') === true
  if (!isTls && !isAddress(hostOf(request)?.name ?? '')) requireHost(request, access)
}

const isAddress = (name: string): boolean => /^(\[.*\]|\d+(\.\d+){3})$/.test(name)

/** 403 for a password over an unencrypted network. */
function requirePrivate({ address, isSecure }: Peer, { takesPlainBasic }: Access): void {
  if (isSecure || takesPlainBasic === true || address === '' || isLoopback(address)) return
  throw forbidden(
    'Authorization: without TLS, others on the network can read the password; set tls.cert and tls.key, list your TLS ' +
      'proxy in trusted_proxies, or allow it with insecure = true',
  )
}

/** The value of Access-Control-Allow-Origin for an admitted request. */
export const corsOrigin = (request: Request): string | undefined => request.headers.get('origin') ?? undefined

export const isPreflight = (request: Request): boolean =>
  request.method === 'OPTIONS' && request.headers.has('access-control-request-method')

const keyOfUser = 'configured:user'
const keyOfConfiguredToken = 'configured:token'

/** The administrator with configured credentials. */
const configured = (what: 'token' | 'user', name = 'the configured token'): Identity => ({
  name,
  role: 'admin',
  key: what === 'user' ? keyOfUser : keyOfConfiguredToken,
  isOfDeployment: true,
})
