import { pauseUntil } from '../../../../../src/lib/async/pause.ts'
import { endless, type Lease, renew } from './dhcp.ts'
import type { Net } from './net.ts'

/** Minimum interval of renewal requests, ms (RFC 2131, 4.4.5). */
const minWaitMs = 60_000
/** Minimum interval for leases with a lease time near zero, ms. */
const shortestMs = 1000

/** Maintains a lease: renews it with its server after T1, with any server after T2, and drops the address at its end. */
export class LeaseKeeper {
  readonly #net: Net
  #lease: Lease | undefined
  /** Ends the maintenance of the current lease. */
  #ended: AbortController | undefined

  constructor(net: Net) {
    this.#net = net
  }

  get current(): Lease | undefined {
    return this.#lease
  }

  /** Uses the address of the lease. `name`: the pc's, which servers may put into the DNS. */
  use(lease: Lease, name: () => string): void {
    this.drop()
    const ended = new AbortController()
    this.#ended = ended
    this.#lease = lease
    const { address, prefix, gateway } = lease
    this.#net.ip4.config = { address, prefix, gateway }
    if (lease.seconds !== endless) void this.#keep(lease, name, ended.signal)
  }

  /** Drops the lease; the address stays configured. */
  drop(): void {
    this.#ended?.abort()
    this.#ended = undefined
    this.#lease = undefined
  }

  async #keep(lease: Lease, name: () => string, signal: AbortSignal): Promise<void> {
    const after = (seconds: number) => lease.began + seconds * 1000
    const [rebinding, end] = [after(lease.rebinding), after(lease.seconds)]
    await this.#until(Math.max(after(lease.renewal), lease.began + shortestMs), signal)
    while (!signal.aborted && performance.now() < end) {
      const isForAll = performance.now() >= rebinding
      const answer = await renew(this.#net, lease, name(), isForAll, end - performance.now(), signal)
      if (signal.aborted) return
      if (answer === 'refused') break
      if (answer !== undefined) return this.use(answer, name)
      const remaining = (isForAll ? end : rebinding) - performance.now()
      await this.#until(performance.now() + Math.min(remaining, Math.max(remaining / 2, minWaitMs)), signal)
    }
    if (signal.aborted) return
    this.drop()
    this.#net.ip4.config = undefined
  }

  #until(time: number, signal: AbortSignal): Promise<void> {
    return pauseUntil(time, signal, this.#net.startTimer, () => performance.now())
  }
}
