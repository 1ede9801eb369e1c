import { fetchTransport } from '../../src/client/transport.ts'
import { computeKey } from '../../src/fleet/computes.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import type { ComputeRecord } from '../../src/model/compute.ts'
import { ComputeAsking } from './compute-asking.ts'
import type { Env } from './env.ts'
import type { Objects } from './objects.ts'
import { socketTransport } from './sockets.ts'
import { wholeFetch } from './whole-bodies.ts'

/** Age at which what is known of a compute is read again, ms. */
const staleMs = 10_000

const fetchOf = (url: string, init: RequestInit) => fetch(url, init)

/** A fleet whose records come from elsewhere: computes with an address are fetched, and joined ones are asked by their objects. */
export const borrowedFleet = (env: Env, objects: Objects, records: readonly ComputeRecord[] = []): Promise<Fleet> =>
  Fleet.open({
    registry: { load: async () => records, save: async () => {}, remove: async () => {} },
    transport: fetchTransport(wholeFetch(fetchOf)),
    sockets: socketTransport(fetchOf),
    version: PATCHBAY_VERSION,
    upkeep: false,
    holder: new ComputeAsking(env, objects),
  })

/** The computes that the object of a lab asks, each known since it was asked first. */
export class KnownComputes {
  readonly #env: Env
  readonly #objects: Objects
  readonly #at = new Map<string, number>()
  #fleet: Fleet | undefined

  constructor(env: Env, objects: Objects) {
    this.#env = env
    this.#objects = objects
  }

  /** A fleet with this compute, as it is now; without it when there is none of that id. */
  async with(computeId: string): Promise<Fleet> {
    const opened = this.#fleet ?? (await borrowedFleet(this.#env, this.#objects))
    // Another call may have opened one meanwhile.
    this.#fleet ??= opened
    const fleet = this.#fleet
    const id = computeKey(computeId)
    if (Date.now() - (this.#at.get(id) ?? 0) <= staleMs) return fleet
    const known = await this.#objects.fleet().known(id)
    if (known === undefined) {
      fleet.dismiss(id)
      this.#at.delete(id)
      return fleet
    }
    const { record, shown } = known
    if (JSON.stringify(fleet.find(id)?.record) !== JSON.stringify(record)) fleet.enrol(record)
    fleet.recall([shown], 0)
    this.#at.set(id, Date.now())
    return fleet
  }
}
