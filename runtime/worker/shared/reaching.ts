import { fetchTransport, raceMs } from '../../../src/compute/remote/transport.ts'
import type { FleetOptions } from '../../../src/fleet/pool/options.ts'
import type { ComputeRegistry } from '../../../src/fleet/pool/registry.ts'
import { capabilitiesPath } from '../../../src/model/host.ts'
import { wholeFetch } from './fixed-length-bodies.ts'
import { markingFetch } from './own-checks.ts'
import { socketTransport } from './sockets.ts'

const fetchOf = (url: string, init: RequestInit) => fetch(url, init)

/** Whether the compute of a URL answers, with any status. */
async function answers(url: string): Promise<boolean> {
  try {
    const init = { redirect: 'manual', signal: AbortSignal.timeout(raceMs) } as const
    const answer = await markingFetch(new URL(capabilitiesPath, url).href, init)
    await answer.body?.cancel()
    return true
  } catch {
    return false
  }
}

/** How the fleets of the Worker reach computes with an address. */
export const reaching: Pick<FleetOptions, 'transport' | 'sockets' | 'version'> = {
  transport: fetchTransport(wholeFetch(markingFetch, answers)),
  sockets: socketTransport(fetchOf),
  version: PATCHBAY_VERSION,
}

/** Of a fleet whose records come from the directory. */
export const noRegistry: ComputeRegistry = { load: async () => [], save: async () => {}, remove: async () => {} }
