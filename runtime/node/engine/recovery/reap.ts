import { join } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import type { UnitState } from '../../keeper/protocol/protocol.ts'
import { unknownState } from '../nodes/keeper-link.ts'
import { parseNodeRecord, parseOrDefault } from '../nodes/record.ts'
import { unitOf } from '../nodes/slots.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { listNodeRecords, nodeOfRecord, nodeRecords } from '../projects/project-record.ts'
import { readDurable } from '../storage/durable-file.ts'
import type { Inventories } from './inventories.ts'
import { type RecoveryOptions, warn } from './options.ts'

/** Time between SIGTERM and SIGKILL to orphans, ms. */
export const orphanGraceMs = 3000

/** Ends what a service before left: deletions that it began, units of projects that are deleted, and what belongs to no node. */
export class Reaper {
  readonly #options: RecoveryOptions
  readonly #inventories: Inventories
  readonly #retryLater: () => void
  /** Keys of units whose nodes are not opened, because a newer program wrote their records. They keep running. */
  readonly #left = new Set<string>()
  #hasOrphans = false

  constructor(options: RecoveryOptions, inventories: Inventories, retryLater: () => void) {
    this.#options = options
    this.#inventories = inventories
    this.#retryLater = retryLater
  }

  /** Whether orphans remain to be ended, because the keepers did not answer. */
  get hasOrphans(): boolean {
    return this.#hasOrphans
  }

  /** Finishes deletions of nodes that a killed service began. */
  async finishRemovals(project: OpenProject): Promise<void> {
    for (const node of [...project.nodes.values()])
      await this.#options.nodes
        .finishRemoval(node)
        .catch(({ message }: Error) =>
          warn(this.#options, project, [`${node.record.name} could not be deleted: ${message}`]),
        )
  }

  /** Ends the units of a project that is deleted without being opened. */
  async endNodes(path: string): Promise<void> {
    const { keeper } = this.#options
    const names = await listNodeRecords(path)
    const keys = new Set(names.map(keyOf))
    const inventory = await this.#inventories.shared()
    const refused = `The project in ${path} was not deleted`
    if (inventory === undefined) throw unknownState(undefined, refused)
    // Throws NewerRecord before any unit is ended.
    for (const name of names) await readDurable(join(nodeRecords(path), name), parseNodeRecord)
    const units = inventory.units.filter(({ key }) => keys.has(key))
    const stop = ({ key }: UnitState) => keeper.call('unit.stop', { key, grace_ms: orphanGraceMs })
    const stopped = await Promise.allSettled(units.map(stop))
    const failed = stopped.find((it) => it.status === 'rejected')
    if (failed !== undefined) {
      // The units may have ended anyway, or with their keeper.
      const now = await this.#inventories.now()
      const mayRun = now === undefined || now.units.some(({ key, exit }) => keys.has(key) && exit === null)
      if (mayRun) {
        this.#retryLater()
        throw unknownState(failed.reason, refused)
      }
    }
    await Promise.all(names.map((name) => this.#abandon(path, name)))
  }

  /** Leaves the units of a project running whose records a newer program wrote. */
  async leaveNodes(path: string): Promise<void> {
    for (const name of await listNodeRecords(path)) this.leave(name)
  }

  /** The same for one node, by the name of its record. */
  leave(name: string): void {
    this.#left.add(keyOf(name))
  }

  async #abandon(path: string, name: string): Promise<void> {
    const { kinds, log } = this.#options
    const record = (await readDurable(join(nodeRecords(path), name), parseNodeRecord))?.value
    if (record === undefined) return
    const directory = join(path, 'project-files', record.kind, record.node_id)
    const { schema, cleanup } = kinds[record.kind]
    const parsed = { ...record, properties: parseOrDefault(schema, record.properties) }
    await cleanup?.onDiscarded?.(parsed, directory).catch((error: unknown) => {
      log.error({ err: error, node: record.name }, 'the resources of a node outside its project could not be removed')
    })
  }

  /** Ends units and ports of the keepers that belong to no node. Called after all projects were restored. */
  async reapOrphans(): Promise<void> {
    const { keeper, kinds, table, log } = this.#options
    const inventory = await this.#inventories.shared()
    this.#inventories.forget()
    this.#hasOrphans = inventory === undefined
    if (inventory === undefined) return this.#retryLater()
    const isThere = (key: string) => table.has(key) || this.#left.has(key)
    for (const { key } of inventory.units) {
      if (isThere(key)) continue
      try {
        await keeper.call('unit.stop', { key, grace_ms: orphanGraceMs })
        log.warn({ unit: key }, 'ended a unit that belongs to no node')
      } catch (err) {
        log.error({ err, unit: key }, 'a unit that belongs to no node could not be ended: the service tries again')
        this.#hasOrphans = true
        this.#retryLater()
      }
    }
    for (const { key, netio } of inventory.ports) {
      if (isThere(unitOf(key))) continue
      await keeper.call('port.close', { key }).catch(ignore('the port has no unit, and goes with its keeper'))
      if (netio != null) await keeper.tidyNetio(netio.application_id)
    }
    const lost = (inventory.links ?? []).filter((link) => !this.#options.direct.isKnown(link))
    for (const link of lost)
      await keeper
        .call('link.remove', { links: [link] })
        .catch(ignore('it has no open port, or is replaced by another'))
    for (const { cleanup } of Object.values(kinds)) await cleanup?.reapOrphans?.(isThere)
  }
}

/** The key of the node whose record has this file name. */
function keyOf(name: string): string {
  const node = nodeOfRecord(name)
  return node === undefined ? name : `${node.kind}:${node.nodeId}`
}
