import type { AppOptions } from '../../src/app.ts'
import { LoginLimit } from '../../src/auth/login-limit.ts'
import type { GatewayHost } from '../../src/gateway/host.ts'
import type { Json } from '../../src/http/endpoint.ts'
import script from '../vendor/rapidoc-min.js'

export const json: Json = (body, status, headers) =>
  new Response(body, { status, headers: { 'Content-Type': 'application/json', ...headers } })

/** The Worker as a host: it runs nothing itself. */
export const gatewayHost = (metrics: GatewayHost['metrics'] = async () => []): GatewayHost => ({
  version: PATCHBAY_VERSION,
  metrics,
})

/** Cloudflare sets the header, and takes away what a client sent in it. */
const peer: AppOptions['peer'] = ({ headers, url }) => ({
  address: headers.get('cf-connecting-ip') ?? '',
  isSecure: url.startsWith('https:'),
})

/** Counted by each isolate for itself. */
const logins = new LoginLimit({
  perMinute: () => wrongLoginsPerMinute,
  // biome-ignore lint/suspicious/noConsole: the log of a Worker
  limited: ({ address }) => console.warn(`too many wrong log-ins from ${address}: more are refused unseen`),
})
const wrongLoginsPerMinute = 10

/** What the app is given in the object and in isolates alike. */
export const common = {
  version: PATCHBAY_VERSION,
  jsonBytes: 2 ** 20,
  json,
  peer,
  logins,
  docsScript: async () => script,
  // biome-ignore lint/suspicious/noConsole: the log of a Worker
  report: (error, requestId) => console.error(`request ${requestId} failed:`, error),
} satisfies Partial<AppOptions>
