import { join } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { NodeKindName } from '../../../../src/model/kinds/node.ts'
import type { Inventory, UnitState } from '../../keeper/protocol/protocol.ts'
import type { Log } from '../../os/log/log.ts'
import { tidyCopies } from '../nodes/copy.ts'
import type { DirectLinks } from '../nodes/direct-links.ts'
import { EngineNode } from '../nodes/engine-node.ts'
import { type KeeperLink, unknownState } from '../nodes/keeper-link.ts'
import type { NodeKind } from '../nodes/kind.ts'
import { keeperDied, type LifeCycle } from '../nodes/life-cycle.ts'
import type { Links } from '../nodes/links.ts'
import type { ConsoleListeners } from '../nodes/listening.ts'
import type { NodeTable } from '../nodes/node-table.ts'
import type { Nodes } from '../nodes/nodes.ts'
import { consolePool, defaultConsole, type EngineNodeRecord, parseNodeRecord, parseOrDefault } from '../nodes/record.ts'
import { unitOf } from '../nodes/slots.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { listNodeRecords, nodeOfRecord, nodeRecords } from '../projects/project-record.ts'
import { readDurable } from '../storage/durable-file.ts'
import { NewerRecord, newerReason, recordVersion } from '../storage/newer-record.ts'
import { sealedKind } from './sealed.ts'

export interface ReopenOptions {
  readonly kinds: Readonly<Record<NodeKindName, NodeKind>>
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly links: Links
  readonly direct: DirectLinks
  readonly lifeCycle: LifeCycle
  readonly listening: ConsoleListeners
  readonly table: NodeTable
  readonly nodes: Pick<Nodes, 'finishRemoval'>
  /** Finishes the close or deletion of projects, which waited for the state of their nodes. */
  readonly finishProjects: () => Promise<void>
  readonly emit: (project: OpenProject, payload: EventPayload) => void
  readonly log: Log
}

/** Opens nodes from their records, and reconciles the records with the keepers. */
export class Reopen {
  readonly #options: ReopenOptions
  /** One inventory for all projects that are restored together. */
  #inventory: Promise<Inventory | undefined> | undefined
  /** Whether orphans remain to be ended, because the keepers did not answer. */
  #hasOrphans = false
  readonly #settling = new KeyedMutex()
  /** Keys of units whose nodes are not opened, because a newer program wrote their records. They keep running. */
  readonly #left = new Set<string>()
  #retry: NodeJS.Timeout | undefined

  constructor(options: ReopenOptions) {
    this.#options = options
  }

