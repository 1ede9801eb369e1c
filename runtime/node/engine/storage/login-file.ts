import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

/** The service that `patchbay login` was given, in `login.json` of the configuration directory (mode 0600). */
export interface Login {
  /** Origin. */
  readonly server: string
  /** Lets commands in; absent: the service wants none. */
  readonly token?: string | undefined
}

export const loginPath = (configuration: string): string => join(configuration, 'login.json')

/** Writes the file. Throws the system's error. */
export function writeLogin(configuration: string, login: Login): void {
  const path = loginPath(configuration)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  // A file that a killed command has left may be readable by others.
  rmSync(`${path}.new`, { force: true })
  writeFileSync(`${path}.new`, `${JSON.stringify(login)}\n`, { mode: 0o600, flag: 'wx' })
  renameSync(`${path}.new`, path)
}

/** The login of this user; undefined: there is none. Throws for a file that is damaged or cannot be read. */
export function readLogin(configuration: string): Login | undefined {
  const path = loginPath(configuration)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
    if ((statSync(path).mode & 0o077) !== 0) chmodSync(path, 0o600)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
  // Every command reads it: a library for schemas takes longer to load than the whole command.
  const login = JSON.parse(text) as Partial<Login> | null
  if (!URL.canParse(String(login?.server)) || !['string', 'undefined'].includes(typeof login?.token))
    throw new Error('its content is malformed')
  return login as Login
}

/** Removes the file; false when there is none. */
export function removeLogin(configuration: string): boolean {
  try {
    rmSync(loginPath(configuration))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}
