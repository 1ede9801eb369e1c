import type { HealthChecks } from '../../compute/remote/session.ts'
import type { FleetTimeouts } from '../../compute/remote/timeouts.ts'
import type { SocketTransport, Transport } from '../../compute/remote/transport.ts'
import type { Compute } from '../../model/compute.ts'
import type { JoinTokens } from './join-tokens.ts'
import type { LocalHost } from './local-compute.ts'
import type { ComputeRegistry } from './registry.ts'
import type { TunnelHolder, TunnelsOptions } from './tunnels.ts'

export interface FleetOptions {
  readonly registry: ComputeRegistry
  readonly transport: Transport
  /** Absent where the runtime can open websockets only through tunnels. */
  readonly sockets?: SocketTransport
  /** Version of this service; a compute of another major version is refused. */
  readonly version: string
  /** Absent where the service runs no nodes itself. */
  readonly local?: LocalHost
  readonly timeouts?: Partial<FleetTimeouts>
  /**
   * Default: `continuous`. False is for a runtime without state between requests: it reads no feed, only requests make attempts,
   * and a lost compute does not end other requests early. `on-demand` is for a runtime that may sleep: it calls `Fleet.check` from
   * time to time, reads no feed, and does not repeat an attempt. `external`: another program connects the computes and reports
   * their states (`Fleet.acceptState`).
   */
  readonly healthChecks?: HealthChecks
  /**
   * Given by a runtime that ends all work of a request with the request, as an isolate of a Worker: an abort then only ends the wait. It keeps
   * work of the present request after its answer.
   */
  readonly waitUntil?: (work: Promise<unknown>) => void
  /** The tokens for joining computes; absent where computes cannot join. */
  readonly joinTokens?: JoinTokens
  /** Most computes; 0 or absent: as many as a fleet may have. Read for every compute that is added. */
  readonly maxComputes?: () => number
  /** Limits and timeouts of the tunnels. */
  readonly tunnels?: Pick<TunnelsOptions, 'limits' | 'timeouts' | 'watch'>
  /** Where another program holds the tunnels of this fleet. It calls `registerJoined`, `joined` and `left`. */
  readonly holder?: TunnelHolder
}

/** An event in a fleet; it never contains a password. */
export type FleetEvent =
  | { readonly type: 'compute.created' | 'compute.updated' | 'compute.deleted'; readonly compute: Compute }
  | { readonly type: 'log.warning' | 'log.error'; readonly message: string }
