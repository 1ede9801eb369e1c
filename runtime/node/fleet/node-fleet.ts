import { hostname } from 'node:os'
import type { Tokens } from '../../../src/auth/tokens.ts'
import { Fleet } from '../../../src/fleet/fleet.ts'
import { eitherTokens, listedTokens } from '../../../src/fleet/join-tokens.ts'
import type { LocalHost } from '../../../src/fleet/local-compute.ts'
import type { Config } from '../config/config.ts'
import type { Log } from '../log/log.ts'
import { version } from '../system/version.ts'
import { httpTransport } from './http-transport.ts'
import { JoinBindingsFile } from './join-bindings.ts'
import { RegistryFile } from './registry-file.ts'
import { socketTransport } from './socket-transport.ts'

export interface NodeFleetOptions {
  readonly config: Config
  readonly log: Log
  /** This host; absent for a gateway, which runs no nodes itself. */
  readonly local?: Pick<LocalHost, 'host' | 'fetch'> & {
    /** That the service listens on; what was configured until it does. */
    readonly port: () => number
  }
  /** The tokens of the service, with some of which computes may join. */
  readonly tokens: Tokens | undefined
}

export interface NodeFleet {
  readonly fleet: Fleet
  close(): Promise<void>
}

/** The fleet of this service: this host as `local`, and the computes in the data directory. */
export async function createNodeFleet({ config, log, local, tokens }: NodeFleetOptions): Promise<NodeFleet> {
  const { data, host: ownHost, user, tls } = config.current
  const { transport, close } = httpTransport()
  const minFreeMb = () => config.current.min_free_space_mb
  const bindings = await JoinBindingsFile.open({ data, minFreeMb, log })
  const fleet = await Fleet.open({
    registry: new RegistryFile({ data, minFreeMb, log }),
    transport,
    sockets: socketTransport,
    version,
    joinTokens: eitherTokens(
      listedTokens(() => config.current.fleet.join_tokens, bindings),
      tokens?.joinTokens,
    ),
    ...(local !== undefined && {
      local: {
        name: hostname(),
        // Everybody on this machine reaches it so; others have to know better.
        address: () => ({
          protocol: tls.cert === '' ? 'http' : 'https',
          host: loopback[ownHost] ?? ownHost,
          port: local.port(),
        }),
        user: user === '' ? null : user,
        host: local.host,
        fetch: local.fetch,
      },
    }),
  })
  fleet.listen((event) => {
    if (event.type === 'log.warning') return log.warn({}, event.message)
    const { compute_id, name, connected, last_error } = event.compute
    log.debug({ compute_id, name, connected, last_error }, event.type)
  })
  return {
    fleet,
    async close() {
      await fleet.close()
      close()
    },
  }
}

const loopback: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '::1' }
