import type { Caller } from '../auth/caller.ts'
import type { ComputeClient } from './compute-client.ts'

/** The computes that labs run on: the one seam between labs and fleets. */
export interface LabComputes {
  /**
   * A compute, asked on behalf of a caller; without one it is the service that asks. It is not asked before it is needed; 404 for an
   * unknown id.
   */
  client(computeId: string, caller?: Caller): ComputeClient
  /** Where new nodes go: the compute of that name or id, else the one with most room. 404 for an unknown one, 503 when there is none. */
  choose(wanted: string | undefined): Promise<string>
  /** The computes that may have projects, connected ones only. */
  all(): Promise<readonly string[]>
  /** The address at which one compute reaches another; 409 when there is none. */
  address(from: string, to: string): Promise<string>
}
