import { waitUntil } from 'cloudflare:workers'
import { ignore } from '../../src/async/ignore.ts'
import { computeKey } from '../../src/fleet/computes.ts'
import { Fleet } from '../../src/fleet/fleet.ts'
import { fleetMembers } from '../../src/gateway/fleet-members.ts'
import type { Member } from '../../src/gateway/members.ts'
import { ComputeAsking } from './compute-asking.ts'
import type { Env } from './env.ts'
import type { Objects } from './objects.ts'
import { noRegistry, reaching } from './reaching.ts'

/** Age at which what is known of a compute is read again beside a request, and at which requests wait for that, ms. */
const timesOfOthers = { freshMs: 5000, staleMs: 10_000 }
const timesOfJoined = { freshMs: 60_000, staleMs: 120_000 }

/** A fleet whose records come from elsewhere: computes with an address are fetched, and joined ones are asked by their objects. */
const borrowedFleet = (env: Env, objects: Objects, endsWithRequest: boolean): Promise<Fleet> =>
  Fleet.open({
    ...{ ...reaching, registry: noRegistry, upkeep: false, endsWithRequest },
    holder: new ComputeAsking(env, objects),
  })

/**
 * The computes that a program of the gateway has asked something, each as its object last said: isolates and the objects of labs know no
 * others. What they do not reach is read again. Requests of an isolate share results, never promises (see auth.ts).
 */
export class KnownComputes {
  readonly #env: Env
  readonly #objects: Objects
  readonly #lost: (id: string) => void
  readonly #isIsolate: boolean
  readonly #readAt = new Map<string, number>()
  #fleet: Fleet | undefined
  #isReading = false

  /** `lost`: given by an isolate, and told of each compute that cannot be reached. */
  constructor(env: Env, objects: Objects, lost?: (id: string) => void) {
    this.#env = env
    this.#objects = objects
    this.#lost = lost ?? (() => {})
    this.#isIsolate = lost !== undefined
  }

  /** What was last known of a compute. */
  find(computeId: string): Member | undefined {
    const found = this.#fleet && fleetMembers(this.#fleet).find(computeId)
    // A fleet in memory has its computes at hand.
    return found as Member | undefined
  }

  /** A fleet with this compute, as it is now; without it when there is none of that id. */
  async with(computeId: string): Promise<Fleet> {
    const id = computeKey(computeId)
    const ageMs = Date.now() - (this.#readAt.get(id) ?? 0)
    const fleet = this.#fleet
    // Only its object knows of a tunnel, and says so when it is asked.
    const times =
      fleet?.isTunnelled(id) === true && fleet.find(id)?.state === 'connected' ? timesOfJoined : timesOfOthers
    if (fleet === undefined || ageMs > times.staleMs) return this.#read(id)
    if (ageMs > times.freshMs)
      waitUntil(this.#read(id).catch(ignore('a request that needs it reads it again, and gets the error')))
    return fleet
  }

  async #read(id: string): Promise<Fleet> {
    const fleet = await this.#opened()
    const known = await this.#objects.compute(id).known()
    if (known === undefined) {
      fleet.dismiss(id)
      this.#readAt.delete(id)
      return fleet
    }
    const { record, shown } = known
    this.#isReading = true
    if (JSON.stringify(fleet.find(id)?.record) !== JSON.stringify(record)) fleet.enrol(record)
    this.#isReading = false
    // The object got the failures of requests here, too.
    fleet.recall([shown], 0)
    this.#readAt.set(id, Date.now())
    return fleet
  }

  async #opened(): Promise<Fleet> {
    const opened = this.#fleet ?? (await borrowedFleet(this.#env, this.#objects, this.#isIsolate))
    if (this.#fleet !== undefined) return this.#fleet
    this.#fleet = opened
    opened.listen((event) => {
      if (this.#isReading || event.type !== 'compute.updated' || event.compute.connected) return
      const id = computeKey(event.compute.compute_id)
      this.#readAt.delete(id)
      this.#lost(id)
    })
    return opened
  }
}
