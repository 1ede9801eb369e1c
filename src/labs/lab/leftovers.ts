import { ignore } from '../../lib/async/ignore.ts'
import { longWaitsMs } from '../../lib/async/long-waits.ts'
import { pause } from '../../lib/async/pause.ts'
import { ignoreNotFound } from '../../lib/errors/api-error.ts'
import { Revert } from '../../lib/revert.ts'
import type { ComputeAgents } from '../computes/agents.ts'
import type { NodeRecord } from './document.ts'
import type { Lab } from './lab.ts'
import { nodeRefOf } from './node-on-compute.ts'

/** What a request whose answer was lost may have made on a compute. */
interface Orphan {
  /** Whether the project has it nevertheless. */
  readonly isWanted: () => boolean
  readonly remove: () => Promise<unknown>
}

/**
 * Makes something on a compute. When the answer is lost, what it may have made is removed: nobody would know of it, and its id and its ports
 * would stay taken. A compute that does not answer is asked again for days, until the lab is closed.
 */
export async function createOrCleanUp<T>(lab: Lab, make: () => Promise<T>, orphan: Orphan): Promise<T> {
  await using revert = revertOrphans()
  const made = await revert.make(make, () => removeOrphan(lab, orphan))
  revert.commit()
  return made
}

/** For steps that are `removeOrphan`. */
export const revertOrphans = () => new Revert(ignore('an orphan that is not removed now is removed later'))

/** Removes what was made, as `createOrCleanUp` does. */
export async function removeOrphan(lab: Lab, orphan: Orphan): Promise<void> {
  if (!(await isRemoved(orphan))) void removeLater(lab, orphan)
}

async function removeLater(lab: Lab, orphan: Orphan): Promise<void> {
  for (const ms of longWaitsMs) {
    await pause(ms, lab.closing.signal)
    if (lab.closing.signal.aborted || (await isRemoved(orphan))) return
  }
}

async function isRemoved({ isWanted, remove }: Orphan): Promise<boolean> {
  if (isWanted()) return true
  return remove()
    .catch(ignoreNotFound)
    .then(
      () => true,
      () => false,
    )
}

/** A node whose creation has failed. Its directory stays: it may be that of a deleted node which is made again. */
export const nodeOrphan = (
  lab: Lab,
  { compute_id, node_type, node_id }: Pick<NodeRecord, 'compute_id' | 'node_type' | 'node_id'>,
  agentFor: ComputeAgents,
): Orphan => ({
  isWanted() {
    const now = lab.document.nodes.get(node_id)
    return now?.compute_id === compute_id && now.creationError === undefined
  },
  remove: () => agentFor(compute_id).nodes.remove(nodeRefOf(lab, { node_type, node_id }), { files: 'later' }),
})

/** A link within a compute that could not be made. */
export const linkOrphan = (lab: Lab, computeId: string, linkId: string, agentFor: ComputeAgents): Orphan => ({
  isWanted: () => lab.document.links.get(linkId)?.wiring.type === 'direct',
  remove: () => agentFor(computeId).links.remove(lab.id, linkId),
})

/** Several as one. */
export const all = (orphans: readonly Orphan[]): Orphan => ({
  isWanted: () => orphans.every((orphan) => orphan.isWanted()),
  async remove() {
    for (const it of orphans) if (!it.isWanted()) await it.remove().catch(ignoreNotFound)
  },
})
