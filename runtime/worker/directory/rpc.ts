import type { ImageDigest } from '../../../src/fleet/images/image-digests.ts'
import type { ReplicationOutcome } from '../../../src/host-agent.ts'
import type { ComputePool } from '../../../src/labs/computes/compute-pool.ts'
import type { ProjectScope } from '../../../src/model/access/project-scope.ts'
import type { Compute, ComputeRecord } from '../../../src/model/compute.ts'
import type { FeedItem } from '../../../src/model/event.ts'
import type { ImageKindName } from '../../../src/model/image.ts'
import type { Organization } from '../../../src/model/organization.ts'
import type { ComputeHello } from '../../../src/model/tunnel.ts'
import type { EndedSession } from '../../../src/server/auth/ended-sessions.ts'
import type { ListReason, TokenList } from '../../../src/server/auth/listed-tokens.ts'
import type { RequestCounts } from '../../../src/server/http/request-metrics.ts'
import type { TicketUse } from '../../../src/server/http/signed-tickets.ts'
import type { OrganizationContent } from '../../../src/server/organizations/organizations.ts'
import type { ObjectReply } from '../shared/object-reply.ts'
import type { Encoded } from '../shared/rpc-json.ts'

/** Entries of a store, as JSON has them. */
export type StoredEntries = readonly (readonly [key: string, value: unknown])[]

/** The methods of `ComputePool` that the objects of labs call at the directory. */
export type FleetMethod = 'choose' | 'candidates' | 'absent' | 'all' | 'registered' | 'peers'

/** The arguments of such a method; in JSON the first is `null` where it is not given. */
export type FleetArguments<Method extends FleetMethod> = Parameters<ComputePool[Method]>
export type FleetResult<Method extends FleetMethod> = Awaited<ReturnType<ComputePool[Method]>>

/**
 * The directory of an organization, as isolates and other objects call it. Objects of an earlier and of a later version talk to each other
 * during a deployment: names, order and encoding of arguments stay as they are, and what is new is optional.
 */
export interface DirectoryRpc {
  /** A request of a client whom an isolate has let in (`Admissions`), or of an isolate for a feed (`feed-message.ts`). */
  fetch(request: Request): Promise<Response>

  // From isolates.

  /** Adds the counts of requests of an isolate, or of the object of a lab, since its last call. */
  count(answered: RequestCounts): Promise<void>
  /** Whether there is a compute of that id. */
  hasCompute(computeId: string): Promise<boolean>
  /** The compute that a join token is bound to. */
  computeOf(tokenKey: string): Promise<string | undefined>
  placementOf(projectId: string): Promise<string | undefined>
  place(projectId: string, computeId: string): Promise<void>
  /** Removes a placement. */
  forget(projectId: string): Promise<void>
  /** The id of the lab of that name. */
  labNamed(name: string): Promise<string | undefined>
  /** Copies an image to a compute, for an isolate or the object of a lab. */
  bringImage(computeId: string, image: string): Promise<ReplicationOutcome>
  /** The valid tokens; see `ListedTokens`. */
  tokenList(known: string | undefined, reason: ListReason): Promise<TokenList>
  /** Records that a session was ended before it expired. */
  endSession(session: EndedSession): Promise<void>
  /** Records the use of a ticket; false when the ticket is no longer valid. */
  useTicket(ticket: TicketUse): Promise<boolean>
  /** Whether the deployment has an organization; asked at the object of `default`. */
  hasOrganization(id: string): Promise<boolean>

  // From the objects of computes.

  /** The record of a compute, with secrets; undefined for an unknown id. */
  recordOf(computeId: string): Promise<ComputeRecord | undefined>
  /** Reports the state of a compute. The result: the present record; undefined for an unknown compute. */
  told(shown: Encoded<Compute>): Promise<ComputeRecord | undefined>
  /** Reports the ids of all projects that a compute has, open or closed. */
  hasProjects(computeId: string, projectIds: readonly string[]): Promise<void>
  isJoinTokenGood(tokenKey: string): Promise<boolean>
  /** Registers a compute whose tunnel opens, and binds its token to it; its record. */
  enlist(
    computeId: string,
    hello: Encoded<ComputeHello>,
    tokenKey: string,
  ): Promise<ObjectReply<ComputeRecord | undefined>>
  /** `address`: from where the compute has joined. */
  tunnelOpened(computeId: string, address?: string): Promise<void>
  tunnelClosed(computeId: string, reason: string): Promise<void>
  /**
   * Delivers an item of the feed of a compute; undefined: no more follow. False: the directory does not listen with this subscription any
   * more (`ComputeRpc.listen`).
   */
  heard(computeId: string, subscriptionId: string, item: Encoded<FeedItem> | undefined): Promise<boolean>
  /** Whether the credential with this key is still valid. When it is revoked, the object of that compute is called. */
  isGoodAt(computeId: string, key: string): Promise<boolean>
  /** Records the digest of an image that was uploaded through the object of a compute; see `RecordDigest`. */
  imageUploaded(kind: ImageKindName, name: string, digest: ImageDigest | undefined): Promise<ObjectReply>

  // From the objects of labs.

  /** Saves the head of a lab in its stored form (`encodeHead`), for lists. 409 when another lab has its name. */
  putLab(id: string, head: Encoded<unknown>, scope?: ProjectScope): Promise<ObjectReply>
  removeLab(id: string): Promise<ObjectReply>
  /** The name, or if it is taken the next free one with a number. */
  freeLabName(name: string): Promise<ObjectReply<string>>
  /** Reports the names of those who have an open lab in a page. */
  present(id: string, names: readonly string[]): Promise<void>
  /** Records which lab a job belongs to; undefined: the job is gone. */
  noteJob(id: string, lab: string | undefined): Promise<void>
  /** The entries that all labs share, such as templates. */
  labScope(scope: string): Promise<ObjectReply<StoredEntries | undefined>>
  /** Saves such entries; `null` removes one. */
  saveLabScope(scope: string, entries: Encoded<StoredEntries>): Promise<ObjectReply>
  /** Calls a method of `ComputePool`. */
  labComputes<Method extends FleetMethod>(
    method: Method,
    args: Encoded<FleetArguments<Method>>,
  ): Promise<ObjectReply<FleetResult<Method>>>

  // From the directory of `default`, which has the organizations of the deployment.

  /** Keeps what the organization of this object may use. */
  keepOrganization(organization: Encoded<Organization>): Promise<void>
  /** Counts what the organization of this object has. */
  content(): Promise<OrganizationContent>
  /**
   * Removes all that the organization of this object has: projects, computes and tokens. 409 when there are too many for one request. Then
   * `end` is to be called, unless there was nothing (false).
   */
  discard(): Promise<ObjectReply<boolean>>
  /** Ends the program of the object: the next call finds new tables. Never answers. */
  end(): Promise<void>
}
