import type { Caller } from '../auth/caller.ts'
import type { Forwarded } from '../fleet/forward.ts'
import type { RelayedAnswer } from '../http/relayed-answer.ts'
import type { ComputeClient } from './compute-client.ts'

/** The computes that labs run on: the one seam between labs and fleets. */
export interface LabComputes {
  /**
   * A compute, asked on behalf of a caller; without one it is the service that asks. Nothing is asked before a call: that is 404 for
   * an unknown id, and 503 for a compute that is not there.
   */
  client(computeId: string, caller?: Caller): ComputeClient
  /** Where new nodes go: the compute of that name or id, else the one with most room. 404 for an unknown one, 503 when there is none. */
  choose(wanted: string | undefined): Promise<string>
  /** Where a node may go whose compute is not named, the best first: a compute of its lab that has room, then those with most room. */
  candidates(own: readonly string[]): Promise<readonly string[]>
  /** The names of those computes that are registered and not connected. */
  absent(computeIds: readonly string[]): Promise<readonly string[]>
  /** The computes that may have projects, connected ones only. */
  all(): Promise<readonly string[]>
  /** Hands a request on to a compute, where this process has no fleet. */
  readonly forward?: (computeId: string, forwarded: Forwarded) => Promise<Response | RelayedAnswer>
  /** The address at which one compute reaches another; 409 when there is none. */
  address(from: string, to: string): Promise<string>
}
