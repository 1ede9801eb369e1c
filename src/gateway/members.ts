import type { Caller } from '../auth/caller.ts'
import type { RemoteHostAgent } from '../client/remote-host-agent.ts'
import type { Forwarded } from '../fleet/forward.ts'
import type { RelayedAnswer } from '../http/relayed-answer.ts'
import type { Load } from '../model/host.ts'

/** A compute, as labs are given to it. */
export interface Member {
  /** Lower-case id of the compute. */
  readonly id: string
  /** As messages call it. */
  readonly name: string
  readonly agent: RemoteHostAgent
  /** The agent that tells the compute of the caller; for `agent` that is a user. */
  agentFor(caller: Caller): RemoteHostAgent
  /** Hands a request on to it. */
  forward(request: Forwarded): Promise<Response | RelayedAnswer>
  readonly isConnected: boolean
  /** As last told; undefined while that is not known. */
  readonly load: Load | undefined
  /** False for one that is being emptied: its labs stay, new ones go elsewhere. */
  readonly acceptsProjects: boolean
  /** How much of the labs it is to have, 1 being usual. */
  readonly weight: number
}

/** The computes of a gateway. */
export interface FleetMembers {
  /** In the order of their registration. */
  all(): Promise<readonly Member[]>
  find(id: string): Member | undefined | Promise<Member | undefined>
  /** Told when a compute came, went, or is connected or not; the result ends that. */
  watch(listener: () => void): () => void
}

/** Which compute has which project: what must not be forgotten. A change is kept when its promise resolves. */
export interface PlacementStore {
  /** Id of the compute. */
  get(projectId: string): string | undefined | Promise<string | undefined>
  put(projectId: string, computeId: string): Promise<void>
  /** Nothing is done for a project that is not known. */
  remove(projectId: string): Promise<void>
}
