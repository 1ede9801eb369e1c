import type { SocketTransport, Transport } from '../client/transport.ts'
import type { Compute } from '../model/compute.ts'
import type { JoinTokens } from './join-tokens.ts'
import type { LocalHost } from './local-compute.ts'
import type { Registry } from './registry.ts'
import type { FleetTimeouts } from './timeouts.ts'
import type { TunnelsOptions } from './tunnels.ts'

/** How computes are looked after; see `FleetOptions.upkeep`. */
export type Upkeep = boolean | 'rounds'

export interface FleetOptions {
  readonly registry: Registry
  readonly transport: Transport
  /** Absent where no websockets can be opened to computes, but those that have joined. */
  readonly sockets?: SocketTransport
  /** Of this service: a compute of another major version is refused. */
  readonly version: string
  /** Absent where the service runs no nodes itself. */
  readonly local?: LocalHost
  readonly timeouts?: Partial<FleetTimeouts>
  /**
   * Default: true. False where nothing lives between requests, and none may touch what another began: no feed is held, only
   * requests make attempts, and what is under way to a compute that is lost is not ended early. `rounds`: a program that may
   * sleep looks after its computes from time to time, by `Fleet.check`; no feed is held, and an attempt is made only once.
   */
  readonly upkeep?: Upkeep
  /** With which computes may join; absent where none may. */
  readonly joinTokens?: JoinTokens
  /** How the tunnels of those are kept. */
  readonly tunnels?: Pick<TunnelsOptions, 'limits' | 'timeouts' | 'watch'>
}

/** What happens in a fleet. Never has a password. */
export type FleetEvent =
  | { readonly type: 'compute.created' | 'compute.updated' | 'compute.deleted'; readonly compute: Compute }
  | { readonly type: 'log.warning' | 'log.error'; readonly message: string }
