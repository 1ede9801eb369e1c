import { Version } from '../../../src/model/host.ts'
import { version } from '../system/version.ts'
import { apiOf } from './api.ts'

/** `patchbay version [--server URL]`: the version of the program, and that of a service that is named. */
export async function versionCommand(argv: readonly string[]): Promise<number> {
  process.stdout.write(`${version}\n`)
  const api = apiOf(argv, process.env)
  if (api === undefined) return 0
  const service = await api.connection.json(Version, { method: 'GET', path: '/v2/version' })
  process.stdout.write(`${service.version} at ${api.server}\n`)
  return 0
}
