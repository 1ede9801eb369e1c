import { withComputeContext } from '../../fleet/members/member-errors.ts'
import type { Member } from '../../fleet/members/members.ts'
import { setNewest } from '../../lib/async/newest.ts'
import { isPlainTarget } from '../../lib/http/plain-target.ts'
import { callerOf } from '../../model/access/caller.ts'
import type { Identity } from '../../model/access/identity.ts'
import { isUuid } from '../../model/schema/fields.ts'
import type { AppOptions } from '../app-options.ts'
import type { AppParts } from '../app-parts.ts'
import { roleOf } from '../http/endpoint.ts'
import { unalias } from '../http/path.ts'
import type { RouteMatch, Routes } from '../http/router.ts'
import { hasValidParams } from '../path-params.ts'
import type { RequestContext, RequestStep } from '../request-context.ts'

/** A compute to which requests are forwarded at once. */
export type DirectCompute = Pick<Member, 'id' | 'name' | 'forward'>

/**
 * The compute to which a GET about a project is forwarded, where that is certain at once, and the identity may see the project. Undefined: the
 * request goes through all steps.
 */
export type DirectRoute = (projectId: string, identity: Identity) => DirectCompute | undefined

/** A GET about one project, which a gateway forwards as it is. */
interface DirectRead {
  readonly match: RouteMatch
  /** In our words for kinds. */
  readonly path: string
  /** Lower-case. */
  readonly projectId: string
  /** Whether the endpoint answers with JSON. */
  readonly isJson: boolean
}

/** Most paths that are remembered, and the length of the longest. */
const maxPaths = 2000
const maxPathLength = 300

/**
 * Two steps of a gateway for a GET about one project that needs no more than the role `read`, of a client whose token is known: nothing but
 * its path is looked at. `find` stands before `authenticate`, `forward` after `limitRate`. An error of the compute is not the answer: the
 * request goes on through the other steps, which may ask another compute.
 */
export function directReads(route: DirectRoute): { readonly find: RequestStep; readonly forward: RequestStep } {
  const known = new Map<string, DirectRead | 'none'>()
  const found = new WeakMap<
    RequestContext,
    DirectRead & { readonly compute: DirectCompute; readonly identity: Identity }
  >()

  const readOf = (app: AppParts, path: string): DirectRead | undefined => {
    let read = known.get(path)
    if (read === undefined) {
      read = findRead(app, path) ?? 'none'
      if (path.length <= maxPathLength) setNewest(known, path, read, maxPaths)
    }
    return read === 'none' ? undefined : read
  }

  return {
    find(context, next) {
      const { app, method, path, request } = context
      // Clients in another dialect take all steps.
      if (method !== 'GET' || app.options.dialect !== undefined) return next()
      const identity = context.identity ?? app.admission.atHand(request)
      if (identity === undefined || identity.ambient === true) return next()
      // Only paths of clients with a valid token are remembered.
      const read = readOf(app, path)
      const compute = read && route(read.projectId, identity)
      if (read === undefined || compute === undefined) return next()
      context.identity = identity
      found.set(context, { ...read, compute, identity })
      return next()
    },
    async forward(context, next) {
      const direct = found.get(context)
      if (direct === undefined) return next()
      const { match, path, isJson, compute, identity } = direct
      const { request, id, answerHeaders, notes } = context
      context.match = match
      answerHeaders['X-ROUTE'] = match.endpoint.path
      answerHeaders['X-Patchbay-Compute'] = compute.id
      context.caller = callerOf(identity, request, id)
      const answer = await compute
        .forward({ request, path, caller: context.caller, isJson })
        .catch((error: unknown) => Promise.reject(withComputeContext(error, compute)))
      if (answer.status < 400) return answer
      notes.failedAnswer = { compute: compute.id, answer }
      return next()
    },
  }
}

/**
 * The read that a GET of a path is; undefined for websockets and for endpoints that need more than the role `read` or are forwarded in another
 * way.
 */
export function findRead(
  { routes, options }: { readonly routes: Routes; readonly options: Pick<AppOptions, 'aliases'> },
  pathname: string,
): DirectRead | undefined {
  const path = unalias(pathname, options.aliases)
  const match = routes.match('GET', path)
  if (match === undefined || !hasValidParams(match) || !isPlainTarget(path)) return undefined
  const { endpoint, params } = match
  const projectId = params.project_id?.toLowerCase()
  const isPlain = endpoint.owner === 'project' && endpoint.method === 'GET' && roleOf(endpoint) === 'read'
  const isOther = endpoint.websocket === true || endpoint.forwardPath !== undefined || endpoint.public === true
  if (!isPlain || isOther || projectId === undefined || !isUuid(projectId)) return undefined
  return { match, path, projectId, isJson: endpoint.replies[200]?.schema !== undefined }
}
