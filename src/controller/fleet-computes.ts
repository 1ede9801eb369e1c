import { type Caller, headersFor } from '../auth/caller.ts'
import { Connection } from '../client/connection.ts'
import { computeKey } from '../fleet/computes.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { noCompute, presented } from '../gateway/fan-out.ts'
import { fleetMembers } from '../gateway/fleet-members.ts'
import type { BringImage } from '../gateway/image-copies.ts'
import type { Member } from '../gateway/members.ts'
import { addressFor } from '../gateway/peer-address.ts'
import { Scheduler } from '../gateway/scheduler.ts'
import { localId } from '../model/compute.ts'
import { ComputeClient } from './compute-client.ts'
import type { LabComputes } from './computes.ts'

/** Memory in use, percent, from which new nodes of a lab go to another compute. */
const fullPercent = 95

/**
 * `LabComputes` over a fleet. On a plain service the first compute is the service itself, `local`. `bring`: absent where images are not
 * copied between computes.
 */
export function fleetComputes(fleet: Fleet, bring?: BringImage): LabComputes {
  const scheduler = new Scheduler()
  const members = fleetMembers(fleet)
  return {
    client(computeId, caller) {
      const isLocal = computeId === localId
      const marks = isLocal ? {} : headersFor(caller ?? ourOwn)
      const name = fleet.find(computeId)?.name ?? computeId
      return new ComputeClient(
        new Connection({
          name,
          send: (request) =>
            fleet.send(computeId, { ...request, headers: { ...request.headers, ...marks } }).catch((error: unknown) => {
              throw presented(error, { name })
            }),
          isWatched: fleet.isTunnelled(computeId),
        }),
        bring && ((image) => bring(computeId, image)),
      )
    },
    async choose(wanted) {
      const named = wanted?.toLowerCase()
      if (named !== undefined && (named !== localId || fleet.hasLocal))
        return computeKey((await fleet.get(named)).compute_id)
      if (fleet.hasLocal) return localId
      const [best] = scheduler.order(await members.all())
      if (best === undefined) throw noCompute()
      scheduler.place(best)
      return best.id
    },
    async candidates(own) {
      const all = await members.all()
      const hasRoom = ({ isConnected, load }: Member) => isConnected && (load?.memory_usage_percent ?? 0) < fullPercent
      // Links on one compute need no network, so a lab stays on its computes while these have room.
      const mine = own.filter((id) =>
        id === localId ? fleet.hasLocal : all.some((member) => member.id === id && hasRoom(member)),
      )
      const others = [...(fleet.hasLocal ? [localId] : []), ...scheduler.order(all).map(({ id }) => id)]
      return [...new Set([...mine, ...others])]
    },
    async absent(computeIds) {
      const away = (await members.all()).filter(({ id, isConnected }) => computeIds.includes(id) && !isConnected)
      return away.map(({ name }) => name)
    },
    async all() {
      const there = (await fleet.list()).filter(({ connected }) => connected)
      return there.map(({ compute_id }) => computeKey(compute_id))
    },
    address: (from, to) => addressFor(fleet, from, to, apart),
  }
}

const ourOwn: Caller = { isDirect: false, mayExecute: false }
const apart = 'put both nodes on one compute, or register it by an address that others reach'
