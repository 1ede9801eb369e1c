import { homedir } from 'node:os'
import { isAbsolute, join } from 'node:path'

/**
 * The configuration directory of this user: `config.toml` of the service, and `login.json` of the commands. An empty or relative
 * XDG_CONFIG_HOME counts for nothing (XDG Base Directory Specification 0.8), so that nothing is kept where a command happens to run.
 */
export function configurationDirectory({ XDG_CONFIG_HOME: base = '' }: NodeJS.ProcessEnv): string {
  return join(isAbsolute(base) ? base : join(homedir(), '.config'), 'patchbay')
}
