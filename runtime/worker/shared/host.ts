import { env } from 'cloudflare:workers'
import { gns3Dialect } from '../../../src/endpoints/gns3/dialect.ts'
import type { GatewayHost } from '../../../src/fleet/gateway/host.ts'
import { readHere } from '../../../src/importers/readers.ts'
import { type ApiError, retryLater } from '../../../src/lib/errors/api-error.ts'
import type { AdmissionParts, RuntimeParts } from '../../../src/server/app-options.ts'
import { LoginLimit } from '../../../src/server/auth/login-limit.ts'
import { assetOf } from '../../../src/server/http/assets.ts'
import type { Dialect } from '../../../src/server/http/dialect.ts'
import type { Json } from '../../../src/server/http/endpoint.ts'
import { jsonHeaders } from '../../../src/server/http/json-headers.ts'
import script from '../../vendor/rapidoc-min.js'
import { confirmationKey } from './auth.ts'
import { aliasesOf, type Env } from './env.ts'
import { pageFile } from './page-files.ts'
import { upgrade } from './sockets.ts'

export const json: Json = (body, status, headers) =>
  new Response(body, { status, headers: { ...jsonHeaders, ...headers } })

/** The Worker as a host: it runs nothing itself. */
export const gatewayHost = (metrics: GatewayHost['metrics'] = async () => []): GatewayHost => ({
  version: PATCHBAY_VERSION,
  metrics,
})

/** Cloudflare sets the header, and removes one that a client sent. */
const peer: AdmissionParts['peer'] = ({ headers, url }) => ({
  address: headers.get('cf-connecting-ip') ?? '',
  isSecure: url.startsWith('https:'),
})

/**
 * Limits wrong log-ins. Each isolate counts its own; with the binding LOGINS all isolates of a location count together, too. LOGINS
 * counts after the check, so an isolate without a wrong log-in of its own lets one more through.
 */
const logins = new LoginLimit({
  async counted(key) {
    const { LOGINS } = env as unknown as Env
    // When the count cannot be read the log-in is not refused.
    const counted = await LOGINS?.limit({ key }).catch(() => undefined)
    return counted?.success !== false
  },
  perMinute: () => wrongLoginsPerMinute,
  // biome-ignore lint/suspicious/noConsole: the log of a Worker
  limited: ({ address }) => console.warn(`too many wrong log-ins from ${address}: more are refused without a check`),
})
const wrongLoginsPerMinute = 10

// biome-ignore lint/suspicious/noConsole: the log of a Worker
export const warn = (message: string): void => console.warn(message)

/** Logs a failure that is a defect. */
export const reportDefect = (error: unknown, what: string): void => {
  // biome-ignore lint/suspicious/noConsole: the log of a Worker
  console.error(`${what}:`, error)
}

/**
 * 503 for the failure of an object that has ended while it was asked, such as at a deployment or because it was deleted, or that has too
 * much to do; undefined for other errors.
 */
export function objectError(error: unknown): ApiError | undefined {
  const { durableObjectReset, overloaded, retryable, remote } = Object(error) as Readonly<Record<string, unknown>>
  // A connection to a client or a compute that was lost is retryable, too.
  const isOfObject = durableObjectReset === true || overloaded === true || (retryable === true && remote === true)
  if (!isOfObject) return undefined
  return retryLater(503, 'A part of the gateway has just ended, or has too much to do; try again', 1, error)
}

/** The dialect of clients: the same in isolates and objects, as requests are forwarded unchanged. */
const dialectOf = ({ CLIENTS, CLIENTS_VERSION }: Env): Dialect | undefined =>
  CLIENTS === 'gns3'
    ? gns3Dialect({ version: CLIENTS_VERSION || '2.2.59', own: PATCHBAY_VERSION, hasWebUi: false })
    : undefined

/** Most bytes of a JSON body. */
export const jsonBytes = 2 ** 20

/** What the app of isolates and objects does in the way of Workers. */
const runtime: RuntimeParts = {
  read: readHere,
  json,
  upgrade,
  // In Workers `performance.now` says the same, and takes longer.
  clock: Date.now,
  async assets(name) {
    const text = name === 'rapidoc-min.js' ? script : pageFile(name)
    return text === undefined ? undefined : assetOf(name, text)
  },
  apiErrorOf: objectError,
  report: (error, requestId) => reportDefect(error, `request ${requestId} failed`),
}

/** Options of the app that isolates and objects share. `organization`: see `Objects.named`. */
export const commonOptions = (env: Env, organization: string | undefined) => ({
  version: PATCHBAY_VERSION,
  jsonBytes,
  runtime: {
    ...runtime,
    assistants: { approves: () => env.MCP_APPROVE === 'true', confirmKey: confirmationKey(env) },
  },
  aliases: aliasesOf(env),
  dialect: dialectOf(env),
  ...(organization !== undefined && { organization }),
})

/** What isolates and objects admit requests by, beside their credentials. */
export const commonAdmission = { peer, logins } satisfies Partial<AdmissionParts>
