import type { Inventory, UnitState } from '../../keeper/protocol/protocol.ts'
import { unitOf } from '../nodes/slots.ts'
import type { RecoveryOptions } from './options.ts'

/** What the keepers have; undefined while one does not answer. */
export class Inventories {
  readonly #options: Pick<RecoveryOptions, 'keeper' | 'log'>
  #shared: Promise<Inventory | undefined> | undefined

  constructor(options: Pick<RecoveryOptions, 'keeper' | 'log'>) {
    this.#options = options
  }

  /** One inventory for all projects that are restored together. */
  shared(): Promise<Inventory | undefined> {
    this.#shared ??= this.now()
    return this.#shared
  }

  /** The next call of `shared` reads a new one. */
  forget(): void {
    this.#shared = undefined
  }

  now(): Promise<Inventory | undefined> {
    return this.#options.keeper.inventory().catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'the inventory of the keepers cannot be read')
      return undefined
    })
  }
}

/** The unit and the ports of a node in its keeper. */
export type Run = { unit: UnitState | undefined; readonly ports: Inventory['ports'][number][] }

/** An inventory by node. */
export function byUnit({ units, ports }: Inventory): Map<string, Run> {
  const runs = new Map<string, Run>()
  const runOf = (key: string): Run => {
    const run = runs.get(key) ?? { unit: undefined, ports: [] }
    runs.set(key, run)
    return run
  }
  for (const unit of units) runOf(unit.key).unit = unit
  // The uplinks of clouds are their own.
  for (const port of ports) if (!port.key.includes('/uplink/')) runOf(unitOf(port.key)).ports.push(port)
  return runs
}
