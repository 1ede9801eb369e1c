import { ApiError, forbidden } from '../errors/api-error.ts'
import type { Role } from '../model/access-token.ts'
import type { Session } from './sessions.ts'

/** Who asks. */
export interface Identity {
  /** As a person knows it. */
  readonly name: string
  readonly role: Role
  /** The credential that it came with, for what is counted by credential; empty where there is none. */
  readonly key: string
  /** The credential is one that browsers send by themselves, whatever page asks: pages are still judged by their origin. */
  readonly ambient?: boolean
  /** When the credential expires, ms since 1970. */
  readonly expiresAt?: number
  /** The session by which it came. */
  readonly session?: Session
}

/**
 * Tells whose request this is; undefined: not known here. `token` is what came as Bearer token or as password of HTTP Basic.
 */
export type Verifier = (request: Request, token: string | undefined) => Promise<Identity | undefined>

/** The first of them that knows the request. */
export const anyOf =
  (...verifiers: readonly Verifier[]): Verifier =>
  async (request, token) => {
    for (const verifier of verifiers) {
      const identity = await verifier(request, token)
      if (identity !== undefined) return identity
    }
    return undefined
  }

const ranks: Readonly<Record<Role, number>> = { read: 0, operate: 1, admin: 2 }

/** The one that may do more. */
export const greater = (a: Role, b: Role): Role => (ranks[a] < ranks[b] ? b : a)

/** Throws unless they may do what needs that role: 403. Without an identity it is 401. */
export function requireRole(identity: Identity | undefined, role: Role): asserts identity is Identity {
  if (identity === undefined) throw unauthorized()
  if (ranks[identity.role] >= ranks[role]) return
  throw forbidden(`Authorization: this needs the role ${role}, and "${identity.name}" has the role ${identity.role}`)
}

/** `asksBasic`: a browser asks for a user and a password then, and sends them by itself from then on. */
export const unauthorized = ({ asksBasic } = { asksBasic: true }) =>
  new ApiError(401, 'Authorization: valid credentials are needed, HTTP Basic or a Bearer token', {
    headers: {
      'WWW-Authenticate': asksBasic ? 'Basic realm="patchbay", charset="UTF-8"' : 'Bearer realm="patchbay"',
      Connection: 'close',
    },
  })
