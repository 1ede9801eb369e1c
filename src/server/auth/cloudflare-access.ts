import { createRemoteJWKSet, customFetch, errors, type JWTPayload, jwtVerify } from 'jose'
import { retryLater } from '../../lib/errors/api-error.ts'
import type { Role } from '../../model/access/access-token.ts'
import type { Identity, Verifier } from '../../model/access/identity.ts'

/** The header with the signed identity from Cloudflare Access. Cloudflare removes this header from the requests of clients. */
const header = 'cf-access-jwt-assertion'

export interface CloudflareAccessOptions {
  /** Such as `team.cloudflareaccess.com`. */
  readonly teamDomain: string
  /** The Application Audience (AUD) tag. */
  readonly audience: string
  /** The role of the users that are not in `admins`. */
  readonly role: Role
  /** E-mail addresses. */
  readonly admins: readonly string[]
  /** The organizations of users, by the domain of their e-mail address; others belong to `default`. */
  readonly organizations?: Readonly<Record<string, string>>
  readonly fetch?: (url: string, init: RequestInit) => Promise<Response>
}

/** Identifies users by the signed token (JWT) that Cloudflare Access adds to their requests. */
export function cloudflareAccess(options: CloudflareAccessOptions): Verifier {
  const issuer = `https://${options.teamDomain}`
  const keys = createRemoteJWKSet(new URL(`${issuer}/cdn-cgi/access/certs`), {
    ...(options.fetch !== undefined && { [customFetch]: options.fetch }),
  })
  const admins = new Set(options.admins.map((email) => email.toLowerCase()))
  const organizations = new Map(Object.entries(options.organizations ?? {}).map(([it, id]) => [it.toLowerCase(), id]))
  return async (request) => {
    const statement = request.headers.get(header)
    if (statement === null) return undefined
    try {
      const { payload } = await jwtVerify(statement, keys, {
        issuer,
        audience: options.audience,
        algorithms: ['RS256'],
        requiredClaims: ['exp'],
      })
      return identityOf(payload, options.role, { admins, organizations })
    } catch (error) {
      if (isRefusal(error)) return undefined
      throw retryLater(503, `Could not fetch the keys of ${options.teamDomain}; try again`, 5, error)
    }
  }
}

/** Whether the token is invalid; false: the service could not read the keys that verify it. */
function isRefusal(error: unknown): boolean {
  if (!(error instanceof errors.JOSEError)) return false
  return !['ERR_JOSE_GENERIC', 'ERR_JWKS_TIMEOUT', 'ERR_JWKS_INVALID'].includes(error.code)
}

/** A person has an e-mail address, a service token a common name. */
function identityOf(
  payload: JWTPayload,
  role: Role,
  { admins, organizations }: { admins: ReadonlySet<string>; organizations: ReadonlyMap<string, string> },
): Identity {
  const email = typeof payload.email === 'string' ? payload.email.toLowerCase() : ''
  const name = [email, payload.common_name, payload.sub].find((it) => typeof it === 'string' && it !== '')
  const organization = organizations.get(email.slice(email.lastIndexOf('@') + 1))
  const isAdmin = email !== '' && admins.has(email)
  return {
    name: String(name ?? 'Cloudflare Access').slice(0, 255),
    role: isAdmin ? 'admin' : role,
    key: `access:${String(name ?? '').slice(0, 255)}`,
    ambient: true,
    ...(organization !== undefined ? { organization } : isAdmin && { isOfDeployment: true }),
  }
}
