import type { ServiceEvents } from '../fleet/events/fleet-feed.ts'
import { peersOnOneHost } from '../fleet/link-check/peer-address.ts'
import { Admission } from './access/access.ts'
import { type Peer, peerByUrl } from './access/peer.ts'
import type { AppOptions } from './app-options.ts'
import { LoginLimit } from './auth/login-limit.ts'
import type { Context, Endpoint } from './http/endpoint.ts'
import { RequestMetrics } from './http/request-metrics.ts'
import { Routes } from './http/router.ts'
import { Tickets } from './http/tickets.ts'
import type { RequestContext, StepResult } from './request-context.ts'

/** What all requests of an app share. */
export interface AppParts {
  readonly options: AppOptions
  /** The agent is made for each request, and asks other computes. */
  readonly isGateway: boolean
  readonly routes: Routes
  readonly admission: Admission
  readonly requests: RequestMetrics
  readonly nextId: () => string
  /** ms */
  readonly clock: () => number
  readonly peerOf: (request: Request) => Peer
  /** Whether an endpoint needs no credentials. */
  readonly isPublic: (method: string, path: string) => boolean
  /** What the feed of the service has beside the events of projects on computes. */
  readonly serviceEvents: ServiceEvents | undefined
  readonly shared: SharedContext
  /** Answers a request whose sender was admitted: finds its endpoint, and runs the steps of `AppSteps.handle`. */
  readonly answerAdmitted: (context: RequestContext) => StepResult
  /** Answers a request that the service sends as the client of another one: it passes all steps, but its sender is known. */
  readonly answerAsClient: (request: Request, client: Pick<RequestContext, 'peer' | 'identity'>) => Promise<Response>
}

/** Members of the context of handlers that are the same for all requests. */
type SharedContext = Omit<
  Context,
  | 'agent'
  | 'feeds'
  | 'identity'
  | 'projects'
  | 'caller'
  | 'noteCompute'
  | 'dispatchInternally'
  | 'dispatchToSelf'
  | 'askAsClient'
  | 'report'
  | 'peer'
  | 'acceptsEvent'
  | 'conventions'
  | 'upgrade'
>

/** What lies above the steps. */
export interface AppEndpoints {
  readonly endpoints: readonly Endpoint[]
  /** For paths that match none of the others. */
  readonly fallback: readonly Endpoint[]
  /** The reference, as text. */
  readonly openapi: (version: string) => string
}

export function appParts(
  options: AppOptions,
  { endpoints, fallback, openapi }: AppEndpoints,
  { answerAdmitted, answerAsClient }: Pick<AppParts, 'answerAdmitted' | 'answerAsClient'>,
): AppParts {
  const { agent, version, services = {}, runtime, dialect } = options
  const { access, sessions, hasOrganization, rateLimit, ...admits } = options.admission
  const isGateway = typeof agent === 'function'
  const routes = new Routes([...endpoints, ...(dialect?.endpoints ?? [])], isGateway ? fallback : [])
  const tickets = admits.tickets ?? new Tickets()
  const logins = admits.logins ?? new LoginLimit({ perMinute: () => 0 })
  const requests = options.requests ?? new RequestMetrics()
  const { fleet, catalog, organizations } = services
  const admission = new Admission({
    access,
    tickets,
    logins,
    sessions,
    count: (key) => rateLimit?.consume(key),
    hasOrganization: hasOrganization ?? (organizations && ((id) => organizations.has(id))),
  })
  const clientWords = new Map(Object.entries(options.aliases).map(([theirs, ours]) => [ours, theirs]))
  return {
    options,
    isGateway,
    routes,
    admission,
    requests,
    answerAdmitted,
    answerAsClient,
    nextId: requestIds(),
    clock: runtime.clock ?? (() => performance.now()),
    peerOf: admits.peer ?? peerByUrl,
    isPublic: publicMatcher(endpoints, routes),
    serviceEvents: fleet && {
      listen(listener) {
        const ends = [
          fleet.listen(listener),
          catalog?.registry.listen(({ action, event }) => listener({ type: action, resource: event })),
        ]
        return () => {
          for (const end of ends) end?.()
        }
      },
    },
    shared: {
      host: isGateway ? undefined : agent,
      fleet,
      appliance: services.appliance,
      peers: services.peers ?? (async (ends) => peersOnOneHost(ends)),
      uploads: services.uploads,
      read: runtime.read,
      catalog,
      labs: services.labs,
      linking: new Set(),
      version,
      tickets,
      tokens: services.tokens,
      organizations,
      requests,
      logins,
      admission,
      aliasOf: (word) => clientWords.get(word) ?? word,
      json: runtime.json,
      assets: runtime.assets,
      startLine: runtime.startLine,
      assistants: runtime.assistants ?? { approves: () => false },
      openapi: () => openapi(version),
    },
  }
}

function publicMatcher(endpoints: readonly Endpoint[], routes: Routes): AppParts['isPublic'] {
  const all = new Set(endpoints.filter((it) => it.public))
  const paths = new Set([...all].map(({ path }) => path))
  const folders = [...paths].flatMap((path) => /^(.*\/)\{\w+\}$/.exec(path)?.[1] ?? [])
  return (method, path) =>
    (paths.has(path) || folders.some((folder) => path.startsWith(folder))) &&
    all.has(routes.match(method, path)?.endpoint as Endpoint)
}

/** Unique over restarts, and cheap: a random word and a count. */
function requestIds(): () => string {
  let random: string | undefined
  let count = 0
  return () => {
    // Workers allow no random values before the first request.
    random ??= crypto.randomUUID().slice(0, 8)
    count += 1
    return `${random}-${count.toString(36)}`
  }
}
