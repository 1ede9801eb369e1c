import { mapLimit } from '../async/map-limit.ts'
import type { RemoteCompute } from './remote-compute.ts'
import type { FleetTimeouts } from './timeouts.ts'

/** How much of the time is for those that are there: what was lost may take long to say nothing. */
const shareOfConnected = 2 / 3

/** Looks at computes that hold no feed; see `Fleet.check`. */
export class HealthCheck {
  /** When each was looked at last, ms. */
  readonly #at = new WeakMap<RemoteCompute, number>()

  /**
   * Looks at computes, some at a time: at those that are connected first, and among equals at those at which nobody looked for
   * longest. What there is no time for comes first the next time. What did not answer is looked at again soon, so that one
   * lost packet does not take a compute away. Never rejects.
   */
  async all(computes: readonly RemoteCompute[], { lookMs, lookAgainMs }: FleetTimeouts): Promise<void> {
    const began = Date.now()
    const connected = computes.filter(({ state }) => state === 'connected')
    const others = computes.filter(({ state }) => state !== 'connected')
    const looked = await this.#some(connected, began + lookMs * shareOfConnected)
    looked.push(...(await this.#some(others, began + lookMs)))
    const unclear = looked.filter(({ isUnclear }) => isUnclear)
    if (unclear.length === 0) return
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs))
    await this.#some(unclear, Date.now() + lookMs)
  }

  /** Those at which there was time to look. */
  async #some(computes: readonly RemoteCompute[], until: number): Promise<RemoteCompute[]> {
    const at = (compute: RemoteCompute): number => this.#at.get(compute) ?? 0
    const looked: RemoteCompute[] = []
    await mapLimit(
      computes.toSorted((a, b) => at(a) - at(b)),
      async (compute) => {
        if (Date.now() > until) return
        this.#at.set(compute, Date.now())
        looked.push(compute)
        await compute.check()
      },
    )
    return looked
  }
}
