import { forbidden } from '../../lib/errors/api-error.ts'
import { callerOf } from '../../model/access/caller.ts'
import { type Identity, requireDeployment, requireRole } from '../../model/access/identity.ts'
import { roleNeeded, spellingsOf } from '../access/role-needed.ts'
import { requireDeliberate } from '../access/source.ts'
import { roleOf } from '../http/endpoint.ts'
import { identityOf, matchOf, type RequestContext, type RequestStep, targetOf } from '../request-context.ts'

/** 403 for a client with limits that would make or start nodes without their lab, which counts them, or change what a lab needs. */
function requireCounted({ name }: Identity, context: RequestContext): void {
  const { app, request } = context
  const { endpoint } = matchOf(context)
  const there = endpoint.forwardPath?.(targetOf(context))
  const endpoints =
    there === undefined
      ? [endpoint]
      : spellingsOf(there).map((path) => app.routes.match(request.method, path)?.endpoint)
  // A kind of the compute may be unknown here.
  if (endpoints.every((known) => (known === undefined ? request.method === 'GET' : known.isUncounted !== true))) return
  throw forbidden(
    `Authorization: "${name}" has limits, so it works in labs alone: use /v2/projects/{project_id} and what is below it`,
  )
}

/** 403 unless the identity has the role that the endpoint needs, and the client sends the request on purpose. */
export const authorize: RequestStep = (context, next) => {
  const { app, request, peer, id } = context
  const { endpoint } = matchOf(context)
  const identity = identityOf(context)
  const role =
    endpoint.forwardPath === undefined
      ? roleOf(endpoint)
      : roleNeeded(app.routes, endpoint, request.method, targetOf(context))
  requireRole(identity, role)
  if (identity.limits !== undefined) requireCounted(identity, context)
  if (endpoint.ofDeployment === true) requireDeployment(identity)
  requireDeliberate(request, identity, { endpoint, role, isSecure: peer.isSecure })
  context.caller = callerOf(identity, request, id)
  return next()
}
