import type { GatewayAgent } from '../fleet/gateway/gateway-agent.ts'
import type { RequestingCaller, RequestNotes } from '../fleet/members/requesting-caller.ts'
import type { LocalHostAgent } from '../host-agent.ts'
import type { Upgrade } from '../lib/http/socket.ts'
import type { Caller } from '../model/access/caller.ts'
import type { Identity } from '../model/access/identity.ts'
import type { Peer } from './access/peer.ts'
import type { ProjectAccess } from './access/project-access.ts'
import type { AppParts } from './app-parts.ts'
import type { Dialect, Unfinished } from './http/dialect.ts'
import { unalias } from './http/path.ts'
import type { RouteMatch } from './http/router.ts'

/** A request on its way through the steps of an app, and what the steps have found out. */
export interface RequestContext {
  readonly app: AppParts
  readonly id: string
  /** Of the request; a runtime may compute `request.method` anew each time that it is read. */
  readonly method: string
  /** As it was sent. */
  readonly path: string
  /** By the clock of the runtime, ms. */
  readonly startedAt: number
  /** Of the answer, beside those that it has itself: `finishResponse` adds them. */
  readonly answerHeaders: Record<string, string>
  readonly peer: Peer
  readonly notes: RequestNotes
  /** Of the client; undefined: our own words. */
  readonly dialect: Dialect | undefined
  request: Request
  upgrade: Upgrade
  /** The path in our words. Read it by `targetOf`. */
  target?: string
  /** Of the client; undefined before `authenticate`, and for a preflight. */
  identity?: Identity
  match?: RouteMatch
  /** The client, in the form in which computes get it; undefined where the service works for itself. */
  caller?: Caller | undefined
  /** The projects that the client may see; undefined: all. */
  projects?: ProjectAccess
  agent?: LocalHostAgent | GatewayAgent
  /** The caller at a gateway. Read it by `requestingCallerOf`. */
  requestingCaller?: RequestingCaller
  /** Another process gave the answer, with all its headers, and counts it. */
  answeredElsewhere?: boolean
}

/**
 * One thing that is done for every request: it answers, or calls `next` and may change what that answers. Errors are thrown; `answerErrors`
 * turns them into answers.
 */
export type RequestStep = (context: RequestContext, next: () => StepResult) => StepResult
export type StepResult = Unfinished | Promise<Unfinished>

/** The steps one after the other. The last one must answer. */
export function compose(steps: readonly RequestStep[]): (context: RequestContext) => StepResult {
  const run = (context: RequestContext, at: number): StepResult => {
    const step = steps[at]
    if (step === undefined) throw new Error('No step has answered the request')
    return step(context, () => run(context, at + 1))
  }
  return (context) => run(context, 0)
}

/** The path in our words for kinds, and in those of our interface. */
export function targetOf(context: RequestContext): string {
  const { app, path, dialect } = context
  if (context.target !== undefined) return context.target
  const ours = unalias(path, app.options.aliases)
  context.target = dialect === undefined ? ours : dialect.path(ours)
  return context.target
}

/** The endpoint of a request, and its parameters; after `findEndpoint`. */
export function matchOf({ match }: RequestContext): RouteMatch {
  if (match === undefined) throw new Error('The endpoint is not known yet')
  return match
}

/** The identity of a request whose endpoint is known: only a preflight has none. */
export function identityOf({ identity }: RequestContext): Identity {
  if (identity === undefined) throw new Error('The request was not authenticated')
  return identity
}
