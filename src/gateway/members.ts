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
}

/** The durable map from projects to computes. A change is saved when its promise resolves. */
export interface PlacementStore {
  /** Id of the compute. */
  get(projectId: string): string | undefined | Promise<string | undefined>
  put(projectId: string, computeId: string): Promise<void>
  /** Does nothing for an unknown project. */
  remove(projectId: string): Promise<void>
}
