import { ApiError, forbidden } from '../../lib/errors/api-error.ts'
import type { Role, TokenLimits } from './access-token.ts'
import type { ProjectScope } from './project-scope.ts'

/** The user or token behind a request. */
export interface Identity {
  /** For people to read. */
  readonly name: string
  readonly role: Role
  /** The credential of the request; limits count by it. Empty: no credential. */
  readonly key: string
  /** Browsers send the credential by themselves with requests of any page: the origin of the page is checked, too. */
  readonly ambient?: boolean
  /** The organization that it belongs to, or acts in; absent: `default`. */
  readonly organization?: string
  /** Whether it is of the deployment, not of an organization: it may act in each of them. */
  readonly isOfDeployment?: boolean
  /** The only projects that it is for. */
  readonly projects?: ProjectScope
  /** What it may make and start in each lab; absent: no limits. */
  readonly limits?: TokenLimits
  /** When the credential expires, ms since 1970. */
  readonly expiresAt?: number
  /** The session of the request. */
  readonly session?: Session
}

/** The state after a log-in. */
export interface Session {
  readonly id: string
  readonly name: string
  readonly role: Role
  /** The credential of the log-in; see `Identity.key`. */
  readonly key: string
  /** See `Identity.organization`. */
  readonly organization?: string
  /** See `Identity.projects`. */
  readonly projects?: ProjectScope
  /** See `Identity.limits`. */
  readonly limits?: TokenLimits
  /** ms since 1970. */
  readonly begunAt: number
  /** ms since 1970. */
  readonly endsAt: number
}

/** An identity, at once where it is known. */
export type Identified = Identity | undefined | Promise<Identity | undefined>

/** Identifies a request; undefined: unknown to this verifier. `token`: the Bearer token, or the password of HTTP Basic. */
export type Verifier = (request: Request, token: string | undefined) => Identified

/** The first verifier that knows the request decides. */
export const anyOf = (...verifiers: readonly Verifier[]): Verifier => {
  const [only] = verifiers
  if (only !== undefined && verifiers.length === 1) return only
  return async (request, token) => {
    for (const verifier of verifiers) {
      const identity = await verifier(request, token)
      if (identity !== undefined) return identity
    }
    return undefined
  }
}

const ranks: Readonly<Record<Role, number>> = { read: 0, operate: 1, admin: 2 }

/** The role with more rights. */
export const greater = (a: Role, b: Role): Role => (ranks[a] < ranks[b] ? b : a)

/**
 * Whether the client owns the labs that it sees: it may see all of them, and change them. Others, such as a class with a token for some projects, get no
 * checks of their tasks.
 */
export const ownsLabs = ({ role, projects }: Pick<Identity, 'role' | 'projects'>): boolean =>
  role !== 'read' && projects === undefined

/** 403 unless the identity has that role; 401 without an identity. */
export function requireRole(identity: Identity | undefined, role: Role): asserts identity is Identity {
  if (identity === undefined) throw unauthorized()
  if (ranks[identity.role] >= ranks[role]) return
  throw forbidden(
    `Authorization: this request needs the role ${role}; "${identity.name}" has the role ${identity.role}`,
  )
}

/** 403 unless the identity is that of the administrator of the deployment. */
export function requireDeployment({ name, isOfDeployment }: Identity): void {
  if (isOfDeployment !== true)
    throw forbidden(
      `Authorization: this request needs the credentials in the configuration; "${name}" is a token or a user`,
    )
}

/** `asksBasic`: a browser then prompts for a user and a password, and sends them with every later request. */
export const unauthorized = ({ asksBasic } = { asksBasic: true }) =>
  new ApiError(401, 'Authorization: valid credentials are required: HTTP Basic or a Bearer token', {
    headers: {
      'WWW-Authenticate': asksBasic ? 'Basic realm="patchbay", charset="UTF-8"' : 'Bearer realm="patchbay"',
      Connection: 'close',
    },
  })