  /** Opens the nodes of a project. A node with a damaged record is stopped, with the reason. */
  async openNodes(project: OpenProject, isUnclaimed: boolean): Promise<void> {
    const names = await listNodeRecords(project.path)
    if (names.length === 0) return
    const directories = Object.keys(this.#options.kinds).map((kind) => join(project.filesDirectory, kind))
    await Promise.all(
      directories.map((directory) => tidyCopies(directory).catch(ignore('what cannot be tidied hinders no node'))),
    )
    // The inventory of the start is too old for a project that a client opens later.
    const inventory = await (isUnclaimed ? this.#inventoryNow() : this.#ask())
    if (!isUnclaimed) this.#hold(inventory?.ports ?? [])
    const runs = inventory && byUnit(inventory)
    await Promise.all(names.map((name) => this.#openNode(project, name, runs, isUnclaimed)))
    // Nothing is deleted while the state of the nodes is unknown.
    if (inventory !== undefined) await this.#finishRemovals(project)
  }

  /** Finishes deletions of nodes that a killed service began. */
  async #finishRemovals(project: OpenProject): Promise<void> {
    for (const node of [...project.nodes.values()])
      await this.#options.nodes
        .finishRemoval(node)
        .catch(({ message }: Error) => this.#warn(project, [`${node.record.name} could not be deleted: ${message}`]))
  }

  /** Ends the units of a project that is deleted without being opened. */
  async endNodes(path: string): Promise<void> {
    const { keeper } = this.#options
    const names = await listNodeRecords(path)
    const keys = new Set(names.map(keyOf))
    const inventory = await this.#ask()
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
      const now = await this.#inventoryNow()
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
    for (const name of await listNodeRecords(path)) this.#left.add(keyOf(name))
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
    const inventory = await this.#ask()
    this.#inventory = undefined
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

  /** The keepers answer again: takes the state of nodes from them that was unknown, and reconciles the other nodes. */
  answered(): Promise<void> {
    return this.#settling.run('', async () => {
      clearTimeout(this.#retry)
      const { table, emit } = this.#options
      this.#inventory = undefined
      const inventory = await this.#inventoryNow()
      if (inventory === undefined) return this.#retryLater()
      this.#hold(inventory.ports)
      const runs = byUnit(inventory)
      const unsettled = new Set([...table.values()].filter((node) => !node.isReconciled))
      await Promise.all(
        [...table.values()].map((node) =>
          table.lock(node.key, async () => {
            if (table.get(node.key) !== node) return
            if (node.isReconciled) return this.#reconcile(node, runs.get(node.key))
            node.move('answer')
            await this.#settle(node, runs.get(node.key))
            emit(node.project, node.updated())
          }),
        ),
      )
      for (const project of new Set([...unsettled].map(({ project }) => project))) await this.#finishRemovals(project)
      await this.#options.finishProjects()
      if (this.#hasOrphans) await this.reapOrphans()
    })
  }

  /** A keeper does not answer: tells the clients that the state of its nodes is the last known one. */
  onUnresponsive(why: string): void {
    const { table, emit } = this.#options
    const doubtful = [...table.values()].filter((node) => node.unknownReason !== undefined)
    for (const project of new Set(doubtful.map(({ project }) => project)))
      emit(project, { type: 'log.error', message: `The state of nodes is unknown: ${why}` })
    for (const node of doubtful) emit(node.project, node.updated())
  }

  /** A keeper died with its units; `isOwn`: it was the keeper of this build, and a new one runs. */
  async lost(isHeld: (key: string) => boolean, isOwn: boolean): Promise<void> {
    const { table, lifeCycle, links, emit } = this.#options
    lifeCycle.recordLoss(isHeld, isOwn)
    const held = [...table.values()].filter(({ key }) => isHeld(key))
    const hurt = new Set(held.filter(({ status }) => status !== 'stopped').map(({ project }) => project))
    for (const project of hurt)
      emit(project, { type: 'log.error', message: `${keeperDied}; its nodes are stopped and can be started again` })
    await Promise.all(
      held.map((node) =>
        table.lock(node.key, async () => {
          // `answered` handles nodes whose state was unknown.
          if (table.get(node.key) !== node || !node.isReconciled) return
          const isToRun = node.status !== 'stopped' && lifeCycle.isAlwaysOn(node)
          await lifeCycle.lost(node, keeperDied)
          if (isToRun && isOwn) await lifeCycle.startIfPossible(node)
          if (node.newer === undefined) this.#warn(node.project, await links.restore(node))
        }),
      ),
    )
  }

  /** Nodes have left an older keeper: attaches their links in the keeper of this build. */
  moved(keys: readonly string[]): void {
    const { table, links, log } = this.#options
    for (const key of keys) {
      const node = table.get(key)
      if (node === undefined) continue
      void table
        .lock(node.key, async () => {
          if (table.get(key) === node && node.isReconciled && node.newer === undefined)
            this.#warn(node.project, await links.restore(node))
        })
        .catch((error: unknown) => log.error({ err: error, node: key }, 'a node that moved to another keeper'))
    }
  }

  /** Undoes operations whose answer was not awaited because the keeper of the node did not answer. */
  async #reconcile(node: EngineNode, run: Run | undefined): Promise<void> {
    const { keeper, links } = this.#options
    if (run?.unit?.exit === null && node.status === 'stopped')
      await keeper.call('unit.stop', { key: node.key, grace_ms: orphanGraceMs })
    if (node.newer !== undefined) return
    await links.reconcile(node, run?.ports ?? [])
    this.#warn(node.project, await links.restore(node))
  }

  /** Schedules `answered`, after an inventory failed although the keepers answer. */
  #retryLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => {
      // A keeper that does not answer triggers `answered` itself when it answers.
      if (this.#options.keeper.unknownReason === undefined)
        this.answered().catch(ignore('the failure of the inventory is logged, and the call is repeated'))
      else this.#retryLater()
    }, retryMs)
    this.#retry.unref()
  }

  /** Reserves the identities of running nodes, before a node is opened that might take one. */
  #hold(ports: Inventory['ports']): void {
    for (const { key, netio } of ports) {
      const unit = unitOf(key)
      const kind = Object.values(this.#options.kinds).find(({ descriptor }) => unit.startsWith(`${descriptor.name}:`))
      if (netio != null) kind?.identity?.adoptPort(unit, netio)
    }
  }

  #ask(): Promise<Inventory | undefined> {
    this.#inventory ??= this.#inventoryNow()
    return this.#inventory
  }

  #inventoryNow(): Promise<Inventory | undefined> {
    return this.#options.keeper.inventory().catch((error: unknown) => {
      this.#options.log.error({ err: error }, 'the inventory of the keepers cannot be read')
      return undefined
    })
  }

  async #openNode(
    project: OpenProject,
    name: string,
    runs: ReadonlyMap<string, Run> | undefined,
    isUnclaimed: boolean,
  ): Promise<void> {
    const { kinds, table, keeper } = this.#options
    const { newer, ...found } = await this.#read(project, name)
    const record = found.value ?? placeholder(name, kinds, newer)
    if (record === undefined || table.has(`${record.kind}:${record.node_id}`)) {
      this.#warn(project, [`The record ${name} does not belong to a node that can be opened; it was left as it is`])
      this.#left.add(keyOf(name))
      return
    }
    if (newer !== undefined) this.#warn(project, [`The node ${record.name}: ${newerReason(newer.version)}`])
    else if (found.damaged) this.#warn(project, [`The record of node ${record.name} was damaged`])
    const ours = kinds[record.kind]
    const kind = newer === undefined ? ours : sealedKind(ours)
    const node = new EngineNode(project, kind, record, (key) => keeper.troubleOf(key))
    const before = JSON.stringify(record.properties)
    record.properties = parseOrDefault(ours.schema, record.properties)
    this.#options.direct.adopt(node)
    ours.onOpened?.(node)
    node.newer = newer
    if (newer === undefined) node.deletion = nodeOfRecord(name)?.deletion
    const isKnownOtherwise =
      found.value !== undefined && kind.identity !== undefined && JSON.stringify(record.properties) !== before
    node.isUnclaimed = isUnclaimed
    project.nodes.set(node.key, node)
    table.set(node.key, node)
    await table.lock(node.key, async () => {
      if (runs === undefined) return this.#leave(node)
      // Saved now: the next service must find the new identity, and a damaged record needs a second valid copy.
      if (isKnownOtherwise || (found.damaged && found.value !== undefined)) await node.saveOrTell()
      await this.#settle(node, runs.get(node.key))
    })
  }

  async #read(
    project: OpenProject,
    name: string,
  ): Promise<{ value?: EngineNodeRecord; damaged: boolean; newer?: NewerRecord }> {
    try {
      const found = await readDurable(join(nodeRecords(project.path), name), parseNodeRecord)
      return found ?? { damaged: true }
    } catch (error) {
      if (error instanceof NewerRecord) return { damaged: false, newer: error }
      throw error
    }
  }

  /** The state of the node is unknown: shows the state in its record, and keeps its ports. */
  #leave(node: EngineNode): void {
    if (node.record.running) node.move('find')
    node.move('lose')
    this.#options.links.adopt(node, [])
    this.#options.listening.adopt(node, { console: null })
  }

  /** Takes the state of a node from its keeper. */
  async #settle(node: EngineNode, run: Run | undefined): Promise<void> {
    const { links, lifeCycle, listening } = this.#options
    const { record } = node
    const unit = run?.unit
    if (node.newer !== undefined) {
      // The record must not change: a newer program wrote it.
      if (unit !== undefined) {
        listening.adopt(node, unit)
        await lifeCycle.adopt(node, unit)
      }
      return
    }
    if (unit !== undefined) {
      const isChanged = [links.adopt(node, run?.ports ?? []), listening.adopt(node, unit)].includes(true)
      if (isChanged) await node.saveOrTell()
      await lifeCycle.adopt(node, unit)
      if (node.status !== 'stopped') this.#warn(node.project, await listening.restore(node, unit))
    } else if (record.running) {
      node.move('find')
      await lifeCycle.lost(node, 'It was found stopped when the service started')
      if (lifeCycle.isAlwaysOn(node)) await lifeCycle.startIfPossible(node)
    }
    if (node.status === 'stopped') await node.kind.cleanup?.onIdle?.(node)
    await this.#givePorts(node, unit !== undefined)
    this.#warn(node.project, await links.restore(node))
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

  #warn(project: OpenProject, messages: readonly string[]): void {
    for (const message of messages) this.#options.emit(project, { type: 'log.warning', message })
  }
}

