import { thenSync } from '../../lib/async/then-sync.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import { isUpgrade } from '../../lib/http/socket.ts'
import type { Identity } from '../../model/access/identity.ts'
import type { Unfinished } from '../http/dialect.ts'
import type { Endpoint } from '../http/endpoint.ts'
import { type RequestContext, type RequestStep, type StepResult, targetOf } from '../request-context.ts'

/** Of a compute that joins: the endpoint checks its token. */
const joiningCompute: Identity = { name: 'a compute that joins', role: 'read', key: '' }

/** Finds out who sends the request. 401, 403, 429. A preflight has no identity. */
export const authenticate: RequestStep = (context, next) => {
  const webSocket = webSocketOf(context)
  if (webSocket?.joins === true) {
    context.identity ??= joiningCompute
    return admitJoiningCompute(context, next)
  }
  if (context.identity !== undefined) return next()
  const { app, request, path, peer } = context
  const { admission } = app
  const identified = app.isPublic(request.method, path)
    ? admission.admitAnybody(request, peer)
    : admission.admit(request, peer, webSocket !== undefined, isStream(context))
  return thenSync<Identity | undefined, Unfinished>(identified, (identity) => {
    if (identity !== undefined) context.identity = identity
    return next()
  })
}

/** The endpoint that a request opens as a websocket. */
function webSocketOf(context: RequestContext): Endpoint | undefined {
  const { app, method, request } = context
  if (method !== 'GET' || !isUpgrade(request)) return undefined
  const endpoint = app.routes.match('GET', targetOf(context))?.endpoint
  return endpoint?.websocket === true ? endpoint : undefined
}

/** Whether clients of another program send no credentials for it. */
const isStream = (context: RequestContext): boolean =>
  context.method === 'GET' && context.dialect?.isStream(targetOf(context)) === true

/** A 401 of the endpoint is a wrong log-in. */
async function admitJoiningCompute(
  { app, request, peer }: RequestContext,
  next: () => StepResult,
): Promise<Unfinished> {
  let refusal: unknown
  const answer = await app.admission.checkJoinToken(request, peer, async () => {
    try {
      return await next()
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 401) throw error
      refusal = error
      return undefined
    }
  })
  if (answer === undefined) throw refusal
  return answer
}
