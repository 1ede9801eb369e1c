import { agentOf } from '../client/agent-of.ts'
import { ApiError } from '../errors/api-error.ts'
import { computeKey } from '../fleet/computes.ts'
import type { Fleet } from '../fleet/fleet.ts'
import { forward } from '../fleet/forward.ts'
import type { Compute } from '../model/compute.ts'
import type { FleetMembers, Member } from './members.ts'

/** The computes of a fleet as those of a gateway. */
export function fleetMembers(fleet: Fleet): FleetMembers {
  const memberOf = (compute: Compute): Member => {
    const { compute_id, name, connected, accepts_projects, weight } = compute
    const { cpu_usage_percent: cpu, memory_usage_percent: memory } = compute
    return {
      id: computeKey(compute_id),
      name,
      isConnected: connected || fleet.isUnclear(compute_id),
      load: cpu === null || memory === null ? undefined : { cpu_usage_percent: cpu, memory_usage_percent: memory },
      acceptsProjects: accepts_projects,
      weight,
      // Most members of a list are only looked at.
      get agent() {
        return agentOf(fleet, compute_id)
      },
      agentFor: (caller) => agentOf(fleet, compute_id, { caller }),
      forward: (request) => forward(fleet, compute_id, request),
    }
  }
  return {
    all: async () => (await fleet.list()).map(memberOf),
    async find(id) {
      try {
        return memberOf(await fleet.get(id))
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return undefined
        throw error
      }
    },
    watch(listener) {
      const connected = new Map<string, boolean>()
      return fleet.listen((event) => {
        if ('message' in event) return
        const { compute_id, connected: isConnected } = event.compute
        if (event.type === 'compute.deleted') {
          connected.delete(compute_id)
          return listener()
        }
        // A load that is another is no reason to look.
        if (event.type === 'compute.updated' && connected.get(compute_id) === isConnected) return
        connected.set(compute_id, isConnected)
        listener()
      })
    },
  }
}
