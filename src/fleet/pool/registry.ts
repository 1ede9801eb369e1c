import type { ComputeRecord } from '../../model/compute.ts'

/**
 * The storage of the computes of a fleet, with secrets: a file on Node, a database elsewhere. A change is on disk when its promise
 * resolves. Changes run one at a time. Rejects with ApiError for an error that a client can repair (507 on a full disk).
 */
export interface ComputeRegistry {
  /** In the order in which they were first saved. */
  load(): Promise<readonly ComputeRecord[]>
  /** Adds a record, or replaces the record with the same `compute_id` (case-insensitive). */
  save(record: ComputeRecord): Promise<void>
  /** Does nothing for an unknown id. */
  remove(computeId: string): Promise<void>
}
