import { aliasFault } from '../../src/http/foreign-words.ts'
import type { FleetObject } from './fleet-object.ts'
import type { ProjectObject } from './project-object.ts'

/** What the Worker is given: by wrangler.toml, and by `wrangler secret put`. */
export interface Env {
  readonly FLEET: DurableObjectNamespace<FleetObject>
  readonly PROJECTS: DurableObjectNamespace<ProjectObject>
  /** Secret: what credentials of computes are sealed with, at least 32 characters. */
  readonly FLEET_KEY?: string
  /** Secret: who has it may do everything. */
  readonly ADMIN_TOKEN?: string
  /** Such as team.cloudflareaccess.com: whom Cloudflare Access lets in may run labs. */
  readonly ACCESS_TEAM_DOMAIN?: string
  /** The Application Audience (AUD) tag. */
  readonly ACCESS_AUDIENCE?: string
  /** E-mail addresses of those who may do everything, separated by commas. */
  readonly ACCESS_ADMINS?: string
  /** Origins of web pages that may use the gateway, separated by commas. */
  readonly ALLOWED_ORIGINS?: string
  /** Requests a second for each credential; 0: no limit. */
  readonly RATE_PER_S?: string
  /** Counts wrong log-ins of all isolates of a location; without it each counts for itself. */
  readonly LOGINS?: RateLimit
  /** Path words of clients for ours, separated by commas: vpcs=pc. */
  readonly ALIASES?: string
  /** `gns3`: the words, members and statuses of release 2.2 of GNS3; default `patchbay`. */
  readonly CLIENTS?: string
  /** The version that those clients are told which do not say their own; default 2.2.59. */
  readonly CLIENTS_VERSION?: string
}

const shortestKey = 32
const shortestToken = 16

/** What must be set before anything can be served, as a person needs it; undefined when all is there. */
export function missingSetting({ FLEET_KEY = '', ADMIN_TOKEN = '', ...more }: Env): string | undefined {
  const wanted = []
  if (FLEET_KEY.length < shortestKey) wanted.push(`FLEET_KEY (at least ${shortestKey} characters)`)
  if (ADMIN_TOKEN.length < shortestToken) wanted.push(`ADMIN_TOKEN (at least ${shortestToken} characters)`)
  if (wanted.length > 0) return `The secrets are not set: npx wrangler secret put ${wanted.join(' and ')}`
  if ((more.ACCESS_TEAM_DOMAIN ?? '') !== '' && (more.ACCESS_AUDIENCE ?? '') === '')
    return 'ACCESS_TEAM_DOMAIN is set, and ACCESS_AUDIENCE is not: the AUD tag of the application is needed'
  if (!(rateOf(more) >= 0)) return 'RATE_PER_S: a number of requests is needed, or 0'
  if (!['', 'patchbay', 'gns3'].includes(more.CLIENTS ?? '')) return 'CLIENTS: patchbay or gns3 is needed'
  if (listSetting(more.ALIASES).some((pair) => !aliasForm.test(pair)))
    return 'ALIASES: pairs such as vpcs=pc are needed'
  for (const [theirs, ours] of Object.entries(aliasesOf(more))) {
    const fault = aliasFault(theirs, ours)
    if (fault !== undefined) return `ALIASES: ${theirs}: ${fault}`
  }
  return undefined
}

export const rateOf = ({ RATE_PER_S = '' }: Pick<Env, 'RATE_PER_S'>): number =>
  RATE_PER_S === '' ? defaultRate : Number(RATE_PER_S)
const defaultRate = 100

const aliasForm = /^([a-z0-9-]+)=([a-z0-9-]+)$/
export const aliasesOf = ({ ALIASES }: Pick<Env, 'ALIASES'>): Record<string, string> =>
  Object.fromEntries(listSetting(ALIASES).map((pair) => pair.split('=')))

export const listSetting = (text = ''): string[] =>
  text
    .split(',')
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== '')
