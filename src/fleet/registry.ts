import type { ComputeRecord } from '../model/compute.ts'

/**
 * Where the computes of a fleet are kept, secrets included: a file on Node, a database elsewhere. A change is on disk when
 * its promise resolves. Changes come one at a time. Rejects with ApiError for what a client can mend (507 on a full disk).
 */
export interface Registry {
  /** In the order in which they were first saved. */
  load(): Promise<readonly ComputeRecord[]>
  /** Adds a record, or replaces the one with its `compute_id` (compared without regard to case). */
  save(record: ComputeRecord): Promise<void>
  /** Nothing is done for an id that is not there. */
  remove(computeId: string): Promise<void>
}
