import type { FeedRequest } from '../../host-agent.ts'
import type { FeedItem } from '../../model/event.ts'
import type { LabListEvent } from '../../model/lab/event.ts'
import type { FleetMember } from './fleet-members.ts'

/** A compute of a gateway. */
export type Member = Pick<FleetMember, keyof FleetMember>

/** The computes of a gateway. */
export interface FleetMembers {
  /** In the order of their registration. */
  all(): Promise<readonly Member[]>
  find(id: string): Member | undefined | Promise<Member | undefined>
  /** Calls the listener when a compute is added, removed, connected or disconnected; the result unsubscribes. */
  watch(listener: () => void): () => void
  /** Projects that computes have reported by events; absent: all computes are asked for a project that was not placed. */
  readonly toldProjects?: ReportedProjects
  /** Opens the feed of a compute; absent: its agent does. */
  readonly openFeed?: (member: Member, feed: FeedRequest) => Promise<ReadableStream<FeedItem>>
}

/** Projects that computes have reported by events, for fleets that are too large to ask all computes. */
export interface ReportedProjects {
  /** The largest fleet in which all computes are asked. */
  readonly maxAsked: number
  /** Ids of the computes that have reported a project. */
  computesOf(projectId: string): readonly string[]
  /** Notes that a compute sent an event of a project that was not known to be there. */
  add(projectId: string, computeId: string): void
}

/** Where the labs of a gateway are: a lab may be on several computes. */
export interface LabPlacements {
  /** The computes of a project, the first one first; undefined for a project that is not a lab. */
  computesOf(projectId: string): readonly string[] | undefined
  /** The compute of a node or of a direct link, by its id; undefined for an unknown one. */
  computeOf(projectId: string, part: string): string | undefined | Promise<string | undefined>
}

/** Reports the changes of labs. */
export interface LabChanges {
  listen(listener: (event: LabListEvent) => void): void
}

/** The durable map from projects to computes. A change is saved when its promise resolves. */
export interface PlacementStore {
  /** Id of the compute. */
  get(projectId: string): string | undefined | Promise<string | undefined>
  put(projectId: string, computeId: string): Promise<void>
  /** Does nothing for an unknown project. */
  remove(projectId: string): Promise<void>
}
