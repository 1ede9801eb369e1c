import { anyOf, type Verifier } from '../../../../src/model/access/identity.ts'
import { LoginLimit } from '../../../../src/server/auth/login-limit.ts'
import { RateLimit } from '../../../../src/server/auth/rate-limit.ts'
import { type SessionKeeper, Sessions } from '../../../../src/server/auth/sessions.ts'
import { parseToken } from '../../../../src/server/auth/token-text.ts'
import { Tokens } from '../../../../src/server/auth/tokens.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'
import type { Log } from '../../os/log/log.ts'
import type { Config, Resolved } from '../config/config.ts'
import { isLoopbackHost } from '../config/loopback.ts'
import { keeperOfEach, SessionFiles, sessionKey } from './session-files.ts'
import { TokenFile } from './token-file.ts'

/** Default limit of a gateway for each credential, requests per second. */
const perSecondOfGateway = 100

/** The tokens and the ended sessions of one organization. */
export interface OrganizationAuth {
  readonly tokens: Tokens
  readonly keeper: SessionKeeper
}

/** Opens those in the records of an organization; `organization`: absent for `default`. */
export async function openOrganizationAuth(records: ServiceRecords, organization?: string): Promise<OrganizationAuth> {
  const tokens = new Tokens({ store: await TokenFile.open(records), organization, hasSsh: true })
  return { tokens, keeper: await SessionFiles.open(records, tokens) }
}

/** The tokens, sessions and limits beside the configured credentials. */
export interface Auth {
  /** Undefined: their file cannot be read, and no request needs one. */
  readonly tokens: Tokens | undefined
  /** For `Access`. */
  readonly verifier: Verifier | undefined
  readonly rateLimit: RateLimit
  readonly logins: LoginLimit
  readonly sessions: Sessions | undefined
}

/**
 * Opens the tokens and sessions. A service without credentials in its configuration asks for tokens beyond loopback only: on loopback every
 * client may do everything, and make the first token.
 */
export async function openAuth(
  options: Readonly<{
    config: Config
    log: Log
    records: ServiceRecords
    isGateway?: boolean
    /** Of the organizations beside `default`; undefined for one that is not there. */
    authOf?: (organization: string) => Promise<OrganizationAuth | undefined>
  }>,
): Promise<Auth> {
  const { config, log, records, isGateway = false, authOf = async () => undefined } = options
  const { current } = config
  const rateLimit = new RateLimit(() => {
    const { per_s, burst } = config.current.rate_limit
    const perSecond = per_s ?? (isGateway ? perSecondOfGateway : 0)
    return { perSecond, burst: burst === 0 ? 3 * perSecond : burst }
  })
  const logins = new LoginLimit({
    perMinute: () => config.current.limits.wrong_logins,
    limited: (login) => log.warn(login, 'too many wrong log-ins from this address: more are refused without a check'),
  })
  const verifiers: Verifier[] = []
  let tokens: Tokens | undefined
  let sessions: Sessions | undefined
  if (hasCredentials(current) || (!isLoopbackHost(current.host) && !current.insecure)) {
    const ours = await openOrganizationAuth(records)
    const of = async (organization: string | undefined) => (organization === undefined ? ours : authOf(organization))
    tokens = ours.tokens
    const key = await sessionKey(current.data)
    const keeper = keeperOfEach(async (organization) => (await of(organization))?.keeper)
    sessions = new Sessions({ key: async () => key, keeper })
    verifiers.push(async (_, token) => {
      if (token === undefined) return undefined
      return (await of(parseToken(token)?.organization))?.tokens.identify(token)
    })
  } else {
    tokens = await openOrganizationAuth(records).then(
      (ours) => ours.tokens,
      (error: Error) => void log.warn({}, `tokens cannot be made: ${error.message}`),
    )
    if ((await tokens?.list())?.length)
      log.warn(
        {},
        'no credentials are configured: every client may use the service, whatever its token; SSH needs keys',
      )
  }
  const { team_domain, audience, role, admins, organizations } = current.cloudflare_access
  if (team_domain !== '') {
    const { cloudflareAccess } = await import('../../../../src/server/auth/cloudflare-access.ts')
    verifiers.push(cloudflareAccess({ teamDomain: team_domain, audience, role, admins, organizations }))
  }
  return { tokens, verifier: verifiers.length === 0 ? undefined : anyOf(...verifiers), rateLimit, logins, sessions }
}

const hasCredentials = ({ user, token, cloudflare_access }: Resolved): boolean =>
  user !== '' || token !== '' || cloudflare_access.team_domain !== ''
