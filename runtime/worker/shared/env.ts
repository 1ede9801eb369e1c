import { organizationIdForm } from '../../../src/model/organization.ts'
import { aliasIssue } from '../../../src/model/validation/foreign-words.ts'

/** The configuration of the Worker: wrangler.toml, and secrets of `wrangler secret put`. */
export interface Env {
  readonly DIRECTORIES: DurableObjectNamespace
  readonly COMPUTES: DurableObjectNamespace
  readonly PROJECTS: DurableObjectNamespace
  /** A bucket of R2 for archives of closed projects; without it there are none. */
  readonly ARCHIVES?: R2Bucket
  /** A bucket of R2 for images, by their digests; without it they are copied from compute to compute. */
  readonly IMAGES?: R2Bucket
  /** Names the process, where one process runs all objects and their connections end with it; see `npm run gateway`. */
  readonly PROCESS?: string
  /** Secret that encrypts the credentials of computes; at least 32 characters. */
  readonly FLEET_KEY?: string
  /** Secret: the token of the administrator. */
  readonly ADMIN_TOKEN?: string
  /** Domain of a team, such as team.cloudflareaccess.com: users of its Cloudflare Access have the role `operate`. */
  readonly ACCESS_TEAM_DOMAIN?: string
  /** The Application Audience (AUD) tag. */
  readonly ACCESS_AUDIENCE?: string
  /** E-mail addresses of users with the role `admin`, separated by commas. */
  readonly ACCESS_ADMINS?: string
  /** Organizations of users by the domain of their e-mail address, separated by commas: school.example=school. */
  readonly ACCESS_ORGANIZATIONS?: string
  /** Origins of web pages that may call the gateway, separated by commas. */
  readonly ALLOWED_ORIGINS?: string
  /** Requests a second for each credential; 0: no limit. */
  readonly RATE_PER_S?: string
  /** Counts wrong log-ins over the isolates of a location; without it each isolate counts its own. */
  readonly LOGINS?: RateLimit
  /** Aliases of path words, separated by commas: vpcs=pc. */
  readonly ALIASES?: string
  /** `gns3`: the words, members and statuses of release 2.2 of GNS3; default `patchbay`. */
  readonly CLIENTS?: string
  /** The version for GNS3 clients that do not send theirs; default 2.2.59. */
  readonly CLIENTS_VERSION?: string
  /** `true`: assistants (MCP) change nothing before they confirm the number of its plan. */
  readonly MCP_APPROVE?: string
}

/** Settings that are no secrets, and may be left out. */
export const settingNames = [
  ...(['ACCESS_TEAM_DOMAIN', 'ACCESS_AUDIENCE', 'ACCESS_ADMINS', 'ACCESS_ORGANIZATIONS'] as const),
  ...(['ALLOWED_ORIGINS', 'RATE_PER_S', 'ALIASES', 'CLIENTS', 'CLIENTS_VERSION', 'MCP_APPROVE'] as const),
] satisfies (keyof Env)[]

const shortestKey = 32
const shortestToken = 16

/** The message about the first missing or invalid setting; undefined when all are valid. */
export function missingSetting({ FLEET_KEY = '', ADMIN_TOKEN = '', ...more }: Env): string | undefined {
  const wanted = []
  if (FLEET_KEY.length < shortestKey) wanted.push(`FLEET_KEY (at least ${shortestKey} characters)`)
  if (ADMIN_TOKEN.length < shortestToken) wanted.push(`ADMIN_TOKEN (at least ${shortestToken} characters)`)
  if (wanted.length > 0)
    return `Secrets are missing: ${wanted.join(' and ')}; set each by "npm run wrangler -- secret put NAME"`
  if ((more.ACCESS_TEAM_DOMAIN ?? '') !== '' && (more.ACCESS_AUDIENCE ?? '') === '')
    return 'ACCESS_TEAM_DOMAIN is set without ACCESS_AUDIENCE: set that to the AUD tag of the application'
  if (!(rateOf(more) >= 0)) return 'RATE_PER_S: a number of requests is needed, or 0'
  if (!['', 'patchbay', 'gns3'].includes(more.CLIENTS ?? '')) return 'CLIENTS: patchbay or gns3 is needed'
  if (!['', 'true', 'false'].includes(more.MCP_APPROVE ?? '')) return 'MCP_APPROVE: true or false is needed'
  if (listSetting(more.ALIASES).some((pair) => !aliasForm.test(pair)))
    return 'ALIASES: pairs such as vpcs=pc are needed'
  if (Object.values(organizationsOf(more)).some((id) => !organizationIdForm.test(id)))
    return 'ACCESS_ORGANIZATIONS: pairs such as school.example=school are needed'
  for (const [theirs, ours] of Object.entries(aliasesOf(more))) {
    const fault = aliasIssue(theirs, ours)
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

/** The organizations of users of Cloudflare Access, by the domain of their e-mail address. */
export const organizationsOf = ({ ACCESS_ORGANIZATIONS }: Pick<Env, 'ACCESS_ORGANIZATIONS'>): Record<string, string> =>
  Object.fromEntries(
    listSetting(ACCESS_ORGANIZATIONS).map((pair) => {
      const [domain = '', id = ''] = pair.split('=')
      return [domain, id]
    }),
  )

export const listSetting = (text = ''): string[] =>
  text
    .split(',')
    .map((word) => word.trim().toLowerCase())
    .filter((word) => word !== '')
