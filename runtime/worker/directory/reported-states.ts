import { computeKey } from '../../../src/fleet/pool/computes.ts'
import type { Fleet } from '../../../src/fleet/pool/fleet.ts'
import type { ComputeRegistry } from '../../../src/fleet/pool/registry.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { mapLimit } from '../../../src/lib/async/map-limit.ts'
import { withTimeout } from '../../../src/lib/async/timeout.ts'
import { type Compute, type ComputeRecord, tunnelled } from '../../../src/model/compute.ts'
import type { Objects } from '../shared/objects.ts'
import type { StateTable } from './state-table.ts'

/** How long a call of the object of a compute may take, ms. */
const callMs = 5000

/** The registry of the directory: saved records are also sent to the objects of the computes. */
export function sharedRegistry(table: ComputeRegistry, states: StateTable, objects: Objects): ComputeRegistry {
  const send = (call: Promise<void>) =>
    // Otherwise the object gets the record as the answer to its next report.
    withTimeout(call, callMs, () => {}).catch(ignore('the object of the compute asks for the record'))
  return {
    load: () => table.load(),
    async save(record) {
      await table.save(record)
      states.remove(record.compute_id)
      await send(objects.compute(record.compute_id).keep(record))
    },
    async remove(computeId) {
      await table.remove(computeId)
      states.remove(computeId)
      await send(objects.compute(computeId).dismiss())
    },
  }
}

/** The states of the computes in the directory, which checks none itself: the objects of the computes report them. */
export class ReportedStates {
  readonly #fleet: Fleet
  readonly #table: StateTable
  readonly #objects: Objects
  readonly #introduced: Promise<void>
  #isIntroduced = false
  #isAccepting = false
  readonly #looking = new Set<string>()

  constructor(fleet: Fleet, table: StateTable, objects: Objects) {
    this.#fleet = fleet
    this.#table = table
    this.#objects = objects
    fleet.restoreStates(table.load(), 0)
    this.#introduced = this.#introduce().finally(() => {
      this.#isIntroduced = true
    })
    fleet.listen((event) => {
      if ('compute' in event && event.type === 'compute.updated') this.#noticed(event.compute)
    })
  }

  /** Takes a report of the object of a compute. The result: the present record; undefined when there is no such compute. */
  async accept(shown: Compute): Promise<ComputeRecord | undefined> {
    // The report may be of a compute whose registration is still being saved.
    await this.#fleet.settled()
    this.#isAccepting = true
    const compute = this.#fleet.acceptState(shown)
    this.#isAccepting = false
    if (compute === undefined) return undefined
    await this.#table.put(compute.show())
    // The compute may have been changed or removed meanwhile.
    return this.#fleet.find(shown.compute_id)?.record
  }

  /** The compute has a new tunnel, or none. */
  changed(computeId: string): Promise<void> {
    return this.#table.forget(computeId)
  }

  /** Resolves when all computes have objects that check them, at the latest after 5 s. */
  async known(): Promise<void> {
    if (!this.#isIntroduced) await withTimeout(this.#introduced, callMs, () => {})
  }

  /** Lets the objects of computes begin their checks: of those that an earlier version checked here, and of those that lack their record. */
  async #introduce(): Promise<void> {
    const missing = this.#fleet.remote.filter(
      ({ record }) => record.protocol !== tunnelled && this.#table.isConnected(record.compute_id) === undefined,
    )
    await mapLimit(missing, async ({ record }) => {
      try {
        await this.#objects.compute(record.compute_id).keep(record)
        await this.#look(record.compute_id)
      } catch {
        // The next program of the directory tries it again.
      }
    })
  }

  /** A request of the directory itself has found the compute in another state than the reported one: its object checks it. */
  #noticed({ compute_id, connected }: Compute): void {
    const reported = this.#table.isConnected(compute_id)
    if (this.#isAccepting || reported === undefined || reported === connected) return
    void this.#look(compute_id).catch(ignore('the object checks it by itself'))
  }

  async #look(computeId: string): Promise<void> {
    const id = computeKey(computeId)
    if (this.#looking.has(id)) return
    this.#looking.add(id)
    try {
      const shown = await this.#objects.compute(id).look()
      if (shown !== undefined) await this.accept(shown)
    } finally {
      this.#looking.delete(id)
    }
  }
}
