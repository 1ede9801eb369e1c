import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Caller } from '../../model/access/caller.ts'
import type { Identity } from '../../model/access/identity.ts'

/** The caller of a request at a gateway, and what its answer says about computes. */
export interface RequestingCaller {
  readonly caller: Caller
  /** Called with the name of each compute that could not answer (`X-Patchbay-Unreachable`). */
  noteUnreachable(name: string): void
  /** Called with the id of the compute before its answer (`X-Patchbay-Compute`). */
  noteCompute(computeId: string): void
  readonly notes: RequestNotes
}

/**
 * What a program notes of one request while it answers it. It is not kept in a map by the request: workerd frees a request that is a key of a
 * map only in a collection of all garbage, and its memory is reused only then.
 */
export interface RequestNotes {
  /** Set when this program forwards the request to the compute of the project itself. */
  localRoute?: {
    readonly projectId: string
    /** Of the client. */
    readonly identity: Identity
  }
  /** The error of a compute that was asked already, for the way that errors take. */
  failedAnswer?: { readonly compute: string; readonly answer: Response | RelayedAnswer }
}
