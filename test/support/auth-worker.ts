import { anyOf } from '../../src/model/access/identity.ts'
import { cloudflareAccess } from '../../src/server/auth/cloudflare-access.ts'
import { RateLimit } from '../../src/server/auth/rate-limit.ts'
import { Tokens } from '../../src/server/auth/tokens.ts'
import { authApp, MemoryTokens } from './auth-app.ts'

const tokens = new Tokens({ store: new MemoryTokens(), cacheMs: 5000 })
const access = cloudflareAccess({
  ...{ teamDomain: 'team.cloudflareaccess.com', audience: 'lab', role: 'operate', admins: ['anna@lab.example'] },
})

const app = authApp({
  access: { token: 't0ken' },
  verifier: anyOf(async (_, token) => (token === undefined ? undefined : tokens.identify(token)), access),
  tokens,
  rateLimit: new RateLimit(() => ({ perSecond: 100, burst: 300 })),
})

/** The app with all kinds of credentials, in workerd. */
export default { fetch: (request: Request): Promise<Response> => app.fetch(request) }
