import { existsSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'

/** The configuration directory of this user: `config.toml` of the service, and `login.json` of the commands. */
export const configurationDirectory = (env: NodeJS.ProcessEnv): string =>
  join(env.XDG_CONFIG_HOME ?? join(homedir(), '.config'), 'patchbay')

/** The data directory of this user's service: as the settings say, which are loaded only where there are some. */
export async function dataDirectory(env: NodeJS.ProcessEnv): Promise<string> {
  if (env.PATCHBAY_CONFIG !== undefined || existsSync(join(configurationDirectory(env), 'config.toml'))) {
    const { loadConfig } = await import('../config/load.ts')
    return loadConfig({ argv: [], env }).current.data
  }
  return resolve((env.PATCHBAY_DATA ?? '~/.local/share/patchbay').replace(/^~(?=\/|$)/, () => homedir()))
}
