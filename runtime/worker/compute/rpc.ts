import type { Compute, ComputeRecord } from '../../../src/model/compute.ts'

/** A compute, for isolates and the objects of labs: its record with secrets, and its state. */
export interface KnownCompute {
  readonly record: ComputeRecord
  readonly shown: Compute
}

/**
 * The object of one compute, as isolates and other objects call it. Objects of an earlier and of a later version talk to each other during a
 * deployment: names, order and encoding of arguments stay as they are, and what is new is optional.
 */
export interface ComputeRpc {
  /** A request for the compute, the tunnel of a compute that joins, or a feed of one project; see `object-tunnels.ts`. */
  fetch(request: Request): Promise<Response>

  // From isolates and the objects of labs.

  /** The record of the compute and its state; undefined when there is no such compute. */
  known(): Promise<KnownCompute | undefined>
  /** Checks the compute now. The result: its state. Also from the directory. */
  look(): Promise<Compute | undefined>

  // From the directory.

  /** The compute was registered or changed. */
  keep(record: ComputeRecord): Promise<void>
  /** The compute was removed. */
  dismiss(): Promise<void>
  /**
   * Delivers the events of the compute from `since` on to the directory, by `DirectoryRpc.heard`. Resolves when they are read. A later
   * subscription ends the earlier one.
   */
  listen(subscriptionId: string, since: number | undefined): Promise<void>
  unlisten(subscriptionId: string): Promise<void>
  /** Ends the feeds of a revoked credential. */
  revoke(key: string): Promise<void>
}
