import { ignore } from '../../lib/async/ignore.ts'
import { mapLimit } from '../../lib/async/map-limit.ts'
import { withTimeout } from '../../lib/async/timeout.ts'
import type { HostLoad } from '../../model/host.ts'
import type { Context } from '../../server/http/endpoint.ts'
import { computeNameView } from '../compute/compute-view.ts'
import { labsOf } from '../v2/labs/lab-request.ts'

/** How long a compute is waited for, ms: one that hangs is left out. */
const computeMs = 5000

/** The load of a compute with the members of GNS3 2.2; a figure that is not known is 0. */
export function theirStatistics(load: HostLoad): Record<string, unknown> {
  const { memory_total = 0, memory_free = 0, swap_total = 0, swap_free = 0, load_average_percent = [0, 0, 0] } = load
  const whole = Math.trunc
  return {
    memory_total,
    memory_free,
    memory_used: memory_total - memory_free,
    swap_total,
    swap_free,
    swap_used: swap_total - swap_free,
    cpu_usage_percent: whole(load.cpu_usage_percent),
    memory_usage_percent: whole(load.memory_usage_percent),
    swap_usage_percent: swap_total === 0 ? 0 : whole((1 - swap_free / swap_total) * 100),
    disk_usage_percent: whole(load.disk_usage_percent ?? 0),
    load_average_percent,
  }
}

/** The statistics of each connected compute that answers. */
export async function allStatistics(context: Context): Promise<unknown[]> {
  const { fleet, agent } = context
  if (fleet === undefined) return [statisticsOf('local', 'local', await agent.host.load())]
  const { agentFor } = labsOf(context)
  const computes = (await fleet.list()).filter(({ connected }) => connected)
  const all = await mapLimit(computes, async (compute) => {
    const { compute_id } = compute
    const loading = agentFor(compute_id).host.load()
    loading.catch(ignore('a compute that does not answer is left out'))
    const load = await withTimeout(loading, computeMs, () => undefined).catch(() => undefined)
    return load === undefined ? [] : [statisticsOf(compute_id, computeNameView(compute, context), load)]
  })
  return all.flat()
}

const statisticsOf = (compute_id: string, compute_name: string, load: HostLoad) => ({
  compute_id,
  compute_name,
  statistics: theirStatistics(load),
})
