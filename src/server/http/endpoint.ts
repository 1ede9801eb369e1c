import type { Static, TObject, TSchema } from '@sinclair/typebox'
import type { ApplianceVmService } from '../../fleet/appliance-vm/appliance-vm.ts'
import type { FeedSource } from '../../fleet/events/fleet-feed.ts'
import type { UploadDigests } from '../../fleet/images/image-digests.ts'
import type { PeerAddresses, ReservedNodePort } from '../../fleet/link-check/peer-address.ts'
import type { Fleet } from '../../fleet/pool/fleet.ts'
import type { FleetAgent, LocalHostAgent } from '../../host-agent.ts'
import type { ReadFile } from '../../importers/readers.ts'
import type { LabCatalog } from '../../labs/catalog.ts'
import type { Conventions } from '../../labs/lab/conventions.ts'
import type { Labs } from '../../labs/service.ts'
import type { Method } from '../../lib/http/method.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Upgrade } from '../../lib/http/socket.ts'
import type { Role } from '../../model/access/access-token.ts'
import type { Caller } from '../../model/access/caller.ts'
import type { Identity } from '../../model/access/identity.ts'
import type { Admission } from '../access/access.ts'
import type { Peer } from '../access/peer.ts'
import type { ProjectAccess } from '../access/project-access.ts'
import type { LoginLimit } from '../auth/login-limit.ts'
import type { Tokens } from '../auth/tokens.ts'
import type { Organizations } from '../organizations/organizations.ts'
import type { Assets } from './assets.ts'
import type { RequestMetrics } from './request-metrics.ts'
import type { TicketOffice } from './tickets.ts'

/**
 * Whom a request concerns. `project`: the compute that has the project of the parameter `project_id`; a gateway hands the
 * request on to it. `all`: all computes, of whose answers a gateway composes one. `self`: the service that is asked.
 */
export type Owner = 'project' | 'all' | 'self'

/** What a handler gets beside its input. */
export interface Context<Agent = FleetAgent> {
  readonly agent: Agent
  /** The agent of a service that runs nodes itself; undefined at a gateway. */
  readonly host: LocalHostAgent | undefined
  readonly feeds: FeedSource
  readonly fleet: Fleet | undefined
  readonly appliance: ApplianceVmService | undefined
  /** All labs of the service; undefined for a service without them. */
  readonly catalog: LabCatalog | undefined
  /** The labs that run in this process; undefined where they have processes of their own. */
  readonly labs: Labs | undefined
  /** For each of two reserved ports the address and port of the other, as its host reaches them. 409 when there is no way. */
  readonly peers: (ends: readonly [ReservedNodePort, ReservedNodePort]) => Promise<PeerAddresses>
  /** Records the digests of images that are uploaded to computes. Absent where there is no gateway. */
  readonly uploads: Pick<UploadDigests, 'requireSpace' | 'watch'> | undefined
  /** Reads files that clients send, which may take long: in another thread, where the host has one. */
  readonly read: ReadFile
  /** Ports that are being linked now. */
  readonly linking: Set<string>
  readonly version: string
  /** The identity of the client. */
  readonly identity: Identity
  /** Which projects the client may see. */
  readonly projects: ProjectAccess
  /** The client, in the form in which computes get it. */
  readonly caller: Caller
  /** Called with the id of the compute that gives this answer, before the request to it (`X-Patchbay-Compute`). */
  readonly noteCompute: (computeId: string) => void
  /** Answers a request at another path of this service, on behalf of the same caller. `over` opens its websocket. */
  readonly dispatchInternally: (request: Request, path: string, over?: Upgrade) => Promise<Response>
  /** The same, where this service is what the compute `local` means: at a gateway. */
  readonly dispatchToSelf: ((request: Request, path: string) => Promise<Response>) | undefined
  /** Sends a request to this service as the client of this one does: it passes all steps, limits and roles among them. Never rejects. */
  readonly askAsClient: (request: Request) => Promise<Response>
  readonly assistants: AssistantSettings
  /** Logs an error that is a defect. */
  readonly report: (error: unknown) => void
  readonly tickets: TicketOffice
  readonly tokens: Tokens | undefined
  /** The organizations of the deployment; undefined for a service that has none. */
  readonly organizations: Pick<Organizations, keyof Organizations> | undefined
  readonly requests: RequestMetrics
  readonly logins: LoginLimit
  readonly admission: Admission
  /** The other end of the request. */
  readonly peer: Peer
  /** Our word for a kind -> the word clients use for it, from the `aliases` setting. */
  readonly aliasOf: (word: string) => string
  /** Whether a feed of a project has events with this action for this client: clients of another program know fewer. */
  readonly acceptsEvent: (action: string) => boolean
  /** What the client expects of labs, when it is a client of another program. */
  readonly conventions: Conventions | undefined
  readonly json: Json
  readonly upgrade: Upgrade
  readonly assets: Assets
  /** See `RuntimeParts.startLine`. */
  readonly startLine: (() => string) | undefined
  /** The OpenAPI document, as text. */
  readonly openapi: () => string
}

/** How assistants may change labs. */
export interface AssistantSettings {
  /** Whether each change needs a confirmation. */
  readonly approves: () => boolean
  /** The key of confirmations, where several processes answer; absent: one of the process. */
  readonly confirmKey?: () => Promise<CryptoKey>
}

/** Builds a JSON answer; a runtime may have a faster Response for it. */
export type Json = (body: string, status: number, headers: Record<string, string>) => Response

interface EndpointInput<P, Q, B> {
  readonly params: P
  readonly query: Q
  readonly body: B
  /** As it was sent, still percent-encoded, but in our words for kinds. */
  readonly path: string
  readonly request: Request
}

