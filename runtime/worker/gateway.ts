import { type App, createApp } from '../../src/app.ts'
import type { TokenStore } from '../../src/auth/token-store.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { fetchTransport } from '../../src/fleet/transport.ts'
import { between } from '../../src/gateway/between.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import { createGateway } from '../../src/gateway/gateway-agent.ts'
import type { PlacementStore } from '../../src/gateway/members.ts'
import { RequestMetrics } from '../../src/http/request-metrics.ts'
import type { Upgrade } from '../../src/http/socket.ts'
import { openAuth } from './auth.ts'
import { aliasesOf, type Env } from './env.ts'
import { common, gatewayHost } from './host.ts'
import { PlacementTable } from './placement-table.ts'
import { RegistryTable } from './registry-table.ts'
import { roundMs } from './rounds.ts'
import { Sealer } from './sealed.ts'
import { socketTransport } from './sockets.ts'
import { TokenTable } from './token-table.ts'

export interface Gateway {
  readonly app: App
  readonly fleet: Fleet
  readonly placements: PlacementStore
  readonly tokens: TokenStore
  /** Requests that were answered, by the object and by isolates. */
  readonly requests: RequestMetrics
}

/** The gateway over the tables of the Durable Object. */
export async function openGateway(env: Env, sql: SqlStorage, upgrade: Upgrade): Promise<Gateway> {
  const store = new TokenTable(sql, warn)
  const { access, tokens, rateLimit } = openAuth(env, store)
  const fetchOf = (url: string, init: RequestInit) => fetch(url, init)
  const fleet = await Fleet.open({
    registry: new RegistryTable(sql, new Sealer(env.FLEET_KEY ?? ''), warn),
    transport: fetchTransport(fetchOf),
    sockets: socketTransport(fetchOf),
    version: PATCHBAY_VERSION,
    upkeep: 'rounds',
    // What a look finds is in force until the next one.
    bounds: { connectMs: 10_000, failures: 2, retryMs: [2 * roundMs, 2 * roundMs], lookMs: roundMs },
    joinTokens: { check: (token) => tokens.checkJoinToken(token) },
    // 32 MiB would wait here when nobody read anything of a compute; all must fit in 128 MB.
    tunnels: { watch: 'busy', limits: { window: 256 * 1024, streams: 128 } },
  })
  fleet.listen((event) => {
    if (event.type === 'log.warning') warn(event.message)
  })
  const placements = new PlacementTable(sql)
  const gateway = createGateway({ members: fleetMembers(fleet), placements, host: gatewayHost })
  const requests = new RequestMetrics()
  const app = createApp({
    ...common,
    requests,
    aliases: aliasesOf(env),
    agent: gateway.agent,
    fleet,
    between: between(fleet, gateway.whereabouts),
    access,
    tokens,
    rateLimit,
    upgrade,
  })
  return { app, fleet, placements, tokens: store, requests }
}

// biome-ignore lint/suspicious/noConsole: the log of a Worker
const warn = (message: string): void => console.warn(message)
