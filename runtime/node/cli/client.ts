import { type Answer, Patchbay, type PatchbayOptions } from '../../../src/client/patchbay.ts'
import { type Login, loginPath, readLogin } from '../engine/storage/login-file.ts'
import { runningService } from '../engine/storage/service-file.ts'
import { reasonOf } from '../os/system/error-reason.ts'
import { configurationDirectory } from '../service/config/directory.ts'
import type { ServiceFlags } from './command.ts'
import { dataDirectory } from './data-directory.ts'
import { CommandError, exits, wrongArguments } from './exits.ts'
import { recordAnswer } from './last-answer.ts'
import { wireFetch } from './wire-fetch.ts'

/** Whom a command asks, and until when. */
export interface CommandContext {
  readonly client: Patchbay
  /** Aborts at Ctrl-C. */
  readonly signal: AbortSignal
}

/** Where a command sends its calls. */
interface Service {
  readonly url: string
  readonly token: string | undefined
  /** Whether it is the running one of this user, and none was named. */
  readonly isOwn?: boolean
}

/** The client of the service that a command asks. CommandError 5 when none is named and none runs. */
export async function clientOf(
  flags: Pick<ServiceFlags, 'server'>,
  more: Pick<PatchbayOptions, 'WebSocket'> = {},
): Promise<Patchbay> {
  const service = await serviceOf(flags)
  if (service === undefined)
    throw new CommandError(exits.noService, [
      { message: 'no service is running here', hint: '"patchbay up FILE" starts one; --server URL selects another' },
    ])
  return clientAt(service, more)
}

export const clientAt = ({ url, token }: Service, more: Pick<PatchbayOptions, 'WebSocket'> = {}): Patchbay =>
  new Patchbay({
    server: url,
    token,
    fetch: notedFetch,
    reasonOf: systemReason,
    ...more,
    organization: process.env.PATCHBAY_ORGANIZATION || undefined,
  })

async function notedFetch(url: string, init: RequestInit): Promise<Answer> {
  const answer = await wireFetch(url, init)
  recordAnswer(init.method ?? 'GET', url)
  return answer
}

/** The reason of the system why a request failed. */
function systemReason(error: unknown): string {
  const { code, cause } = error as Error & { code?: string }
  return code === undefined && cause instanceof Error ? systemReason(cause) : reasonOf(error)
}

/**
 * The service that a command asks: the named one, else that of `patchbay login`, else the running one of this user. Undefined when none
 * is named and none runs. A kept token goes to its own service alone.
 */
export async function serviceOf(
  { server }: Pick<ServiceFlags, 'server'>,
  env = process.env,
): Promise<Service | undefined> {
  const named = server ?? (env.PATCHBAY_SERVER || undefined)
  const token = env.PATCHBAY_TOKEN || undefined
  const login = loginOf(env)
  if (named !== undefined) {
    const url = originOf(named)
    return { url, token: token ?? (login?.server === url ? login.token : undefined) }
  }
  if (login !== undefined) return { url: login.server, token: token ?? login.token }
  const own = runningService(await dataDirectory(env))
  return own && { url: own.url, token: token ?? own.token, isOwn: true }
}

/** What `patchbay login` has kept. CommandError 1 for a file that cannot be used. */
export function loginOf(env: NodeJS.ProcessEnv): Login | undefined {
  const configuration = configurationDirectory(env)
  try {
    return readLogin(configuration)
  } catch (error) {
    throw new CommandError(
      exits.failed,
      [
        {
          message: `${loginPath(configuration)} cannot be used: ${reasonOf(error)}`,
          hint: '"patchbay logout" removes it, "patchbay login URL" writes it again',
        },
      ],
      { cause: error },
    )
  }
}

/** 64 unless the text is the address of a service. `hint`: what else would be right. */
export function originOf(text: string, from = '--server', hint?: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== '/' || url.username !== '')
    throw wrongArguments(
      `${from}: expected an address such as http://127.0.0.1:3080, got ${JSON.stringify(text)}`,
      hint,
    )
  return url.origin
}
