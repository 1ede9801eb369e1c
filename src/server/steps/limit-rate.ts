import { thenSync } from '../../lib/async/then-sync.ts'
import type { Unfinished } from '../http/dialect.ts'
import type { RequestStep } from '../request-context.ts'

/** Counts the request of an identity. 429 above a limit. */
export const limitRate: RequestStep = ({ app, identity }, next) => {
  const { rateLimit, countForOrganization } = app.options.admission
  if (identity === undefined) return next()
  rateLimit?.consume(identity.key)
  return thenSync<void, Unfinished>(countForOrganization?.(identity), next)
}
