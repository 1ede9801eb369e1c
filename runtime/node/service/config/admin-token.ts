import { readFileSync } from 'node:fs'
import { join } from 'node:path'

/**
 * Whether an administrator has a token of the service, which is in `{data}/tokens.json`: then it may listen beyond loopback without other
 * credentials. It is asked before the service opens its files, so what cannot be read counts as none.
 */
export function hasAdminToken(data: string, now = Date.now()): boolean {
  try {
    const { version, tokens } = JSON.parse(readFileSync(join(data, 'tokens.json'), 'utf8')) as Partial<Stored>
    return version === 1 && tokens?.some((token) => isOfAdministrator(token, now)) === true
  } catch {
    return false
  }
}

interface Stored {
  readonly version: number
  readonly tokens: readonly { readonly role: string; readonly purpose: string; readonly expires_at: string | null }[]
}

const isOfAdministrator = ({ role, purpose, expires_at }: Stored['tokens'][number], now: number): boolean =>
  role === 'admin' && purpose === 'user' && (expires_at === null || Date.parse(expires_at) > now)
