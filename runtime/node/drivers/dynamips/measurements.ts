import { aborted } from '../../../../src/lib/async/abort.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../../src/lib/async/timeout.ts'
import { ApiError, conflict } from '../../../../src/lib/errors/api-error.ts'
import type { IdlePc } from '../../../../src/model/kinds/dynamips.ts'
import type { ActionTarget, StartStop } from '../../engine/nodes/kind.ts'
import { type DynamipsGuests, isClosed, type Lent, refused, routerName } from './guests.ts'
import { autoIdlePc, idleProposals, type MeasuredRouter } from './idle-pc.ts'
import { watchLoad } from './load.ts'
import { isDynamips } from './program.ts'
import type { DynamipsKindNode, DynamipsProperties } from './properties.ts'
import type { DynamipsTimeouts } from './timeouts.ts'

interface Taken extends Lent {
  readonly wasStopped: boolean
}

/** Measures one router at a time. Its node can be read, stopped and deleted meanwhile. */
export class Measurements {
  /** Routers that start for a measurement. */
  readonly started = new Set<string>()
  readonly #guests: DynamipsGuests
  readonly #timeouts: DynamipsTimeouts
  readonly #closing = new AbortController()
  #running: Promise<unknown> | undefined

  constructor(guests: DynamipsGuests, timeouts: DynamipsTimeouts) {
    this.#guests = guests
    this.#timeouts = timeouts
  }

  idlePcProposals(at: ActionTarget<DynamipsProperties>, signal?: AbortSignal): Promise<string[]> {
    return this.#exclusively(() => this.#measure(at, signal, idleProposals))
  }

  async autoIdlePc(at: ActionTarget<DynamipsProperties>, signal?: AbortSignal): Promise<IdlePc> {
    return { idlepc: await this.#exclusively(() => this.#measure(at, signal, autoIdlePc)) }
  }

  /** Cancels a running measurement. */
  async close(): Promise<void> {
    this.#closing.abort(conflict('The service is stopping'))
    await this.#running
  }

  /** One measurement at a time, because two would compete for the processor. */
  async #exclusively<T>(run: () => Promise<T>): Promise<T> {
    if (this.#running !== undefined) throw conflict('Another idle-PC measurement is running; try again later')
    const answer = run()
    this.#running = answer.catch(ignore('the caller of the measurement gets the error'))
    try {
      return await answer
    } finally {
      this.#running = undefined
    }
  }

  async #measure<T>(
    at: ActionTarget<DynamipsProperties>,
    cancel: AbortSignal | undefined,
    measure: (router: MeasuredRouter) => Promise<T>,
  ): Promise<T> {
    const timeouts = this.#timeouts
    const late = new AbortController()
    const message = `The idle-PC value was not found within ${timeouts.measurement / 1000} s`
    const timer = setTimeout(() => late.abort(new ApiError(408, message)), timeouts.measurement)
    const cancelled = AbortSignal.any([late.signal, this.#closing.signal, ...(cancel === undefined ? [] : [cancel])])
    try {
      const taken = await at.exclusively((node, lifecycle) => this.#borrow(node, lifecycle, cancelled))
      const { client, process, wasStopped } = taken
      const signal = AbortSignal.any([cancelled, process.ended, process.skipGracePeriod])
      try {
        return await measure({
          client,
          name: routerName,
          isFresh: wasStopped,
          timeouts,
          signal,
          watchLoad: async () => ((await isDynamips(process.pid)) ? watchLoad(process.pid) : undefined),
        })
      } catch (error) {
        cancelled.throwIfAborted()
        // The exit of the process has a better reason than the closed connection.
        if (isClosed(error)) await withTimeout(aborted(process.ended), timeouts.command, () => {})
        if (signal.aborted || isClosed(error))
          throw conflict('The router ended while it was measured', { cause: error })
        return refused(error)
      } finally {
        client.close()
        await at
          .exclusively((node, lifecycle) => this.#giveBack(node, lifecycle, taken))
          .catch(ignore('the router is being closed or deleted'))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  /** Starts the router unless it runs, and borrows it. */
  async #borrow(node: DynamipsKindNode, lifecycle: StartStop, cancelled: AbortSignal): Promise<Taken> {
    cancelled.throwIfAborted()
    if (node.status === 'suspended') throw conflict('The router is suspended: resume it first')
    if (node.status === 'started') return { ...(await this.#guests.lend(node)), wasStopped: false }
    this.started.add(node.key)
    try {
      await lifecycle.start()
    } finally {
      this.started.delete(node.key)
    }
    try {
      return { ...(await this.#guests.lend(node)), wasStopped: true }
    } catch (error) {
      await lifecycle.stop()
      throw error
    }
  }

  /** Stops the router if the measurement started it, else restores its idle PC. */
  async #giveBack(node: DynamipsKindNode, lifecycle: StartStop, { wasStopped, ...lent }: Taken): Promise<void> {
    if (!this.#guests.takeBack(node, lent)) return
    if (wasStopped) await lifecycle.stop()
    else await this.#guests.setIdlePc(node)
  }
}
