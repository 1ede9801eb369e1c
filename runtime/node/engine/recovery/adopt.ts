import type { Inventory } from '../../keeper/protocol/protocol.ts'
import type { EngineNode } from '../nodes/engine-node.ts'
import { consolePool } from '../nodes/record.ts'
import { unitOf } from '../nodes/slots.ts'
import type { Run } from './inventories.ts'
import { type RecoveryOptions, warn } from './options.ts'

/** Takes the state of nodes from their keepers. Callers hold the lock of the node. */
export class Adoption {
  readonly #options: RecoveryOptions

  constructor(options: RecoveryOptions) {
    this.#options = options
  }

  /** Reserves the identities of running nodes, before a node is opened that might take one. */
  hold(ports: Inventory['ports']): void {
    for (const { key, netio } of ports) {
      const unit = unitOf(key)
      const kind = Object.values(this.#options.kinds).find(({ descriptor }) => unit.startsWith(`${descriptor.name}:`))
      if (netio != null) kind?.identity?.adoptPort(unit, netio)
    }
  }

  /** The state of the node is unknown: shows the state in its record, and keeps its ports. */
  leave(node: EngineNode): void {
    if (node.record.running) node.move('adopt')
    node.move('becomeUnknown')
    this.#options.links.adopt(node, [])
    this.#options.listening.adopt(node, { console: null })
  }

  /** Takes the state of a node from its keeper. */
  async adopt(node: EngineNode, run: Run | undefined): Promise<void> {
    const { links, lifecycle, listening } = this.#options
    const { record } = node
    const unit = run?.unit
    if (node.newer !== undefined) {
      // The record must not change: a newer program wrote it.
      if (unit !== undefined) {
        listening.adopt(node, unit)
        await lifecycle.adopt(node, unit)
      }
      return
    }
    if (unit !== undefined) {
      const isChanged = [links.adopt(node, run?.ports ?? []), listening.adopt(node, unit)].includes(true)
      if (isChanged) await node.saveOrTell()
      await lifecycle.adopt(node, unit)
      if (node.status !== 'stopped') warn(this.#options, node.project, await listening.restore(node, unit))
    } else if (record.running) {
      node.move('adopt')
      await lifecycle.onUnitGone(node, 'It was found stopped when the service started')
      if (lifecycle.isAlwaysOn(node)) await lifecycle.startIfPossible(node)
    }
    if (node.status === 'stopped') await node.kind.cleanup?.onIdle?.(node)
    await this.#givePorts(node, unit !== undefined)
    warn(this.#options, node.project, await links.restore(node))
  }

  /** Allocates the console port of the record, or another one. */
  async #givePorts(node: EngineNode, hasConsole: boolean): Promise<void> {
    const { record, owner } = node
    const pool = consolePool(record)
    if (hasConsole || pool === undefined) return
    try {
      const before = record.console
      record.console = await this.#options.ports.allocate(pool, owner, before ?? undefined)
      if (record.console !== before) await node.save()
    } catch (error) {
      record.status_reason = (error as Error).message
    }
  }
}
