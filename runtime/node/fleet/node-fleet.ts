import { hostname } from 'node:os'
import { Fleet } from '../../../src/fleet/fleet.ts'
import { listedTokens } from '../../../src/fleet/join-tokens.ts'
import type { LocalHost } from '../../../src/fleet/local-compute.ts'
import type { Config } from '../config/config.ts'
import type { Log } from '../log.ts'
import { version } from '../version.ts'
import { httpTransport } from './http-transport.ts'
import { RegistryFile } from './registry-file.ts'
import { socketTransport } from './socket-transport.ts'

export interface NodeFleetOptions extends Pick<LocalHost, 'host' | 'fetch'> {
  readonly config: Config
  readonly log: Log
  /** That the service listens on; what was configured until it does. */
  readonly port: () => number
}

export interface NodeFleet {
  readonly fleet: Fleet
  close(): Promise<void>
}

/** The fleet of this service: this host as `local`, and the computes in the data directory. */
export async function createNodeFleet({ config, log, port, host, fetch }: NodeFleetOptions): Promise<NodeFleet> {
  const { data, host: ownHost, user } = config.current
  const { transport, close } = httpTransport()
  const fleet = await Fleet.open({
    registry: new RegistryFile({ data, floorMb: () => config.current.min_free_space_mb, log }),
    transport,
    sockets: socketTransport,
    version,
    joinTokens: listedTokens(() => config.current.fleet.join_tokens),
    local: {
      name: hostname(),
      // Everybody on this machine reaches it so; others have to know better.
      address: () => ({ protocol: 'http', host: loopback[ownHost] ?? ownHost, port: port() }),
      user: user === '' ? null : user,
      host,
      fetch,
    },
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
