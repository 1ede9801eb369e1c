import { errorHeader } from '../../lib/errors/error-codes.ts'
import { callerOf } from '../../model/access/caller.ts'
import type { Trace } from '../app-options.ts'
import { isUpgradeToken } from '../finish.ts'
import type { Unfinished } from '../http/dialect.ts'
import type { RequestContext, RequestStep } from '../request-context.ts'

/** Counts the request, and writes its line of the access log. */
export const recordRequest: RequestStep = async (context, next) => {
  const { app, method, startedAt } = context
  app.requests.begin()
  const answer = await next()
  if (context.answeredElsewhere === true) {
    app.requests.cancel()
    return answer
  }
  const ms = app.clock() - startedAt
  const status = statusOf(context, answer)
  const credential = credentialOf(context)
  app.requests.end(context.match?.endpoint.path ?? '', method, status, ms / 1000, credential)
  app.options.trace?.(traceOf(context, answer, { status, ms, credential }))
  return answer
}

/** Recorded as the client sees it: the token of a websocket has the status of an ordinary answer. */
const statusOf = ({ match }: RequestContext, answer: Unfinished): number =>
  match?.endpoint.websocket === true && answer instanceof Response && isUpgradeToken(answer) ? 101 : answer.status

/** The names of credentials of another organization are not for the metrics of this one. */
function credentialOf({ app, identity }: RequestContext): string | undefined {
  const isOwn = identity?.organization === app.options.organization
  return identity === undefined || identity.key === '' || !isOwn ? undefined : identity.name
}

function traceOf(
  { id, method, path, match, identity, caller, request, answerHeaders }: RequestContext,
  answer: Unfinished,
  { status, ms, credential }: { status: number; ms: number; credential: string | undefined },
): Trace {
  const entry: { -readonly [Name in keyof Trace]: Trace[Name] } = {
    id,
    method,
    path,
    route: match?.endpoint.path ?? '',
    status,
    ms,
  }
  // Only for errors: a runtime may make the headers of a Response when they are read first.
  const error = status < 400 ? undefined : (answerHeaders[errorHeader] ?? errorIn(answer))
  if (error !== undefined) entry.error = error
  if (credential !== undefined) entry.credential = credential
  // A request that was refused before it had a caller is logged with its sender, too.
  const by = (caller ?? (identity && callerOf(identity, request, id)))?.name
  if (by !== undefined) entry.by = by
  return entry
}

const errorIn = (answer: Unfinished): string | undefined =>
  answer instanceof Response ? (answer.headers.get(errorHeader) ?? undefined) : undefined
