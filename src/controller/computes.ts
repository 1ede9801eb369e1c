import type { Caller } from '../auth/caller.ts'
import type { Forwarded } from '../fleet/forward.ts'
import type { RelayedAnswer } from '../http/relayed-answer.ts'
import type { ComputeClient } from './compute-client.ts'

/** The computes that labs run on: the one seam between labs and fleets. */
export interface LabComputes {
  /**
   * The client of a compute, on behalf of a caller, or of the service itself. Its calls reject with 404 for an unknown id, and with
   * 503 for a compute that is not connected.
   */
  client(computeId: string, caller?: Caller): ComputeClient
  /** The compute for a new node: the one of that name or id (404), else the one with most free memory. 503 without any. */
  choose(wanted: string | undefined): Promise<string>
  /** Computes for a new node, the best first: `own` (those of its lab) that have free memory, then the others. */
  candidates(own: readonly string[]): Promise<readonly string[]>
  /** The names of those of the computes that are registered, but not connected. */
  absent(computeIds: readonly string[]): Promise<readonly string[]>
  /** Ids of the connected computes. */
  all(): Promise<readonly string[]>
  /** Hands a request on to a compute; only where this process has no `Fleet`. */
  readonly forward?: (computeId: string, forwarded: Forwarded) => Promise<Response | RelayedAnswer>
  /** The address at which one compute reaches another; 409 when there is none. */
  address(from: string, to: string): Promise<string>
}
