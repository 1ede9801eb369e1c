import { newerPaths } from './endpoints/compute/newer-paths.ts'
import { endpoints } from './endpoints/endpoints.ts'
import { openapi } from './endpoints/openapi/openapi.ts'
import type { RequestNotes } from './fleet/members/requesting-caller.ts'
import { codeOfStatus, errorHeader } from './lib/errors/error-codes.ts'
import type { RelayedAnswer } from './lib/http/relayed-answer.ts'
import type { Upgrade } from './lib/http/socket.ts'
import { callerThroughTunnel, requestIdOf } from './model/access/caller.ts'
import type { Identity } from './model/access/identity.ts'
import { insidePeer, type Peer } from './server/access/peer.ts'
import type { AppOptions } from './server/app-options.ts'
import { appParts } from './server/app-parts.ts'
import { tooManyLogins } from './server/auth/login-limit.ts'
import { finish, finishRelayed, serviceHeaders } from './server/finish.ts'
import { jsonHeaders } from './server/http/json-headers.ts'
import { pathOf } from './server/http/path.ts'
import { compose, type RequestContext, type RequestStep } from './server/request-context.ts'
import { allowOrigin } from './server/steps/allow-origin.ts'
import { answerErrors } from './server/steps/answer-errors.ts'
import { authenticate } from './server/steps/authenticate.ts'
import { authorize } from './server/steps/authorize.ts'
import { checkProjects } from './server/steps/check-projects.ts'
import { findEndpoint } from './server/steps/find-endpoint.ts'
import { finishResponse } from './server/steps/finish-response.ts'
import { forwardToCompute } from './server/steps/forward-to-compute.ts'
import { limitRate } from './server/steps/limit-rate.ts'
import { recordRequest } from './server/steps/record-request.ts'
import { runHandler } from './server/steps/run-handler.ts'
import { translate } from './server/steps/translate.ts'

/** What a request from outside passes first: the steps of `AppSteps.admit`. */
const admitSteps: readonly RequestStep[] = [
  recordRequest,
  finishResponse,
  answerErrors,
  authenticate,
  allowOrigin,
  limitRate,
  findEndpoint,
  authorize,
]

/** What every request passes then: the steps of `AppSteps.handle`. */
export const handleSteps: readonly RequestStep[] = [checkProjects, translate, forwardToCompute, runHandler]

export interface App {
  /**
   * Answers a request from outside. `admitted`: the identity of the client, when another process of this service has authenticated the
   * request. `notes`: where steps and the agent note what they know of it. Never rejects.
   */
  fetch(request: Request, admitted?: Identity, notes?: RequestNotes): Promise<Response>
  /**
   * Refuses a request by its head alone when too many log-ins of its sender were wrong, so that a runtime need not make a `Request`
   * of it first. Undefined: the request goes to `fetch`.
   */
  refuseTooManyLogins(head: {
    readonly method: string
    readonly authorization: string
    readonly peer: Peer
  }): LoginRefusal | undefined
  /** The headers of an answer that the runtime gives to what never becomes a request of the app. */
  serviceHeaders(): Record<string, string>
  /**
   * Answers a request that the service sends to itself: credentials and origin are not looked at again, and its caller is
   * that of the request which it is a part of. Never for what comes from outside. Never rejects.
   */
  answerOwnRequest(request: Request): Promise<Response>
  /**
   * Answers a request that came through the tunnel of the gateway that this service has joined, which has admitted its sender. `upgrade`
   * makes websockets of the tunnel. Never rejects.
   */
  answerFromTunnel(request: Request, upgrade: Upgrade): Promise<Response | RelayedAnswer>
}

/** The answer to a client whose log-ins were wrong too often. */
export interface LoginRefusal {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** Who asks where the service asks itself, and through a tunnel. */
const serviceIdentity: Identity = { name: 'the service', role: 'operate', key: '' }

/** The service as one function over one host agent. */
export function createApp(options: AppOptions): App {
  const { version, runtime, steps = {} } = options
  const { admit = admitSteps, handle = handleSteps } = steps
  const parts = appParts(
    options,
    { endpoints, fallback: newerPaths, openapi: reference },
    { answerAdmitted: compose([findEndpoint, ...handle]), answerAsClient },
  )
  const { admission, requests, nextId, clock } = parts
  const [fromOutside, fromTunnel, fromService] = [
    compose([...admit, ...handle]),
    compose([recordRequest, answerErrors, findEndpoint, ...handle]),
    compose([answerErrors, findEndpoint, ...handle]),
  ]
  /** The caller of a request that came through a tunnel or of the service itself is no client. */
  function answerAsClient(request: Request, { peer, identity }: Pick<RequestContext, 'peer' | 'identity'>) {
    if (options.answerAsClient !== undefined && identity !== undefined) return options.answerAsClient(request, identity)
    const id = nextId()
    const more = { answerHeaders: serviceHeaders(version, id), peer, ...(identity !== undefined && { identity }) }
    return fromOutside(contextOf(request, id, more)) as Promise<Response>
  }
  /** The context of a request whose sender was admitted; `more`: what differs for one from outside. */
  const contextOf = (request: Request, id: string, more: Partial<RequestContext> = {}): RequestContext => ({
    app: parts,
    id,
    method: request.method,
    path: pathOf(request.url),
    startedAt: clock(),
    answerHeaders: {},
    peer: insidePeer,
    notes: {},
    dialect: undefined,
    request,
    upgrade: runtime.upgrade,
    ...more,
  })
  return {
    async fetch(request, admitted, notes = {}) {
      const id = requestIdOf(request) ?? nextId()
      const context = contextOf(request, id, {
        answerHeaders: serviceHeaders(version, id),
        peer: parts.peerOf(request),
        notes,
        dialect: options.dialect?.speaks(request) === true ? options.dialect : undefined,
        ...(admitted !== undefined && { identity: admitted }),
      })
      return fromOutside(context) as Promise<Response>
    },

    refuseTooManyLogins({ method, authorization, peer }) {
      const seconds = admission.secondsToWait(authorization, peer)
      if (seconds === 0) return undefined
      requests.count('', method, 429, 0)
      return {
        status: 429,
        headers: {
          ...serviceHeaders(version, nextId()),
          ...jsonHeaders,
          'Retry-After': String(seconds),
          [errorHeader]: codeOfStatus(429),
        },
        body: `${JSON.stringify({ message: tooManyLogins(peer, seconds), status: 429 })}\n`,
      }
    },

    serviceHeaders: () => serviceHeaders(version, nextId()),

    async answerOwnRequest(request) {
      const context = contextOf(request, nextId(), { identity: serviceIdentity })
      return finish(await fromService(context), context.answerHeaders, runtime)
    },

    async answerFromTunnel(request, upgrade) {
      const id = requestIdOf(request) ?? nextId()
      const caller = callerThroughTunnel(request, id)
      const context = contextOf(request, id, { identity: serviceIdentity, caller, upgrade })
      return finishRelayed(await fromTunnel(context), context.answerHeaders, runtime)
    },
  }
}

/** The reference, by its version: all apps of a process have the same. */
const references = new Map<string, string>()

function reference(version: string): string {
  const text = references.get(version) ?? JSON.stringify(openapi(endpoints, version))
  references.set(version, text)
  return text
}
