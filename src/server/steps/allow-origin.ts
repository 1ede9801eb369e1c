import { corsOrigin } from '../access/access.ts'
import { isFromOtherSite } from '../access/source.ts'
import type { RequestStep } from '../request-context.ts'

/** Lets pages of allowed origins read the answer (CORS). v1 says `*`, as its clients expect; v2 names the origin. */
export const allowOrigin: RequestStep = ({ request, path, answerHeaders: headers }, next) => {
  const origin = corsOrigin(request)
  // A link of another site: no script gets its answer, and most are refused.
  if (origin === undefined && isFromOtherSite(request)) return next()
  if (path.startsWith('/v1/')) headers['Access-Control-Allow-Origin'] = '*'
  else if (origin !== undefined) {
    headers['Access-Control-Allow-Origin'] = origin
    headers['Access-Control-Expose-Headers'] = '*'
    headers.Vary = 'Origin'
  }
  return next()
}
