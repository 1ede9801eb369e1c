import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { configurationDirectory } from '../service/config/directory.ts'

/** The data directory of this user's service: as the settings say, which are loaded only where there are some. */
export async function dataDirectory(env: NodeJS.ProcessEnv): Promise<string> {
  if (env.PATCHBAY_CONFIG !== undefined || existsSync(join(configurationDirectory(env), 'config.toml'))) {
    const { loadConfig } = await import('../service/config/load.ts')
    return loadConfig({ argv: [], env }).current.data
  }
  return resolve((env.PATCHBAY_DATA ?? '~/.local/share/patchbay').replace(/^~(?=\/|$)/, () => homedir()))
}
