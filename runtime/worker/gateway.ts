import script from 'rapidoc/dist/rapidoc-min.js'
import { type App, createApp } from '../../src/app.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { fetchTransport } from '../../src/fleet/transport.ts'
import { between } from '../../src/gateway/between.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import { createGateway } from '../../src/gateway/gateway-agent.ts'
import type { Upgrade } from '../../src/http/socket.ts'
import { openAuth } from './auth.ts'
import type { Env } from './env.ts'
import { json, report } from './host.ts'
import { PlacementTable } from './placement-table.ts'
import { RegistryTable } from './registry-table.ts'
import { roundMs } from './rounds.ts'
import { Sealer } from './sealed.ts'
import { socketTransport } from './sockets.ts'
import { TokenTable } from './token-table.ts'

/** Most bytes of a JSON body. */
const jsonBytes = 2 ** 20

export interface Gateway {
  readonly app: App
  readonly fleet: Fleet
}

/** The gateway over the tables of the Durable Object. */
export async function openGateway(env: Env, sql: SqlStorage, upgrade: Upgrade): Promise<Gateway> {
  const { access, tokens, rateLimit } = openAuth(env, new TokenTable(sql, warn))
  const fetchOf = (url: string, init: RequestInit) => fetch(url, init)
  const fleet = await Fleet.open({
    registry: new RegistryTable(sql, new Sealer(env.FLEET_KEY ?? ''), warn),
    transport: fetchTransport(fetchOf),
    sockets: socketTransport(fetchOf),
    version: PATCHBAY_VERSION,
    upkeep: 'rounds',
    // What a look finds is in force until the next one.
    bounds: { failures: 1, retryMs: [2 * roundMs, 2 * roundMs] },
    joinTokens: { check: (token) => tokens.checkJoinToken(token) },
    // 32 MiB would wait here when nobody read anything of a compute; all must fit in 128 MB.
    tunnels: { watch: 'busy', limits: { window: 256 * 1024, streams: 128 } },
  })
  fleet.listen((event) => {
    if (event.type === 'log.warning') warn(event.message)
  })
  const gateway = createGateway({
    members: fleetMembers(fleet),
    placements: new PlacementTable(sql),
    host: {
      version: PATCHBAY_VERSION,
      metrics: async () => [],
      // Settings come with the next deployment.
      reloadConfig: async () => ({ changed: [], needs_restart: [] }),
    },
  })
  const app = createApp({
    agent: gateway.agent,
    fleet,
    between: between(fleet, gateway.whereabouts),
    version: PATCHBAY_VERSION,
    access,
    tokens,
    rateLimit,
    jsonBytes,
    aliases: {},
    json,
    upgrade,
    docsScript: async () => script,
    report,
  })
  return { app, fleet }
}

// biome-ignore lint/suspicious/noConsole: the log of a Worker
const warn = (message: string): void => console.warn(message)
