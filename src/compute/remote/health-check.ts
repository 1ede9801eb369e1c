import { mapLimit } from '../../lib/async/map-limit.ts'
import type { RemoteCompute } from './remote-compute.ts'
import type { FleetTimeouts } from './timeouts.ts'

/** The share of the time for connected computes: a lost compute may use up its timeout. */
const shareOfConnected = 2 / 3

/** Checks computes without a feed; see `Fleet.check`. */
export class HealthCheck {
  /** Time of the last check, ms since 1970. */
  readonly #at = new WeakMap<RemoteCompute, number>()

  /**
   * Checks computes, a few at a time: connected computes first, then by the age of the last check. Computes beyond the time limit
   * come first in the next call. A compute that did not answer is checked again soon: one lost packet must not disconnect it.
   * Never rejects.
   */
  async all(computes: readonly RemoteCompute[], { lookMs, lookAgainMs }: FleetTimeouts): Promise<void> {
    const began = Date.now()
    const connected = computes.filter(({ state }) => state === 'connected')
    const others = computes.filter(({ state }) => state !== 'connected')
    const looked = await this.#some(connected, began + lookMs * shareOfConnected)
    looked.push(...(await this.#some(others, began + lookMs)))
    const unclear = looked.filter(({ session }) => session.shouldRetryConnect)
    if (unclear.length === 0) return
    await new Promise((resolve) => setTimeout(resolve, lookAgainMs))
    await this.#some(unclear, Date.now() + lookMs)
  }

  /** Resolves with the computes that were checked in time. */
  async #some(computes: readonly RemoteCompute[], until: number): Promise<RemoteCompute[]> {
    const at = (compute: RemoteCompute): number => this.#at.get(compute) ?? 0
    const looked: RemoteCompute[] = []
    await mapLimit(
      computes.toSorted((a, b) => at(a) - at(b)),
      async (compute) => {
        if (Date.now() > until) return
        this.#at.set(compute, Date.now())
        looked.push(compute)
        await compute.session.check()
      },
    )
    return looked
  }
}
