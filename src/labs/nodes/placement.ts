import { noCompute } from '../../fleet/members/member-errors.ts'
import { ApiError } from '../../lib/errors/api-error.ts'
import type { ErrorCode } from '../../lib/errors/error-codes.ts'
import type { LabNodeCreate } from '../../model/lab/node.ts'
import type { NodeWish } from '../computes/compute-pool.ts'
import type { NodeRecord } from '../lab/document.ts'
import type { Lab } from '../lab/lab.ts'
import type { Labs } from '../service.ts'

/** Computes for a new node. */
interface ComputesFor {
  /** The best first. */
  readonly computes: readonly string[]
  /** Whether the one with the fewest nodes of the lab is better. */
  readonly spreads: boolean
}

export async function computesFor(
  labs: Labs,
  lab: Lab,
  { compute_id, placement, node_type }: Pick<LabNodeCreate, 'compute_id' | 'placement' | 'node_type'>,
): Promise<ComputesFor> {
  if (compute_id != null) return { computes: [await labs.computes.choose(compute_id)], spreads: false }
  const wish = wishOf(lab, { node_type, placement: placement ?? {} })
  const computes = await labs.computes.candidates(lab.document.project.computes, wish)
  return { computes, spreads: wish.policy === 'spread' }
}

/** Those with the fewest nodes of the lab first, with the nodes that are being created. */
function fewestFirst({ document, placing }: Lab, computes: readonly string[]): readonly string[] {
  const counts = new Map<string, number>()
  const chosen = [...placing].flatMap(([id, at]) => (document.nodes.has(id) ? [] : [at]))
  for (const at of [...chosen, ...[...document.nodes.values()].map(({ compute_id }) => compute_id)])
    counts.set(at, (counts.get(at) ?? 0) + 1)
  return computes.toSorted((a, b) => (counts.get(a) ?? 0) - (counts.get(b) ?? 0))
}

/** What a node of a lab asks of its compute, with what the lab asks. */
export function wishOf(lab: Lab, node: Pick<NodeRecord, 'node_type' | 'placement'>): NodeWish {
  const { placement } = lab.document.project
  return {
    policy: node.placement?.policy ?? placement?.policy ?? 'room',
    labels: [...new Set([...(placement?.labels ?? []), ...(node.placement?.labels ?? [])])],
    kinds: [node.node_type],
  }
}

/**
 * Creates a node on the first compute that is connected and has room. Rejects with the error of the first compute; 503 without any. Notes the
 * choice in `lab.placing`, so that nodes that are created at the same time spread, too; the caller removes it.
 */
export async function onFirstWithRoom<T>(
  lab: Lab,
  nodeId: string,
  { computes, spreads }: ComputesFor,
  make: (computeId: string) => Promise<T>,
): Promise<T> {
  let failure: unknown
  const ordered = spreads ? fewestFirst(lab, computes) : computes
  for (const computeId of ordered.slice(0, maxTried)) {
    lab.placing.set(nodeId, computeId)
    try {
      return await make(computeId)
    } catch (error) {
      if (!(error instanceof ApiError) || !noRoom.has(error.code)) throw error
      failure ??= error
    }
  }
  throw failure ?? noCompute()
}

/** Computes to try for one node. */
const maxTried = 3
/** Errors after which the next compute is tried: this one made nothing. */
const noRoom: ReadonlySet<ErrorCode> = new Set(['compute-unreachable', 'no-port-left', 'disk-full'])
