import { anyOf, type Identified, type Identity, type Verifier } from '../../../src/model/access/identity.ts'
import type { Access } from '../../../src/server/access/access.ts'
import { cloudflareAccess } from '../../../src/server/auth/cloudflare-access.ts'
import { RateLimit } from '../../../src/server/auth/rate-limit.ts'
import { signingKey } from '../../../src/server/auth/signed-text.ts'
import { type Env, listSetting, organizationsOf, rateOf } from './env.ts'

/** The user of HTTP Basic, with the admin token as password: for clients without Bearer tokens. */
const adminUser = 'admin'

/** Requests arrive only for host names that the Worker is configured for. */
class AnyName extends Set<string> {
  override has(): boolean {
    return true
  }
}

export interface WorkerAuth {
  readonly access: () => Access
  readonly rateLimit: RateLimit
}

/** The key that signs tokens and tickets, in the object and in isolates. */
export const tokenKey = (env: Env): (() => Promise<CryptoKey>) => keyFor(env, 'tokens')

/** The key that signs sessions. */
export const sessionKey = (env: Env): (() => Promise<CryptoKey>) => keyFor(env, 'sessions')

/** The key that signs the numbers of confirmations. */
export const confirmationKey = (env: Env): (() => Promise<CryptoKey>) => keyFor(env, 'confirmations')

function keyFor({ FLEET_KEY = '' }: Env, use: string): () => Promise<CryptoKey> {
  let key: CryptoKey | undefined
  // Requests share the key, not its promise: a Worker must not wait for a promise of another request.
  return async () => {
    key ??= await signingKey(FLEET_KEY, use)
    return key
  }
}

/** Authentication and rate limit of the Worker. `identify` checks tokens; `atHand`: see `Access`. */
export function openAuth(
  env: Env,
  identify: (token: string) => Identified,
  atHand?: (token: string) => Identity | undefined,
): WorkerAuth {
  const verifiers: Verifier[] = [(_, token) => (token === undefined ? undefined : identify(token))]
  const { ADMIN_TOKEN = '', ACCESS_TEAM_DOMAIN: teamDomain = '', ACCESS_AUDIENCE: audience = '' } = env
  if (teamDomain !== '') {
    const admins = listSetting(env.ACCESS_ADMINS)
    verifiers.push(
      cloudflareAccess({ teamDomain, audience, role: 'operate', admins, organizations: organizationsOf(env) }),
    )
  }
  const access: Access = {
    hosts: new AnyName(),
    allowedOrigins: new Set(listSetting(env.ALLOWED_ORIGINS).map((origin) => origin.replace(/\/$/, ''))),
    user: adminUser,
    password: ADMIN_TOKEN,
    token: ADMIN_TOKEN,
    verifier: anyOf(...verifiers),
    ...(atHand && { atHand }),
  }
  const perSecond = rateOf(env)
  return { access: () => access, rateLimit: new RateLimit(() => ({ perSecond, burst: 3 * perSecond })) }
}