/** What an endpoint answers with one status. */
export interface ReplyShape {
  readonly description: string
  /** Absent: no body, or one of another media type. */
  readonly schema?: TSchema
  /** Media type of a body that is not JSON. */
  readonly media?: string
}

/** One operation of the interface, as data: router, validation, X-ROUTE, the 405 table and the OpenAPI document read it. */
export interface Endpoint<
  P extends TObject = TObject,
  Q extends TObject = TObject,
  B extends TSchema = TSchema,
  Agent = LocalHostAgent,
> {
  readonly method: Method
  /** With braces, as in the specification; `{path}`, `{filename}` or `{action}` at the end takes slashes too. */
  readonly path: string
  readonly owner: Owner
  /** It makes a lab, whose id may be the `project_id` of the body. */
  readonly createsLab?: boolean
  /** It makes the lab that its path names when there is none: a name stands for the id that lab files give it. */
  readonly makesLab?: boolean
  /** Its last word is a name for the methods that its path lacks: these are those of the path with a parameter in its place. */
  readonly leavesName?: boolean
  /** It makes or starts nodes beside their lab, which would count them, or takes away what a lab needs: clients with limits may not ask this. */
  readonly isUncounted?: boolean
  /** The project may be gone after it: a gateway forgets where it was. */
  readonly endsProject?: boolean
  readonly summary: string
  readonly description?: string
  readonly tag: string
  readonly params?: P
  readonly query?: Q
  /** Schema of the JSON body. */
  readonly body?: B
  /**
   * The schema of the resource as it is shown. Its members that `body` lacks are read-only: they are accepted as
   * `model/validation/read-only-members.ts` says, and the handler does not get them.
   */
  readonly viewSchema?: TObject
  /** The resource as it is shown now, for changes of it; absent for creates. */
  readonly current?: (
    input: Pick<EndpointInput<Static<P>, Static<Q>, never>, 'params' | 'query'>,
    context: Context<Agent>,
  ) => Promise<unknown>
  /** The schema in the OpenAPI document, where the handler validates more than `body` says. */
  readonly bodyShown?: TSchema
  /** `raw`: the body is a stream of bytes for the handler; `ignored`: any JSON object or nothing. */
  readonly bodyKind?: 'raw' | 'ignored'
  readonly replies: Readonly<Record<number, ReplyShape>>
  /** Statuses of errors with their meaning; 400, 401, 403 and 413 are added where they always may occur. */
  readonly errors?: Readonly<Record<number, string>>
  /** Who may ask this. Default: `read` for GET, `operate` for the other methods. */
  readonly role?: Role
  /** The path at the compute that the request is forwarded to; it needs the role that is needed there, too. */
  readonly forwardPath?: (path: string) => string
  /**
   * What credentials for some projects may do with an endpoint that is not about one project. `shared`: it shows nothing of projects;
   * `own`: its handler shows and takes only theirs. Absent: 403.
   */
  readonly scope?: 'shared' | 'own'
  /** May be opened as a websocket, on which a ticket is accepted. */
  readonly websocket?: boolean
  /**
   * It needs no credentials; the page that sends the request is checked all the same. The path has no parameters, but for its last
   * segment.
   */
  readonly public?: boolean
  /** A page for people, to which links of other sites may lead. All other paths are refused to them. */
  readonly page?: boolean
  /** It is about the deployment, whose administrator alone may ask it, in whichever organization. */
  readonly ofDeployment?: boolean
  /** A compute opens it to join: its handler checks the token, in place of the credentials of the service. */
  readonly joins?: boolean
  readonly handle: (
    input: EndpointInput<Static<P>, Static<Q>, Static<B>>,
    context: Context<Agent>,
  ) => Promise<Response | JsonAnswer | RelayedAnswer> | Response | JsonAnswer
}

/** The role that an endpoint needs. */
export const roleOf = ({ method, role }: Pick<Endpoint, 'method' | 'role'>): Role =>
  role ?? (method === 'GET' ? 'read' : 'operate')

/** A JSON answer, or one without body. */
export interface JsonAnswer {
  readonly status: number
  readonly body?: unknown
}

/** An endpoint that is not about one project needs only what a gateway has, too. */
type Shared<P extends TObject, Q extends TObject, B extends TSchema> = Endpoint<P, Q, B, FleetAgent> & {
  readonly owner: 'all' | 'self'
}
/** Without `owner` it is `project` for a path with `{project_id}`, else `all`. */
type OfHost<P extends TObject, Q extends TObject, B extends TSchema> = Omit<Endpoint<P, Q, B>, 'owner'> & {
  readonly owner?: 'project'
}

/** Infers the handler's input from the schemas, then forgets it so that endpoints fit in one list. */
export function endpoint<P extends TObject, Q extends TObject, B extends TSchema>(definition: Shared<P, Q, B>): Endpoint
export function endpoint<P extends TObject, Q extends TObject, B extends TSchema>(definition: OfHost<P, Q, B>): Endpoint
export function endpoint(definition: Omit<Endpoint, 'owner'> & { readonly owner?: Owner }): Endpoint {
  return { ...definition, owner: definition.owner ?? (isOfProject(definition) ? 'project' : 'all') }
}

const isOfProject = ({ params }: Pick<Endpoint, 'params'>): boolean => params?.properties.project_id !== undefined

export const ok = (body: unknown): JsonAnswer => ({ status: 200, body })
export const created = (body: unknown): JsonAnswer => ({ status: 201, body })
export const noContent: JsonAnswer = { status: 204 }
