import type { Caller } from '../auth/caller.ts'
import type { RemoteHostAgent } from '../client/remote-host-agent.ts'
import type { Forwarded } from '../fleet/forward.ts'
import type { RelayedAnswer } from '../http/relayed-answer.ts'
import type { Load } from '../model/host.ts'

/** A compute of a gateway. */
export interface Member {
  /** Lower-case id of the compute. */
  readonly id: string
  /** The name in messages. */
  readonly name: string
  readonly agent: RemoteHostAgent
  /** An agent whose requests name the caller to the compute; the caller of `agent` is a user. */
  agentFor(caller: Caller): RemoteHostAgent
  /** Hands a request on to the compute. */
  forward(request: Forwarded): Promise<Response | RelayedAnswer>
  readonly isConnected: boolean
  /** The last report; undefined before the first one. */
  readonly load: Load | undefined
  /** False for a compute that is drained: its projects stay, new projects go to other computes. */
  readonly acceptsProjects: boolean
  /** The relative share of new projects; 1 by default. */
  readonly weight: number
}

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
