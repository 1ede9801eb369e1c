import type { Caller } from '../auth/caller.ts'

/** The caller of a request at a gateway, and what its answer says about computes. */
export interface RequestingCaller {
  readonly caller: Caller
  /** Called with the name of each compute that could not answer (`X-Patchbay-Unreachable`). */
  absent(name: string): void
  /** Called with the id of the compute before its answer (`X-Patchbay-Compute`). */
  answered(computeId: string): void
}
