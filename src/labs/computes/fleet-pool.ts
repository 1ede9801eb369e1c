import type { ReplicateImage } from '../../fleet/images/image-copies.ts'
import { peerAddresses } from '../../fleet/link-check/peer-address.ts'
import { fleetAgent } from '../../fleet/members/fleet-agent.ts'
import { fleetMembers } from '../../fleet/members/fleet-members.ts'
import { hasLabels, labelsOf, withoutLabels } from '../../fleet/members/labels.ts'
import { noCompute } from '../../fleet/members/member-errors.ts'
import type { Member } from '../../fleet/members/members.ts'
import { hasRoom, Scheduler } from '../../fleet/placement/scheduler.ts'
import { computeKey, isReserved } from '../../fleet/pool/computes.ts'
import type { Fleet } from '../../fleet/pool/fleet.ts'
import { type ApiError, conflict } from '../../lib/errors/api-error.ts'
import { localId } from '../../model/compute.ts'
import type { AbsentCompute, ComputePool } from './compute-pool.ts'

/**
 * `ComputePool` over a fleet. On a plain service the first compute is the service itself, `local`. `replicateImage`: absent where images are not
 * copied between computes.
 */
export function fleetPool(fleet: Fleet, replicateImage?: ReplicateImage): ComputePool {
  const scheduler = new Scheduler()
  const members = fleetMembers(fleet)
  /** The service itself, and the other computes. Its own labels take time, and are read when some are wanted. */
  const everyone = async (wanted: readonly string[]): Promise<readonly Placeable[]> => {
    const remote = await members.all()
    if (!fleet.hasLocal) return remote
    const labels = wanted.length === 0 ? [] : labelsOf(await fleet.get(localId))
    const own = { id: localId, name: fleet.at(localId).name, labels, isConnected: true, acceptsProjects: true }
    return [{ ...own, load: undefined, weight: 1 }, ...remote]
  }
  return {
    agent: (computeId, caller) => fleetAgent(fleet, computeId, { caller, replicateImage }),
    async choose(wanted, { policy = 'room', labels = [] } = {}) {
      if (wanted !== undefined && (computeKey(wanted) !== localId || fleet.hasLocal))
        return computeNamed(fleet, wanted, await everyone([]))
      const all = await everyone(labels)
      const fitting = all.filter((it) => hasLabels(it.labels, labels))
      if (labels.length > 0 && fitting.length === 0) throw withoutLabels(labels, all)
      if (fitting.some(({ id }) => id === localId)) return localId
      const [best] = scheduler.order(fitting, policy)
      if (best === undefined) throw labels.length > 0 ? withoutLabels(labels, all) : noCompute()
      scheduler.place(best)
      return best.id
    },
    async candidates(own, { policy, labels, kinds }) {
      const all = await everyone(labels)
      const fitting = all.filter((it) => hasLabels(it.labels, labels))
      // A compute reports its kinds when it connects. When no compute has them, the first compute refuses the node and says why.
      const kindLabels = kinds.map((kind) => `kind=${kind}`)
      const having = fitting.filter(({ id, labels }) => id === localId || hasLabels(labels, kindLabels))
      const able = having.length > 0 ? having : fitting
      const mine = own.flatMap((id) => able.filter((it) => it.id === id && it.isConnected && hasRoom(it)))
      const others = able.filter(({ id }) => id !== localId)
      const ordered = [...able.filter((it) => !others.includes(it)), ...scheduler.order(others, policy)]
      // Links on one compute need no network, so a lab stays on its computes while these have room.
      const found = policy === 'spread' ? roomy([...ordered, ...mine]) : [...mine, ...ordered]
      if (found.length === 0 && labels.length > 0) throw withoutLabels(labels, all)
      return [...new Set(found.map(({ id }) => id))]
    },
    async absent(computeIds) {
      const all = new Map((await members.all()).map((it) => [it.id, it]))
      return computeIds.flatMap((compute_id): AbsentCompute[] => {
        const member = all.get(compute_id)
        // The service itself is not a member.
        if (member === undefined)
          return isReserved(compute_id) ? [] : [{ compute_id, name: compute_id, since: undefined }]
        const { name, isConnected, disconnectedSince = Date.now() } = member
        return isConnected ? [] : [{ compute_id, name, since: new Date(disconnectedSince).toISOString() }]
      })
    },
    async all() {
      const there = (await fleet.list()).filter(({ connected }) => connected)
      return there.map(({ compute_id }) => computeKey(compute_id))
    },
    registered: async () => (await fleet.list()).map(({ compute_id }) => computeKey(compute_id)),
    peers: (ends) => peerAddresses(fleet, ends, apart),
  }
}

/** The compute with that id, else the one with that name. 404 for neither, 409 for a name that several have. */
async function computeNamed(fleet: Fleet, idOrName: string, computes: readonly Placeable[]): Promise<string> {
  const named = computes.filter(({ name }) => name === idOrName)
  const found = computes.find(({ id }) => id === computeKey(idOrName)) ?? named[0]
  if (found === undefined) return computeKey((await fleet.get(idOrName)).compute_id)
  if (found.id !== computeKey(idOrName) && named.length > 1) throw ambiguous(idOrName, named)
  return found.id
}

const ambiguous = (name: string, named: readonly Placeable[]): ApiError =>
  conflict(
    `compute_id: ${named.length} computes have the name ${name}; give an id: ${named.map(({ id }) => id).join(', ')}`,
    { code: 'ambiguous-compute' },
  )

type Placeable = Pick<Member, 'id' | 'name' | 'labels' | 'load' | 'isConnected' | 'acceptsProjects' | 'weight'>

/** Those that have room, or all when none has. */
function roomy<T extends Placeable>(computes: readonly T[]): readonly T[] {
  const found = computes.filter(hasRoom)
  return found.length > 0 ? found : computes
}

const apart =
  'put both nodes on one compute, register one with an address that the other can reach, or set join.addresses to such an address'
