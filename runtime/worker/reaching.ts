import { fetchTransport } from '../../src/client/transport.ts'
import type { FleetOptions } from '../../src/fleet/options.ts'
import type { Registry } from '../../src/fleet/registry.ts'
import { markingFetch } from './own-checks.ts'
import { socketTransport } from './sockets.ts'
import { wholeFetch } from './whole-bodies.ts'

const fetchOf = (url: string, init: RequestInit) => fetch(url, init)

/** How the fleets of the Worker reach computes with an address. */
export const reaching: Pick<FleetOptions, 'transport' | 'sockets' | 'version'> = {
  transport: fetchTransport(wholeFetch(markingFetch)),
  sockets: socketTransport(fetchOf),
  version: PATCHBAY_VERSION,
}

/** Of a fleet whose records come from the directory. */
export const noRegistry: Registry = { load: async () => [], save: async () => {}, remove: async () => {} }
