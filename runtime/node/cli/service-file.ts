import { existsSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { identify, isSame, type ProcessIdentity } from '../system/process-identity.ts'

/** What a running service tells the commands of its user, in `{data}/run/service.json` (mode 0600). */
export interface ServiceFile {
  readonly process: ProcessIdentity
  /** Origin that the user of this machine reaches it at. */
  readonly url: string
  readonly version: string
  /** Lets commands in; absent: the service wants no credentials, or others than a token. */
  readonly token?: string
  /** `up` has started it. */
  readonly detached: boolean
}

export const serviceFileIn = (data: string): string => join(data, 'run', 'service.json')

/** The data directory of this user's service: as the settings say, which are loaded only where there are some. */
export async function dataDirectory(env: NodeJS.ProcessEnv): Promise<string> {
  const file = env.PATCHBAY_CONFIG ?? join(env.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'patchbay', 'config.toml')
  if (env.PATCHBAY_CONFIG !== undefined || existsSync(file)) {
    const { loadConfig } = await import('../config/load.ts')
    return loadConfig({ argv: [], env }).current.data
  }
  return resolve((env.PATCHBAY_DATA ?? '~/.local/share/patchbay').replace(/^~(?=\/|$)/, () => homedir()))
}

/** The running service of a data directory; undefined when none runs. */
export function runningService(data: string): ServiceFile | undefined {
  try {
    const found = JSON.parse(readFileSync(serviceFileIn(data), 'utf8')) as ServiceFile
    return isSame(found.process, identify(found.process.pid)) ? found : undefined
  } catch {
    return undefined
  }
}
