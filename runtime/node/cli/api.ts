import { parseArgs } from 'node:util'
import { Connection } from '../../../src/client/connection.ts'
import { fetchTransport } from '../../../src/client/transport.ts'
import { ConfigError } from '../config/config-error.ts'

/** The service that a command asks, and the arguments that are the command's own. */
interface Api {
  readonly connection: Connection
  /** Origin of the service. */
  readonly server: string
  readonly rest: readonly string[]
}

/**
 * The API client of the command line: `--server URL` or PATCHBAY_SERVER says which service, PATCHBAY_TOKEN lets the command in (a
 * token as a flag would be seen in the list of processes). Undefined when no service is named.
 */
export function apiOf(argv: readonly string[], env: NodeJS.ProcessEnv): Api | undefined {
  const { values, positionals } = parseArgs({
    args: [...argv],
    options: { server: { type: 'string' } },
    allowPositionals: true,
  })
  const named = values.server ?? env.PATCHBAY_SERVER
  if (named === undefined || named === '') return undefined
  const url = URL.canParse(named) ? new URL(named) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol) || url.pathname !== '/')
    throw new ConfigError(`--server: expected an address such as http://127.0.0.1:3080, got ${JSON.stringify(named)}`)
  const { PATCHBAY_TOKEN: token } = env
  const authorization = token === undefined || token === '' ? {} : { authorization: `Bearer ${token}` }
  const { protocol, hostname, port } = url
  const isSecure = protocol === 'https:'
  const send = fetchTransport(fetch)({
    ...{ compute_id: '', protocol: isSecure ? 'https' : 'http', host: hostname.replace(/^\[|\]$/g, '') },
    port: Number(port || (isSecure ? 443 : 80)),
  })
  const connection = new Connection({
    name: url.origin,
    send: (request) => send({ ...request, headers: { ...request.headers, ...authorization } }),
  })
  return { connection, server: url.origin, rest: positionals }
}
