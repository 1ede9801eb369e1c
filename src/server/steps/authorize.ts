import { callerOf } from '../../model/access/caller.ts'
import { requireDeployment, requireRole } from '../../model/access/identity.ts'
import { roleNeeded } from '../access/role-needed.ts'
import { requireDeliberate } from '../access/source.ts'
import { roleOf } from '../http/endpoint.ts'
import { identityOf, matchOf, type RequestStep, targetOf } from '../request-context.ts'

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
  if (endpoint.ofDeployment === true) requireDeployment(identity)
  requireDeliberate(request, identity, { endpoint, role, isSecure: peer.isSecure })
  context.caller = callerOf(identity, request, id)
  return next()
}
