import type { Forwarded } from '../../fleet/forward/forward.ts'
import type { ReservedPort } from '../../fleet/link-check/link-check.ts'
import type { PeerAddresses } from '../../fleet/link-check/peer-address.ts'
import type { HostAgent } from '../../host-agent.ts'
import { ignore } from '../../lib/async/ignore.ts'
import type { RelayedAnswer } from '../../lib/http/relayed-answer.ts'
import type { Caller } from '../../model/access/caller.ts'
import type { Placement, PlacementPolicy } from '../../model/placement.ts'
import type { ProjectRecord } from '../lab/document.ts'
import type { ComputeAgents } from './agents.ts'

/** A compute that is not connected, or is not in the fleet any more. */
export interface AbsentCompute {
  readonly compute_id: string
  readonly name: string
  /** Since when, as far as the service knows (UTC, RFC 3339); undefined: it was removed from the fleet. */
  readonly since: string | undefined
}

/** What a new node asks of its compute. */
export interface NodeWish {
  readonly policy: PlacementPolicy
  /** Labels that the compute must have. */
  readonly labels: readonly string[]
  /** Kinds of node that the compute must run. */
  readonly kinds: readonly string[]
}

/** The computes that labs run on. Of what a fleet does, labs know this. */
export interface ComputePool {
  /**
   * The agent of a compute, on behalf of a caller, or of the service itself. Its calls reject with 404 for an unknown id, and with
   * 503 for a compute that is not connected.
   */
  agent(computeId: string, caller?: Caller): HostAgent
  /**
   * The compute for a new lab: the one of that id or name (404; 409 for a name that several have), else the best one that has the labels
   * of the placement (409 when none has them). 503 without any.
   */
  choose(wanted: string | undefined, placement?: Placement): Promise<string>
  /**
   * Computes for a new node, the best first: `own` (those of its lab) that have free memory, then the others. With `spread` all that
   * have free memory, of which the caller takes the one with the fewest nodes of the lab. 409 when none has the labels.
   */
  candidates(own: readonly string[], wish: NodeWish): Promise<readonly string[]>
  /** Those of the computes that are not connected, or were removed from the fleet. */
  absent(computeIds: readonly string[]): Promise<readonly AbsentCompute[]>
  /** Ids of the connected computes. */
  all(): Promise<readonly string[]>
  /** Ids of all computes of the fleet, also of those that are not connected. */
  registered(): Promise<readonly string[]>
  /** Forwards a request to a compute; only where this process has no `Fleet`. */
  readonly forward?: (computeId: string, forwarded: Forwarded) => Promise<Response | RelayedAnswer>
  /** For each of two reserved ports: the address and port at which its compute reaches the other one. 409 when it cannot be reached. */
  peers(ends: readonly [ReservedPort, ReservedPort]): Promise<PeerAddresses>
}

/** Agents of computes on behalf of the service itself. */
export const serviceAgents =
  (computes: ComputePool): ComputeAgents =>
  (computeId) =>
    computes.agent(computeId)

/** Asks which of these computes are not connected; the result gives what that means for a lab. */
export async function absenceReasons(
  pool: ComputePool,
  computes: readonly string[],
): Promise<(lab: Pick<ProjectRecord, 'computes'>) => string | undefined> {
  const none = ignore('without an answer no reason is shown')
  const found = (await pool.absent([...new Set(computes)]).catch(none)) ?? []
  const absent = new Map(found.map((it) => [it.compute_id, it]))
  return (lab) => absenceReason(lab.computes.flatMap((id) => absent.get(id) ?? []))
}

/** What absent computes mean for their lab. */
function absenceReason(absent: readonly AbsentCompute[]): string | undefined {
  if (absent.length === 0) return undefined
  const [one, ...others] = absent
  if (others.length === 0)
    return one?.since === undefined
      ? `Its compute ${one?.name} was removed from this service`
      : `Its compute ${one.name} has not been connected since ${one.since}`
  const each = absent.map(({ name, since }) => `${name} (${since === undefined ? 'removed' : `since ${since}`})`)
  return `Its computes ${each.join(' and ')} are not connected`
}
