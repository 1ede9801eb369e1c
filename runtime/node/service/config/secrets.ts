import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { reasonOf } from '../../os/system/error-reason.ts'
import { ConfigError } from './config-error.ts'
import { flagOf, getAt, isSecretSetting, type SettingKey, setAt, settingKeys, type Tree, variableOf } from './keys.ts'

/** No secret is longer: a larger file is the wrong file. */
const maxBytes = 64 * 1024

/**
 * The warnings for secrets in flags, which every user of the host can read in the list of processes. ConfigError without a terminal,
 * because a script or a unit file can use a safer way.
 */
export const warnOfFlags = (flags: Tree, isTerminal: boolean): string[] =>
  settingKeys
    .filter((setting) => isSecretSetting(setting) && getAt(flags, setting.path) !== undefined)
    .map((setting) => {
      const why = `--${flagOf(setting)} can be read by every user of this machine in the list of processes`
      if (!isTerminal) throw new ConfigError(`${why}: ${otherWays(setting)}`)
      return `${why}; ${otherWays(setting)}`
    })

function otherWays(secret: SettingKey): string {
  const file = settingKeys.find((it) => it.schema.fileOf === secret.key)
  const byFile = file === undefined ? '' : `--${flagOf(file)} FILE, `
  return `use ${byFile}the variable ${variableOf(secret)}, or the configuration file`
}

/**
 * Fills in secrets from files: from the file of a setting (`token_file` for `token`), else from a credential of systemd
 * (LoadCredential=patchbay.token:PATH, systemd.exec(5)). Adds to `sources` and `warnings`. ConfigError for a file that cannot be
 * used, and for a secret that is set twice.
 */
export function readSecretFiles(
  values: Tree,
  given: { credentials: string | undefined; sources: Map<string, string>; warnings: string[] },
): void {
  const { credentials, sources, warnings } = given
  for (const file of settingKeys) {
    const secret = settingKeys.find((it) => it.key === file.schema.fileOf)
    if (secret === undefined) continue
    const named = String(getAt(values, file.path) ?? '')
    const isGiven = String(getAt(values, secret.path) ?? '') !== ''
    if (named !== '') {
      if (isGiven) throw new ConfigError(`${secret.key} and ${file.key} are the same secret: set one of them`)
      setAt(values, secret.path, secretIn(file.key, named))
      sources.set(secret.key, `file ${named}`)
      if (isOpen(named)) warnings.push(`${file.key}: other users of this machine may read ${named}: chmod 600 ${named}`)
    } else if (!isGiven && credentials !== undefined) {
      const name = `patchbay.${secret.key}`
      const text = secretIn(`credential ${name}`, join(credentials, name), true)
      if (text === undefined) continue
      setAt(values, secret.path, text)
      sources.set(secret.key, `credential ${name}`)
    }
  }
}

function secretIn(what: string, path: string): string
function secretIn(what: string, path: string, mayBeAbsent: true): string | undefined
function secretIn(what: string, path: string, mayBeAbsent = false): string | undefined {
  let text: string
  try {
    if (statSync(path).size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
    text = readFileSync(path, 'utf8').replace(/\r?\n$/, '')
  } catch (error) {
    if (mayBeAbsent && (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new ConfigError(`${what}: ${path} cannot be read: ${reasonOf(error)}`)
  }
  if (text === '' || /[\r\n]/.test(text)) {
    throw new ConfigError(
      `${what}: ${path}: expected one line with the secret, got ${text === '' ? 'nothing' : 'several'}`,
    )
  }
  return text
}

const isOpen = (path: string): boolean => (statSync(path).mode & 0o077) !== 0
