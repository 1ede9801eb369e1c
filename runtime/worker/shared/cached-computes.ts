import { waitUntil } from 'cloudflare:workers'
import type { Transport } from '../../../src/compute/remote/transport.ts'
import { isImageUpload } from '../../../src/endpoints/v2/fleet/computes.ts'
import { fleetMembers } from '../../../src/fleet/members/fleet-members.ts'
import type { FleetMembers, Member } from '../../../src/fleet/members/members.ts'
import { computeKey } from '../../../src/fleet/pool/computes.ts'
import { Fleet } from '../../../src/fleet/pool/fleet.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { ReadOrder } from '../../../src/lib/async/read-order.ts'
import type { KnownCompute } from '../compute/rpc.ts'
import type { Env } from './env.ts'
import { ObjectTunnels } from './object-tunnels.ts'
import type { Objects } from './objects.ts'
import { noRegistry, reaching } from './reaching.ts'

/** Age at which the state of a compute is read again during a request, and age at which requests wait for the new state, ms. */
const timesOfOthers = { freshMs: 5000, staleMs: 10_000 }
const timesOfJoined = { freshMs: 60_000, staleMs: 120_000 }
/** Shortest time between two reads of a compute in the background, ms: one whose request was ended never arrives. */
const refreshPauseMs = 1000

/** Computes with an address are fetched, except for uploads of images: those go to the object of the compute, which computes their digests. */
const withImagesBy =
  (atObjects: Transport): Transport =>
  (address) => {
    const [ask, fetch] = [atObjects(address), reaching.transport(address)]
    return (request) => (isImageUpload(request) ? ask : fetch)(request)
  }

/**
 * The computes to which an isolate, or the object of a lab, has sent requests, each as its object last reported it. A compute that cannot be
 * reached is read again. Requests of an isolate share results, never promises (see auth.ts).
 */
export class CachedComputes {
  /** Computes with an address get requests by `fetch`, joined ones by their objects. */
  readonly fleet: Fleet
  readonly #members: FleetMembers
  readonly #objects: Objects
  readonly #lost: (id: string) => void
  readonly #readAt = new Map<string, number>()
  /** When a read in the background began; of computes in `#readAt`. */
  readonly #refreshedAt = new Map<string, number>()
  readonly #order = new ReadOrder<string>()
  #isReading = false

  /** `lost`: given by an isolate; called for each compute that cannot be reached. */
  constructor(env: Env, objects: Objects, lost?: (id: string) => void) {
    const isIsolate = lost !== undefined
    this.#objects = objects
    this.#lost = lost ?? (() => {})
    const holder = new ObjectTunnels(env, objects, isIsolate)
    this.fleet = Fleet.empty({
      ...reaching,
      registry: noRegistry,
      healthChecks: false,
      holder,
      ...(isIsolate && { waitUntil, transport: withImagesBy(holder.transport) }),
    })
    this.#members = fleetMembers(this.fleet)
    this.fleet.listen((event) => {
      if (this.#isReading || event.type !== 'compute.updated' || event.compute.connected) return
      const id = computeKey(event.compute.compute_id)
      this.#forget(id)
      this.#lost(id)
    })
  }

  /** What was last known of a compute. */
  find(computeId: string): Member | undefined {
    // A fleet in memory has its computes at hand.
    return this.#members.find(computeId) as Member | undefined
  }

  /** A compute that is connected by a state for which requests need not wait; undefined for any other. */
  atHand(computeId: string): Member | undefined {
    const id = computeKey(computeId)
    if (!this.#isAtHand(id)) return undefined
    const member = this.find(computeId)
    return member?.isConnected === true ? member : undefined
  }

  /** The fleet with this compute, as it is now; without it when there is none of that id. */
  with(computeId: string): Fleet | Promise<Fleet> {
    const { fleet } = this
    const id = computeKey(computeId)
    return this.#isAtHand(id) ? fleet : this.#read(id).then(() => fleet)
  }

  /** Whether the state of a compute is new enough for requests; one that is not fresh is read again beside them. */
  #isAtHand(id: string): boolean {
    const now = Date.now()
    const ageMs = now - (this.#readAt.get(id) ?? 0)
    // The usual case: new enough for all.
    if (ageMs <= timesOfOthers.freshMs) return true
    const { freshMs, staleMs } = this.#timesOf(id)
    if (ageMs <= freshMs) return true
    if (ageMs > staleMs) return false
    if (now - (this.#refreshedAt.get(id) ?? 0) >= refreshPauseMs) {
      this.#refreshedAt.set(id, now)
      waitUntil(this.#read(id).catch(ignore('a request that needs it reads it again, and gets the error')))
    }
    return true
  }

  #timesOf(id: string): typeof timesOfOthers {
    const { fleet } = this
    // Only its object knows whether a joined compute has a tunnel, and answers requests accordingly.
    return fleet.isTunnelled(id) && fleet.find(id)?.state === 'connected' ? timesOfJoined : timesOfOthers
  }

  #read(id: string): Promise<void> {
    return this.#order.run(
      id,
      () => this.#objects.compute(id).known(),
      (known) => this.#keep(id, known),
    )
  }

  #keep(id: string, known: KnownCompute | undefined): void {
    const { fleet } = this
    if (known === undefined) {
      fleet.unregister(id)
      this.#forget(id)
      return
    }
    const { record, shown } = known
    this.#isReading = true
    if (JSON.stringify(fleet.find(id)?.record) !== JSON.stringify(record)) fleet.registerEphemeral(record)
    this.#isReading = false
    // The state of the object replaces failures of requests here: it was informed of these (`lost`).
    fleet.restoreStates([shown], 0)
    this.#readAt.set(id, Date.now())
  }

  /** Requests read the state of the compute again. */
  #forget(id: string): void {
    this.#readAt.delete(id)
    this.#refreshedAt.delete(id)
  }
}
