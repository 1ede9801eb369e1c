import { version } from '../os/system/version.ts'
import { clientAt, serviceOf } from './client.ts'
import type { CommandInput, ServiceFlags, serviceFlags } from './command.ts'
import type { CommandOutcome } from './outcome.ts'

/** `patchbay version [--server URL]`: the version of the program, and that of the service that is named or logged in to. */
export async function versionCommand({ flags, signal }: CommandInput<typeof serviceFlags>): Promise<CommandOutcome> {
  const found = await serviceOf(flags as ServiceFlags)
  const client = found === undefined || found.isOwn ? undefined : clientAt(found)
  const service = await client?.call('GET /v2/version', { signal })
  return {
    json: { version, ...(client && service && { service: { url: client.server, version: service.version } }) },
    text: () => [version, ...(client && service ? [`${service.version} at ${client.server}`] : [])].join('\n'),
  }
}
