import { hostname } from 'node:os'
import { Fleet } from '../../../../src/fleet/pool/fleet.ts'
import { eitherTokens, listedTokens } from '../../../../src/fleet/pool/join-tokens.ts'
import type { LocalHost } from '../../../../src/fleet/pool/local-compute.ts'
import type { Tokens } from '../../../../src/server/auth/tokens.ts'
import type { ServiceRecords } from '../../engine/storage/service-records.ts'
import type { Log } from '../../os/log/log.ts'
import { version } from '../../os/system/version.ts'
import type { Config } from '../config/config.ts'
import { httpTransport } from './http-transport.ts'
import { JoinBindingsFile } from './join-bindings.ts'
import { RegistryFile } from './registry-file.ts'
import { socketTransport } from './socket-transport.ts'

export interface NodeFleetOptions {
  readonly config: Config
  readonly log: Log
  readonly records: ServiceRecords
  /** This host; absent for a gateway, which runs no nodes itself. */
  readonly local?: Pick<LocalHost, 'agent' | 'fetch'> & {
    /** That the service listens on; what was configured until it does. */
    readonly port: () => number
  }
  /** The tokens of the service, with some of which computes may join. */
  readonly tokens: Tokens | undefined
  /** The organization, with whose tokens alone its computes join; absent: `default`, to which also the tokens of the settings belong. */
  readonly organization?: string | undefined
  /** The most computes; 0 or absent: as many as a service can have. */
  readonly maxComputes?: (() => number) | undefined
}

export interface NodeFleet {
  readonly fleet: Fleet
  close(): Promise<void>
}

/** The fleet of this service: this host as `local`, and the computes in the data directory. */
export async function createNodeFleet({
  config,
  log,
  records,
  local,
  tokens,
  organization,
  maxComputes,
}: NodeFleetOptions): Promise<NodeFleet> {
  const { host: ownHost, user, tls } = config.current
  const { transport, close } = httpTransport()
  const joinTokens =
    organization === undefined
      ? eitherTokens(
          listedTokens(() => config.current.fleet.join_tokens, await JoinBindingsFile.open(records)),
          tokens?.joinTokens,
        )
      : tokens?.joinTokens
  const fleet = await Fleet.open({
    registry: new RegistryFile(records),
    transport,
    sockets: socketTransport,
    version,
    ...(joinTokens !== undefined && { joinTokens }),
    ...(maxComputes !== undefined && { maxComputes }),
    ...(local !== undefined && {
      local: {
        name: hostname(),
        // This address is right for clients on this machine only.
        address: () => ({
          protocol: tls.cert === '' ? 'http' : 'https',
          host: loopback[ownHost] ?? ownHost,
          port: local.port(),
        }),
        user: user === '' ? null : user,
        agent: local.agent,
        fetch: local.fetch,
      },
    }),
  })
  records.tellFeed((message) => fleet.reportFailure(message))
  fleet.listen((event) => {
    // A failure was logged where it was found.
    if ('message' in event) return event.type === 'log.warning' ? log.warn({}, event.message) : undefined
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
