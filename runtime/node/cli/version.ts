import { version } from '../os/system/version.ts'
import { clientAt, serviceOf } from './client.ts'
import type { CommandInput, ServiceFlags, serviceFlags } from './command.ts'
import type { CommandOutcome } from './outcome.ts'

/** `patchbay version [--server URL]`: the version of the program, and that of a service that is named. */
export async function versionCommand({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const isNamed = flags.server !== undefined || Boolean(process.env.PATCHBAY_SERVER)
  const named = isNamed ? await serviceOf(flags as ServiceFlags) : undefined
  const client = named && clientAt(named)
  const service = await client?.call('GET /v2/version', { signal })
  return {
    json: { version, ...(client && service && { service: { url: client.server, version: service.version } }) },
    text: () => [version, ...(client && service ? [`${service.version} at ${client.server}`] : [])].join('\n'),
  }
}
