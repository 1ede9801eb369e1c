import type { RequestNotes } from '../../fleet/members/requesting-caller.ts'
import { thenSync } from '../../lib/async/then-sync.ts'
import type { Identity } from '../../model/access/identity.ts'
import { isUuid } from '../../model/schema/fields.ts'
import type { Unfinished } from '../http/dialect.ts'
import type { Endpoint } from '../http/endpoint.ts'
import { identityOf, matchOf, type RequestContext, type RequestStep } from '../request-context.ts'

/** A request that was admitted, and whose endpoint is known. */
export interface AdmittedRequest {
  readonly request: Request
  readonly endpoint: Endpoint
  /** Of the path, decoded and not checked. */
  readonly params: Readonly<Record<string, string>>
  /** The project that it is about, if its id can be one. */
  readonly projectId: string | undefined
  /** The identity of the client; anonymous at an endpoint by which computes join, as its token was not checked. */
  readonly identity: Identity
  readonly notes: RequestNotes
}

/** Has another process answer requests, which also counts them: `route` gives its answer. Undefined: the request is answered here. */
export const delegateRequest =
  (answerElsewhere: (admitted: AdmittedRequest) => Response | undefined | Promise<Response | undefined>): RequestStep =>
  (context, next) =>
    thenSync<Response | undefined, Unfinished>(answerElsewhere(admittedRequest(context)), (response) => {
      if (response === undefined) return next()
      context.answeredElsewhere = true
      return response
    })

function admittedRequest(context: RequestContext): AdmittedRequest {
  const { request, notes } = context
  const { endpoint, params } = matchOf(context)
  const id = params.project_id?.toLowerCase()
  const projectId = endpoint.owner === 'project' && id !== undefined && isUuid(id) ? id : undefined
  return { request, endpoint, params, projectId, identity: identityOf(context), notes }
}
