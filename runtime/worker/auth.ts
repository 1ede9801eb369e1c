import { cloudflareAccess } from '../../src/auth/cloudflare-access.ts'
import { anyOf, type Verifier } from '../../src/auth/identity.ts'
import { RateLimit } from '../../src/auth/rate-limit.ts'
import type { TokenStore } from '../../src/auth/token-store.ts'
import { Tokens } from '../../src/auth/tokens.ts'
import type { Access } from '../../src/http/access/access.ts'
import { type Env, listOf, rateOf } from './env.ts'

/** Who comes in with HTTP Basic and the admin token as password, for clients that know nothing else. */
const adminUser = 'admin'

/** Requests come here only by names that were given to the Worker. */
class AnyName extends Set<string> {
  override has(): boolean {
    return true
  }
}

export interface Auth {
  readonly access: () => Access
  readonly tokens: Tokens
  readonly rateLimit: RateLimit
}

/** Who may come in, and how often. `cacheMs`: see `Tokens`. */
export function openAuth(env: Env, store: TokenStore, cacheMs = 0): Auth {
  const tokens = new Tokens({ store, cacheMs })
  const verifiers: Verifier[] = [async (_, token) => (token === undefined ? undefined : tokens.identify(token))]
  const { ADMIN_TOKEN = '', ACCESS_TEAM_DOMAIN: teamDomain = '', ACCESS_AUDIENCE: audience = '' } = env
  if (teamDomain !== '') {
    const admins = listOf(env.ACCESS_ADMINS)
    verifiers.push(cloudflareAccess({ teamDomain, audience, role: 'operate', admins }))
  }
  const access: Access = {
    hosts: new AnyName(),
    allowedOrigins: new Set(listOf(env.ALLOWED_ORIGINS).map((origin) => origin.replace(/\/$/, ''))),
    user: adminUser,
    password: ADMIN_TOKEN,
    token: ADMIN_TOKEN,
    verifier: anyOf(...verifiers),
  }
  const perSecond = rateOf(env)
  return { access: () => access, tokens, rateLimit: new RateLimit(() => ({ perSecond, burst: 3 * perSecond })) }
}
