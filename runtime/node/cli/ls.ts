import { PatchbayError } from '../../../src/client/patchbay-error.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { clientOf } from './client.ts'
import type { CommandInput, ServiceFlags, serviceFlags } from './command.ts'
import { stopText } from './durations.ts'
import type { CommandOutcome } from './outcome.ts'

const atOnce = 16

/** `patchbay ls`: the labs of a service, with the number of their nodes and of those that run. */
export async function ls({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const client = await clientOf(flags as ServiceFlags)
  const projects = await client.call('GET /v2/projects', { signal })
  const labs = await mapLimit(
    projects,
    async ({ project_id, name, status, status_reason, stop_at, ttl_deletes, counts: listed }) => {
      // A list without the number of running nodes: the lab is asked for its statistics.
      const count = () => client.call('GET /v2/projects/{project_id}/stats', { params: { project_id }, signal })
      const known = listed?.running === undefined ? await count().catch(unlessUncounted) : listed
      const counts = known && { nodes: known.nodes - known.segments, running: known.running ?? 0 }
      const stops = { ...(stop_at !== undefined && { stop_at }), ...(ttl_deletes && { ttl_deletes }) }
      const reason = status_reason === undefined ? {} : { status_reason }
      const state = labState({ status, ...counts })
      return { name, status, state, ...reason, ...counts, project_id, ...stops }
    },
    atOnce,
  )
  return {
    json: { server: client.server, labs },
    async text() {
      if (labs.length === 0) return `No labs on ${client.server}`
      const { tableOf } = await import('./table.ts')
      return tableOf(['LAB', 'STATE', 'NODES', ''], labs.map(rowOf))
    },
  }
}

interface ListedLab {
  readonly name: string
  readonly status: string
  readonly status_reason?: string
  readonly nodes?: number
  readonly running?: number
  readonly stop_at?: string
  readonly ttl_deletes?: true
}

/** The word of users for the state of a lab. */
const labState = ({ status, running = 0 }: Pick<ListedLab, 'status' | 'running'>): string =>
  status === 'closed' ? 'closed' : running === 0 ? 'stopped' : 'running'

/** A lab as a row of the table. */
export function rowOf(lab: ListedLab): string[] {
  const { name, status, status_reason = '', nodes = '-', running = 0 } = lab
  return [
    name,
    labState(lab),
    status === 'closed' || nodes === '-' ? `${nodes}` : `${running} of ${nodes}`,
    [stopText(lab), status_reason].filter((text) => text !== '').join('; '),
  ]
}

/** For `catch`: a closed project that only a compute has, or a lab that was deleted since it was listed, has no counts. */
function unlessUncounted(error: unknown): undefined {
  if (!(error instanceof PatchbayError) || error.status !== 404) throw error
  return undefined
}
