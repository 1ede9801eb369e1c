import { ApiError, conflict } from '../../../../src/errors/api-error.ts'
import type { DynamipsAgent } from '../../../../src/host-agent.ts'
import type { NodeRef } from '../../../../src/model/node.ts'
import type { LabNode } from '../../nodes/lab-node.ts'
import type { LifeCycle } from '../../nodes/life-cycle.ts'
import type { Nodes } from '../../nodes/nodes.ts'
import type { DynamipsTimeouts } from './bounds.ts'
import type { DynamipsKind } from './dynamips.ts'
import { exitOfProgram, isGone, type Lent, refused, routerName } from './guests.ts'
import { autoIdlePc, idleProposals, type MeasuredRouter } from './idle-pc.ts'
import { watchLoad } from './load.ts'
import { isDynamips } from './program.ts'

export interface MeasurementsOptions {
  readonly kind: DynamipsKind
  readonly nodes: Pick<Nodes, 'with' | 'get'>
  readonly lifeCycle: Pick<LifeCycle, 'start' | 'stop'>
  readonly timeouts: DynamipsTimeouts
}

interface Taken extends Lent {
  readonly wasStopped: boolean
}

/** Measures routers, one at a time, without keeping their nodes from being read, stopped and deleted. */
export class Measurements implements DynamipsAgent {
  readonly #options: MeasurementsOptions
  readonly #closing = new AbortController()
  #running: Promise<unknown> | undefined

  constructor(options: MeasurementsOptions) {
    this.#options = options
  }

  idlePcProposals(ref: NodeRef<'dynamips'>, signal?: AbortSignal): Promise<string[]> {
    return this.#alone(ref, () => this.#measure(ref, signal, idleProposals))
  }

  autoIdlePc(ref: NodeRef<'dynamips'>, signal?: AbortSignal): Promise<string> {
    return this.#alone(ref, () => this.#measure(ref, signal, autoIdlePc))
  }

  /** Ends what runs. */
  async close(): Promise<void> {
    this.#closing.abort(conflict('The service is stopping'))
    await this.#running
  }

  /** Two that are measured at the same time would each take the processor from the other. */
  async #alone<T>(ref: NodeRef<'dynamips'>, run: () => Promise<T>): Promise<T> {
    if (this.#running !== undefined) {
      // A router that is not there is 404, whatever else is measured.
      await this.#options.nodes.get(ref)
      throw conflict('An idle-PC value is being looked for already; try again later')
    }
    const answer = run()
    this.#running = answer.catch(() => {})
    try {
      return await answer
    } finally {
      this.#running = undefined
    }
  }

  async #measure<T>(
    ref: NodeRef<'dynamips'>,
    asker: AbortSignal | undefined,
    measure: (router: MeasuredRouter) => Promise<T>,
  ): Promise<T> {
    const { nodes, timeouts } = this.#options
    const late = new AbortController()
    const message = `The idle-PC value was not found within ${timeouts.measurement / 1000} s`
    const timer = setTimeout(() => late.abort(new ApiError(408, message)), timeouts.measurement)
    const givenUp = AbortSignal.any([late.signal, this.#closing.signal, ...(asker === undefined ? [] : [asker])])
    try {
      const taken = await nodes.with(ref, (node) => this.#take(node, givenUp))
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
        // Where it is being closed or was deleted, that is seen to.
        await nodes.with(ref, (node) => this.#giveBack(node, taken)).catch(() => {})
      }
    } finally {
      clearTimeout(timer)
    }
  }

  async #take(node: LabNode, givenUp: AbortSignal): Promise<Taken> {
    const { kind, lifeCycle } = this.#options
    givenUp.throwIfAborted()
    if (node.status === 'suspended') throw conflict('The router is suspended: resume it first')
    if (node.status === 'started') return { ...(await kind.guests.lend(node)), wasStopped: false }
    kind.startedToMeasure.add(node.key)
    try {
      await lifeCycle.start(node)
    } finally {
      kind.startedToMeasure.delete(node.key)
    }
    try {
      return { ...(await kind.guests.lend(node)), wasStopped: true }
    } catch (error) {
      await lifeCycle.stop(node)
      throw error
    }
  }

  /** Leaves the router as it was. */
  async #giveBack(node: LabNode, { wasStopped, ...lent }: Taken): Promise<void> {
    const { kind, lifeCycle } = this.#options
    if (!kind.guests.takeBack(node, lent)) return
    if (wasStopped) await lifeCycle.stop(node)
    else await kind.guests.setIdlePc(node)
  }
}
