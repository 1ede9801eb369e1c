import type { FeedSource } from '../fleet/events/fleet-feed.ts'
import type { GatewayAgent } from '../fleet/gateway/gateway-agent.ts'
import type { RequestingCaller } from '../fleet/members/requesting-caller.ts'
import type { LocalHostAgent } from '../host-agent.ts'
import type { ApiError } from '../lib/errors/api-error.ts'
import type { RelayedAnswer } from '../lib/http/relayed-answer.ts'
import type { Caller } from '../model/access/caller.ts'
import type { Identity } from '../model/access/identity.ts'
import type { Access } from './access/access.ts'
import type { Peer } from './access/peer.ts'
import type { LoginLimit } from './auth/login-limit.ts'
import type { RateLimit } from './auth/rate-limit.ts'
import type { Sessions } from './auth/sessions.ts'
import type { Dialect } from './http/dialect.ts'
import type { AssistantSettings, Context } from './http/endpoint.ts'
import type { RequestMetrics } from './http/request-metrics.ts'
import type { TicketOffice } from './http/tickets.ts'
import type { RequestStep } from './request-context.ts'

/** What a runtime makes an app of. */
export interface AppOptions {
  readonly version: string
  /** The organization whose app it is; absent: `default`. */
  readonly organization?: string
  /** The agent of this computer. A gateway makes an agent for each request, which asks computes on behalf of its caller. */
  readonly agent: LocalHostAgent | ((caller: RequestingCaller) => GatewayAgent)
  readonly services?: AppServices
  readonly admission: AdmissionParts
  readonly runtime: RuntimeParts
  /** Most bytes of a JSON body. */
  readonly jsonBytes: number
  /** Path words of clients -> ours, such as `{vpcs: 'pc'}`. */
  readonly aliases: Readonly<Record<string, string>>
  /** How clients of another program speak; without it none of them is understood. */
  readonly dialect?: Dialect | undefined
  /** Where requests are counted; without it, in the app alone. */
  readonly requests?: RequestMetrics
  /** Called for every request when its answer begins. */
  readonly trace?: (entry: Trace) => void
  /** Answers a request of this service to itself as one of a client; absent: the app does. */
  readonly answerAsClient?: (request: Request, identity: Identity) => Promise<Response>
  /** The way of a request; absent: that of a compute or of a gateway (see `app.ts`). */
  readonly steps?: Partial<AppSteps>
}

/** The two parts of a request's way. */
interface AppSteps {
  /** For a request from outside: who sends it, and what it asks for. */
  readonly admit: readonly RequestStep[]
  /** For every request whose endpoint is known, those of the service to itself among them. */
  readonly handle: readonly RequestStep[]
}

/** What endpoints work on. Without a service its endpoints answer 404. */
export interface AppServices
  extends Partial<
    Pick<Context, 'fleet' | 'appliance' | 'catalog' | 'labs' | 'peers' | 'uploads' | 'tokens' | 'organizations'>
  > {
  /** Absent: the feeds of the agent, and of the fleet. */
  readonly feeds?: FeedSource
}

/** Who is admitted, and how often. */
export interface AdmissionParts {
  /** The access settings; read for every request. */
  readonly access: () => Access
  /** From where a request came. Absent: only the scheme of the URL is known. */
  readonly peer?: (request: Request) => Peer
  /** Absent: tickets are made and redeemed in this app alone. */
  readonly tickets?: TicketOffice
  /** Absent: wrong log-ins are counted, and not limited. */
  readonly logins?: LoginLimit
  /** Absent: there are no sessions. */
  readonly sessions?: Sessions | undefined
  /** Absent: requests of a credential are not limited. */
  readonly rateLimit?: RateLimit
  /** Counts a request for the organization of its identity; 429 above the limit of all its credentials together. */
  readonly countForOrganization?: (identity: Identity) => void | Promise<void>
  /** Whether there is an organization of this id. Absent: the service `organizations` knows. */
  readonly hasOrganization?: (id: string) => boolean | Promise<boolean>
}

/** What a runtime does in its own way. */
export interface RuntimeParts extends Pick<Context, 'json' | 'upgrade' | 'assets' | 'read'> {
  /** The Response of an answer of a compute; a runtime may have a faster one. */
  readonly relayed?: (answer: RelayedAnswer) => Response
  /** The command that starts the service where others reach it; absent: nobody starts it by a command. */
  readonly startLine?: () => string
  /** Runs the handler of a request, so that the host knows on whose behalf it works. */
  readonly runAs?: <T>(caller: Caller, answer: () => Promise<T>) => Promise<T>
  /** The error that clients get for an error of the runtime; undefined: 500. */
  readonly apiErrorOf?: (error: unknown) => ApiError | undefined
  /** Called with every error that became a 500. */
  readonly report: (error: unknown, requestId: string) => void
  /** Absent: changes need no confirmation, but for clients that want it. */
  readonly assistants?: AssistantSettings
  /** Its clock, ms since any moment; absent: `performance.now`. */
  readonly clock?: () => number
}

/** A line of the access log. The query is left out: it may have a ticket. */
export interface Trace {
  readonly id: string
  readonly method: string
  readonly path: string
  /** Template of the endpoint; empty when there is none. */
  readonly route: string
  readonly status: number
  /** See `errorCodes`; absent where there was no error. */
  readonly error?: string
  readonly ms: number
  /**
   * Of the token or the user, and at a compute the client of the gateway that asks; absent where no credentials were needed, or
   * none were right.
   */
  readonly by?: string
  /** Of the token or the user alone: metrics count by it. */
  readonly credential?: string
}
