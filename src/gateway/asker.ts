import type { Caller } from '../auth/caller.ts'

/** On whose behalf computes are asked, and what its answer is to say of them. */
export interface RequestingCaller {
  readonly caller: Caller
  /** Told the name of every compute that was not there to answer (`X-Patchbay-Unreachable`). */
  absent(name: string): void
  /** Told the id of the compute that answers, before it does (`X-Patchbay-Compute`). */
  answered(computeId: string): void
}