/** The unit and the ports of a node in its keeper. */
type Run = { unit: UnitState | undefined; readonly ports: Inventory['ports'][number][] }

/** An inventory by node. */
function byUnit({ units, ports }: Inventory): Map<string, Run> {
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

/** Time between SIGTERM and SIGKILL to orphans, ms. */
const orphanGraceMs = 3000
/** Delay before another inventory after a failed one, ms. */
const retryMs = 2000

/** The key of the node whose record has this file name. */
function keyOf(name: string): string {
  const node = nodeOfRecord(name)
  return node === undefined ? name : `${node.kind}:${node.nodeId}`
}

/** The record of a node whose record and backup are unreadable, or written by a newer program. The file name has its id. */
function placeholder(
  name: string,
  kinds: Readonly<Record<NodeKindName, NodeKind>>,
  newer?: NewerRecord,
): EngineNodeRecord | undefined {
  const { kind, nodeId: node_id } = nodeOfRecord(name) ?? {}
  if (kind === undefined || node_id === undefined || !(kind in kinds)) return undefined
  return {
    version: recordVersion,
    kind: kind as NodeKindName,
    node_id,
    name: typeof newer?.content.name === 'string' ? newer.content.name : node_id,
    console: isPort(newer?.content.console) ? newer.content.console : null,
    console_type: defaultConsole(kind as NodeKindName),
    command_line: '',
    status_reason: newer ? null : 'The record of the node is damaged: its settings are lost, its files still exist',
    running: newer?.content.running === true,
    properties: {},
    ports: {},
  }
}

const isPort = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) > 0 && Number(value) < 65536
