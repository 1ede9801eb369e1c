import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { clientOf } from './client.ts'
import type { CommandInput, ServiceFlags, serviceFlags } from './command.ts'
import { stopText } from './counts.ts'
import type { CommandOutcome } from './outcome.ts'

const atOnce = 16

/** `patchbay ls`: the labs of a service, with the number of their nodes and of those that run. */
export async function ls({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags as ServiceFlags)
  const projects = await client.call('GET /v2/projects', { signal })
  const labs = await mapLimit(
    projects,
    async ({ project_id, name, status, status_reason, stop_at, ttl_deletes, counts: listed }) => {
      const count = () => client.call('GET /v2/projects/{project_id}/stats', { params: { project_id }, signal })
      const known = listed?.running === undefined ? await count().catch(unlessUncounted) : { running: 0, ...listed }
      const counts = known && { nodes: known.nodes - known.segments, running: known.running }
      const end = { ...(stop_at !== undefined && { stop_at }), ...(ttl_deletes && { ttl_deletes }) }
      const reason = status_reason === undefined ? {} : { status_reason }
      return { name, status, ...reason, ...counts, project_id, ...end }
    },
    atOnce,
  )
  return {
    json: { server: client.server, labs },
    async text() {
      if (labs.length === 0) return `No labs on ${client.server}`
      const { tableOf } = await import('./table.ts')
      const rows = labs.map(({ name, status, status_reason, nodes = '-', running = 0, ...end }) => [
        name,
        status === 'closed' ? 'closed' : running === 0 ? 'stopped' : 'running',
        running === 0 ? `${nodes}` : `${running} of ${nodes}`,
        [stopText(end), status_reason ?? ''].filter((text) => text !== '').join('; '),
      ])
      return tableOf(['LAB', 'STATE', 'NODES', ''], rows)
    },
  }
}

/** For `catch`: a closed project that only a compute has, or a lab that was deleted since it was listed, has no counts. */
function unlessUncounted(error: unknown): undefined {
  if (!(error instanceof PatchbayError) || error.status !== 404) throw error
  return undefined
}
