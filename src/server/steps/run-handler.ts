import type { TObject } from '@sinclair/typebox'
import { feedsOf } from '../../fleet/events/fleet-feed.ts'
import type { GatewayAgent } from '../../fleet/gateway/gateway-agent.ts'
import type { RequestingCaller } from '../../fleet/members/requesting-caller.ts'
import type { LocalHostAgent } from '../../host-agent.ts'
import { readAnyJson, readJson } from '../../lib/http/body.ts'
import type { Upgrade } from '../../lib/http/socket.ts'
import type { Caller } from '../../model/access/caller.ts'
import type { Identity } from '../../model/access/identity.ts'
import { withReadOnly } from '../../model/validation/read-only-members.ts'
import { validate } from '../../model/validation/validate.ts'
import { ProjectAccess } from '../access/project-access.ts'
import { finish } from '../finish.ts'
import type { Context, Endpoint } from '../http/endpoint.ts'
import { withFormFile } from '../http/form-file.ts'
import { queryOf } from '../http/path.ts'
import { validParams } from '../path-params.ts'
import { identityOf, matchOf, type RequestContext, type RequestStep, targetOf } from '../request-context.ts'

/** Validates the input of the endpoint, and runs its handler. The last step. */
export const runHandler: RequestStep = async (context) => {
  const { app, caller } = context
  const { runAs } = app.options.runtime
  const run = async () => {
    const { endpoint, params } = matchOf(context)
    const { request } = context
    const handlerContext = handlerContextOf(context)
    const input = {
      params: validParams(endpoint, params),
      query: endpoint.query === undefined ? {} : validate(endpoint.query, queryOf(request.url), 'query'),
    }
    const { current } = endpoint
    const readCurrent = current && (() => current(input, handlerContext))
    const body = await bodyOf(endpoint, request, app.options.jsonBytes, readCurrent)
    const sent = endpoint.bodyKind === 'raw' ? await withFormFile(request) : request
    return endpoint.handle({ ...input, body, path: targetOf(context), request: sent }, handlerContext)
  }
  return caller === undefined || runAs === undefined ? run() : runAs(caller, run)
}

async function bodyOf(
  endpoint: Endpoint,
  request: Request,
  limit: number,
  readCurrent: (() => Promise<unknown>) | undefined,
): Promise<unknown> {
  const { body, viewSchema } = endpoint
  if (body !== undefined && viewSchema !== undefined) {
    const given = await readJson(request, limit)
    return withReadOnly(body as TObject, viewSchema).read(given, readCurrent)
  }
  if (endpoint.body !== undefined) return validate(endpoint.body, await readJson(request, limit))
  if (endpoint.bodyKind === 'ignored') await readAnyJson(request, limit)
  return undefined
}

function handlerContextOf(context: RequestContext): Context<LocalHostAgent> {
  const { app, peer, dialect, upgrade } = context
  const identity: Identity = identityOf(context)
  const { services } = app.options
  const agent = agentOf(context)
  const { caller, noteCompute } = requestingCallerOf(context)
  const hasNoLocal = app.isGateway && services?.fleet?.hasLocal === false
  const dispatchInternally = (request: Request, path: string, over?: Upgrade) =>
    redispatch(context, request, path, over)
  return {
    ...app.shared,
    identity,
    caller,
    noteCompute,
    peer,
    upgrade,
    dispatchInternally,
    // The process that checks projects knows the names of labs, and filters the events of feeds by them.
    projects: context.projects ?? new ProjectAccess({ name: identity.name }, app.shared.catalog?.registry),
    dispatchToSelf: hasNoLocal ? dispatchInternally : undefined,
    askAsClient: (request) => app.answerAsClient(request, { peer, identity }),
    report: (error) => app.options.runtime.report(error, context.id),
    acceptsEvent: (action) => dialect?.hears(action) ?? true,
    conventions: dialect?.conventions,
    feeds: services?.feeds ?? feedsOf(agent.events, app.serviceEvents),
    // The type of an endpoint says what its handler needs: a `FleetAgent`, which both are, or a `LocalHostAgent`. A gateway has forwarded
    // requests for the latter, except for feeds, which do not use the agent.
    agent: agent as LocalHostAgent,
  }
}

/** Answers a request at another path of this service, on behalf of the same caller; the headers of its answer are those of the outer one, too. */
async function redispatch(
  context: RequestContext,
  request: Request,
  path: string,
  over = context.upgrade,
): Promise<Response> {
  const { app, id, startedAt, answerHeaders, peer, notes, identity, caller } = context
  const inner: RequestContext = {
    app,
    id,
    startedAt,
    answerHeaders,
    peer,
    notes,
    request,
    path,
    dialect: undefined,
    caller,
    ...(identity !== undefined && { identity }),
    method: request.method,
    // A runtime opens the websocket of the request that the client has sent.
    upgrade: (_, open) => over(context.request, open),
  }
  const answer = await app.answerAdmitted(inner)
  return inner.answeredElsewhere === true ? (answer as Response) : finish(answer, answerHeaders, app.options.runtime)
}

/** The agent of the service; at a gateway it asks computes on behalf of the caller. */
export function agentOf(context: RequestContext): LocalHostAgent | GatewayAgent {
  const { agent } = context.app.options
  context.agent ??= typeof agent === 'function' ? agent(requestingCallerOf(context)) : agent
  return context.agent
}

/** The caller of what the service asks of other computes by itself. */
const serviceCaller: Caller = { isDirect: false, mayExecute: false }

function requestingCallerOf(context: RequestContext): RequestingCaller {
  if (context.requestingCaller !== undefined) return context.requestingCaller
  const { answerHeaders, caller = serviceCaller, notes } = context
  const absent = new Set<string>()
  context.requestingCaller = {
    caller,
    notes,
    // Also in the answer with an error, which may be one because of them.
    noteUnreachable(name) {
      absent.add(name)
      answerHeaders['X-Patchbay-Unreachable'] = headerWords(absent)
    },
    noteCompute(computeId) {
      answerHeaders['X-Patchbay-Compute'] = computeId
    },
  }
  return context.requestingCaller
}

/** Most characters of names in a header: clients refuse answers with more than 16 KiB of headers, and a fleet has a thousand computes. */
const maxNamesLength = 4096

/** The names that fit, then `+` and the number of the others. */
function headerWords(names: ReadonlySet<string>): string {
  const words = [...names].map(headerWord)
  let length = 0
  const end = words.findIndex((word) => {
    length += word.length + 2
    return length > maxNamesLength
  })
  return end < 0 ? words.join(', ') : [...words.slice(0, end), `+${words.length - end}`].join(', ')
}

/** A name as it can stand in a list in a header. */
const headerWord = (name: string): string => name.replace(/[^!#-+\--~]+/g, encodeURIComponent)
