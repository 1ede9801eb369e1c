import { ignore } from '../../../../src/async/ignore.ts'
import { ApiError, conflict } from '../../../../src/errors/api-error.ts'
import type { IdlePc } from '../../../../src/kinds/dynamips.ts'
import type { ActionTarget, NodeLifeCycle } from '../kind.ts'
import type { DynamipsTimeouts } from './bounds.ts'
import { type DynamipsGuests, exitOfProgram, isGone, type Lent, refused, routerName } from './guests.ts'
import { autoIdlePc, idleProposals, type MeasuredRouter } from './idle-pc.ts'
import { watchLoad } from './load.ts'
import { isDynamips } from './program.ts'
import type { DynamipsKindNode, DynamipsProperties } from './properties.ts'

interface Taken extends Lent {
  readonly wasStopped: boolean
}

/** Measures routers, one at a time, without keeping their nodes from being read, stopped and deleted. */
export class Measurements {
  /** Routers that are started to be measured. */
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
    return this.#alone(() => this.#measure(at, signal, idleProposals))
  }

  async autoIdlePc(at: ActionTarget<DynamipsProperties>, signal?: AbortSignal): Promise<IdlePc> {
    return { idlepc: await this.#alone(() => this.#measure(at, signal, autoIdlePc)) }
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.#closing.abort(conflict('The service is stopping'))
    await this.#running
  }

  /** Two that are measured at the same time would each take the processor from the other. */
  async #alone<T>(run: () => Promise<T>): Promise<T> {
    if (this.#running !== undefined) throw conflict('An idle-PC value is being looked for already; try again later')
    const answer = run()
    this.#running = answer.catch(ignore('who asked for the measurement is told'))
    try {
      return await answer
    } finally {
      this.#running = undefined
    }
  }

  async #measure<T>(
    at: ActionTarget<DynamipsProperties>,
    asker: AbortSignal | undefined,
    measure: (router: MeasuredRouter) => Promise<T>,
  ): Promise<T> {
    const timeouts = this.#timeouts
    const late = new AbortController()
    const message = `The idle-PC value was not found within ${timeouts.measurement / 1000} s`
    const timer = setTimeout(() => late.abort(new ApiError(408, message)), timeouts.measurement)
    const givenUp = AbortSignal.any([late.signal, this.#closing.signal, ...(asker === undefined ? [] : [asker])])
    try {
      const taken = await at.exclusively((node, lifeCycle) => this.#take(node, lifeCycle, givenUp))
      const { client, process, wasStopped } = taken
      const signal = AbortSignal.any([givenUp, process.ended, process.expedited])
      try {
        return await measure({
          ...{ client, name: routerName, isFresh: wasStopped, timeouts, signal },
          watchLoad: async () => ((await isDynamips(process.pid)) ? watchLoad(process.pid) : undefined),
        })
      } catch (error) {
        givenUp.throwIfAborted()
        // What happened to it is known by its end.
        if (isGone(error)) await exitOfProgram(process, timeouts.command)
        if (signal.aborted || isGone(error)) throw conflict('The router ended while it was measured', { cause: error })
        return refused(error)
      } finally {
        client.close()
        await at
          .exclusively((node, lifeCycle) => this.#giveBack(node, lifeCycle, taken))
          .catch(ignore('who closes or deletes the router sees to it'))
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async #take(node: DynamipsKindNode, lifeCycle: NodeLifeCycle, givenUp: AbortSignal): Promise<Taken> {
    givenUp.throwIfAborted()
    if (node.status === 'suspended') throw conflict('The router is suspended: resume it first')
    if (node.status === 'started') return { ...(await this.#guests.lend(node)), wasStopped: false }
    this.started.add(node.key)
    try {
      await lifeCycle.start()
    } finally {
      this.started.delete(node.key)
    }
    try {
      return { ...(await this.#guests.lend(node)), wasStopped: true }
    } catch (error) {
      await lifeCycle.stop()
      throw error
    }
  }

  /** Leaves the router as it was. */
  async #giveBack(node: DynamipsKindNode, lifeCycle: NodeLifeCycle, { wasStopped, ...lent }: Taken): Promise<void> {
    if (!this.#guests.takeBack(node, lent)) return
    if (wasStopped) await lifeCycle.stop()
    else await this.#guests.setIdlePc(node)
  }
}
