import { join } from 'node:path'
import { ignore } from '../../../src/async/ignore.ts'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import type { NodeKindName } from '../../../src/kinds/node.ts'
import type { EventPayload } from '../../../src/model/event.ts'
import type { Inventory, UnitState } from '../keeper-protocol/protocol.ts'
import type { NodeKind } from '../kinds/kind.ts'
import type { Log } from '../log/log.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { listNodeRecords, nodeOfRecord, nodeRecords } from '../projects/project-record.ts'
import { readDurable } from '../storage/durable-file.ts'
import { NewerRecord, newerReason, recordVersion } from '../storage/newer-record.ts'
import { tidyCopies } from './copy.ts'
import type { DirectLinks } from './direct-links.ts'
import { type KeeperLink, unknownState } from './keeper-link.ts'
import { LabNode } from './lab-node.ts'
import { keeperDied, type LifeCycle } from './life-cycle.ts'
import type { Links } from './links.ts'
import type { Listening } from './listening.ts'
import type { NodeTable } from './node-table.ts'
import type { Nodes } from './nodes.ts'
import { consolePool, defaultConsole, type NodeRecord, parseNodeRecord, parseOrDefault } from './record.ts'
import { sealedKind } from './sealed.ts'
import { unitOf } from './slots.ts'

export interface ReopenOptions {
  readonly kinds: Readonly<Record<NodeKindName, NodeKind>>
  readonly keeper: KeeperLink
  readonly ports: PortAllocator
  readonly links: Links
  readonly direct: DirectLinks
  readonly lifeCycle: LifeCycle
  readonly listening: Listening
  readonly table: NodeTable
  readonly nodes: Pick<Nodes, 'finishRemoval'>
  /** Ends projects that were to be closed or deleted while it was not known what runs of them. */
  readonly finishProjects: () => Promise<void>
  readonly emit: (project: OpenProject, payload: EventPayload) => void
  readonly log: Log
}

/** Brings nodes back from their records, and what the keeper holds and the records say together again. */
export class Reopen {
  readonly #options: ReopenOptions
  /** One question to the keeper for all projects that are restored together. */
  #inventory: Promise<Inventory | undefined> | undefined
  /** Whether what belongs to no node is still to be ended, as it was not known what runs. */
  #hasStrangers = false
  readonly #settling = new KeyedMutex()
  /** Keys of units whose nodes are not opened, as a newer program wrote them: they are left alone. */
  readonly #left = new Set<string>()
  #retry: NodeJS.Timeout | undefined

  constructor(options: ReopenOptions) {
    this.#options = options
  }

  /** The nodes of a project. One that cannot be opened is there all the same, stopped, and says why. */
  async openNodes(project: OpenProject, isUnclaimed: boolean): Promise<void> {
    const names = await listNodeRecords(project.path)
    if (names.length === 0) return
    const directories = Object.keys(this.#options.kinds).map((kind) => join(project.filesDirectory, kind))
    await Promise.all(
      directories.map((directory) => tidyCopies(directory).catch(ignore('what cannot be tidied hinders no node'))),
    )
    // What was said when the service started is of no use for a project that is opened later.
    const inventory = await (isUnclaimed ? this.#inventoryNow() : this.#ask())
    if (!isUnclaimed) this.#hold(inventory?.ports ?? [])
    const runs = inventory && byUnit(inventory)
    await Promise.all(names.map((name) => this.#openNode(project, name, runs, isUnclaimed)))
    // Nothing is deleted while it is not known what runs.
    if (inventory !== undefined) await this.#finishRemovals(project)
  }

  /** Deletes the nodes that a service was deleting when it was killed. */
  async #finishRemovals(project: OpenProject): Promise<void> {
    for (const node of [...project.nodes.values()]) {
      await this.#options.nodes.finishRemoval(node).catch((error: Error) => {
        this.#warn(project, [`${node.record.name} could not be deleted, as it was to be: ${error.message}`])
      })
    }
  }

  /** Ends what still runs of the nodes of a project that is not opened again. */
  async endNodes(path: string): Promise<void> {
    const { keeper } = this.#options
    const names = await listNodeRecords(path)
    const keys = new Set(names.map(keyOf))
    const inventory = await this.#ask()
    if (inventory === undefined) throw unknownState(new Error(`the project in ${path} is not deleted`))
    // Nothing is ended when one of them is a newer program's.
    for (const name of names) await readDurable(join(nodeRecords(path), name), parseNodeRecord)
    const units = inventory.units.filter(({ key }) => keys.has(key))
    const stopped = await Promise.allSettled(
      units.map(({ key }) => keeper.call('unit.stop', { key, grace_ms: strangerMs })),
    )
    const failed = stopped.find((it) => it.status === 'rejected')
    if (failed !== undefined) {
      // The units may have ended all the same, or with their keeper.
      const now = await this.#inventoryNow()
      const mayRun = now === undefined || now.units.some(({ key, exit }) => keys.has(key) && exit === null)
      if (mayRun) {
        this.#retryLater()
        throw unknownState(failed.reason)
      }
    }
    await Promise.all(names.map((name) => this.#abandon(path, name)))
  }

  /** What runs of the nodes in a directory goes on, though they are not opened. */
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
      log.error({ err: error, node: record.name }, 'what a node has outside its project could not be ended')
    })
  }

  /** After all projects were restored: what runs in the keeper and belongs to no node is ended, once that is known. */
  async endStrangers(): Promise<void> {
    const { keeper, kinds, table, log } = this.#options
    const inventory = await this.#ask()
    this.#inventory = undefined
    this.#hasStrangers = inventory === undefined
    if (inventory === undefined) return this.#retryLater()
    const isThere = (key: string) => table.has(key) || this.#left.has(key)
    for (const { key } of inventory.units) {
      if (isThere(key)) continue
      await keeper.call('unit.stop', { key, grace_ms: strangerMs }).then(
        () => log.warn({ unit: key }, 'ended a unit that belongs to no node'),
        (err: unknown) => {
          log.error({ err, unit: key }, 'a unit that belongs to no node could not be ended: it is tried again')
          this.#hasStrangers = true
          this.#retryLater()
        },
      )
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

  /** The keepers answer: nodes that were opened while that was not known become what the keepers say, and what differs is settled. */
  answered(): Promise<void> {
    return this.#settling.run('', async () => {
      clearTimeout(this.#retry)
      const { table, emit } = this.#options
      this.#inventory = undefined
      const inventory = await this.#inventoryNow()
      if (inventory === undefined) return this.#retryLater()
      this.#hold(inventory.ports)
      const runs = byUnit(inventory)
      const unsettled = new Set([...table.values()].filter((node) => !node.isSettled))
      await Promise.all(
        [...table.values()].map((node) =>
          table.lock(node.key, async () => {
            if (table.get(node.key) !== node) return
            if (node.isSettled) return this.#reconcile(node, runs.get(node.key))
            node.isSettled = true
            node.status = 'stopped'
            await this.#settle(node, runs.get(node.key))
            emit(node.project, node.updated())
          }),
        ),
      )
      for (const project of new Set([...unsettled].map(({ project }) => project))) await this.#finishRemovals(project)
      await this.#options.finishProjects()
      if (this.#hasStrangers) await this.endStrangers()
    })
  }

  /** A keeper does not answer: the clients are told that what they see is the last that was known. */
  silent(why: string): void {
    const { table, emit } = this.#options
    const doubtful = [...table.values()].filter((node) => node.trouble !== undefined)
    for (const project of new Set(doubtful.map(({ project }) => project)))
      emit(project, { type: 'log.error', message: `It is not known what runs: ${why}` })
    for (const node of doubtful) emit(node.project, node.updated())
  }

  /** A keeper died with all that ran in it; `isOwn`: a new one is there. */
  async lost(isHeld: (key: string) => boolean, isOwn: boolean): Promise<void> {
    const { table, lifeCycle, links, emit } = this.#options
    lifeCycle.heardLoss(isHeld, isOwn)
    const held = [...table.values()].filter(({ key }) => isHeld(key))
    const hurt = new Set(held.filter(({ status }) => status !== 'stopped').map(({ project }) => project))
    for (const project of hurt)
      emit(project, { type: 'log.error', message: `${keeperDied}; its nodes are stopped and can be started again` })
    await Promise.all(
      held.map((node) =>
        table.lock(node.key, async () => {
          // One that has gone by now has no ports to be given; what was not known before is asked for.
          if (table.get(node.key) !== node || !node.isSettled) return
          await lifeCycle.lost(node, keeperDied)
          if (node.newer === undefined) this.#warn(node.project, await links.restore(node))
        }),
      ),
    )
  }

  /** Nodes have left an older keeper: their links are made again in the present one. */
  moved(keys: readonly string[]): void {
    const { table, links, log } = this.#options
    for (const key of keys) {
      const node = table.get(key)
      if (node === undefined) continue
      void table
        .lock(node.key, async () => {
          if (table.get(key) === node && node.isSettled && node.newer === undefined)
            this.#warn(node.project, await links.restore(node))
        })
        .catch((error: unknown) => log.error({ err: error, node: key }, 'a node that moved to another keeper'))
    }
  }

  /** Ends what was begun with a node, and not waited for, while its keeper did not answer. */
  async #reconcile(node: LabNode, run: Run | undefined): Promise<void> {
    const { keeper, links } = this.#options
    if (run?.unit?.exit === null && node.status === 'stopped')
      await keeper.call('unit.stop', { key: node.key, grace_ms: strangerMs })
    if (node.newer !== undefined) return
    await links.reconcile(node, run?.ports ?? [])
    this.#warn(node.project, await links.restore(node))
  }

  /** For what a keeper that answers did not say. */
  #retryLater(): void {
    clearTimeout(this.#retry)
    this.#retry = setTimeout(() => {
      // Of one that does not answer it is told when it does.
      if (this.#options.keeper.trouble === undefined)
        this.answered().catch(ignore('it is logged what the keeper does not say, and asked again'))
      else this.#retryLater()
    }, retryMs)
    this.#retry.unref()
  }

  /** Before any node is opened, so that none is given what another one has that runs. */
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
      this.#options.log.error({ err: error }, 'the keeper does not say what runs')
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
      this.#warn(project, [`The record ${name} is not that of a node that can be opened; it is left as it is`])
      this.#left.add(keyOf(name))
      return
    }
    if (newer !== undefined) this.#warn(project, [`The node ${record.name}: ${newerReason(newer.version)}`])
    else if (found.damaged) this.#warn(project, [`The record of node ${record.name} was damaged`])
    const ours = kinds[record.kind]
    const kind = newer === undefined ? ours : sealedKind(ours)
    const node = new LabNode(project, kind, record, (key) => keeper.troubleOf(key))
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
      // The next service must not take for it what another node has now; nor is the version before to be the only good one for long.
      if (isKnownOtherwise || (found.damaged && found.value !== undefined)) await node.saveOrTell()
      await this.#settle(node, runs.get(node.key))
    })
  }

  async #read(
    project: OpenProject,
    name: string,
  ): Promise<{ value?: NodeRecord; damaged: boolean; newer?: NewerRecord }> {
    try {
      const found = await readDurable(join(nodeRecords(project.path), name), parseNodeRecord)
      return found ?? { damaged: true }
    } catch (error) {
      if (error instanceof NewerRecord) return { damaged: false, newer: error }
      throw error
    }
  }

  /** It is not known what runs: the node is shown as it was last, and keeps what it had. */
  #leave(node: LabNode): void {
    node.isSettled = false
    node.status = node.record.running ? 'started' : 'stopped'
    this.#options.links.adopt(node, [])
    this.#options.listening.adopt(node, { console: null })
  }

  /** Has a node be what the keeper says it is. Its guest may tell of something meanwhile. */
  async #settle(node: LabNode, run: Run | undefined): Promise<void> {
    const { links, lifeCycle, listening } = this.#options
    const { record } = node
    const unit = run?.unit
    if (node.newer !== undefined) {
      // Its links are as the keeper has them; the record is another program's.
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
      node.status = 'started'
      await lifeCycle.lost(node, 'It was found stopped when the service started')
    }
    if (node.status === 'stopped') await node.kind.cleanup?.onIdle?.(node)
    await this.#givePorts(node, unit !== undefined)
    this.#warn(node.project, await links.restore(node))
  }

  /** The console it had, or another one. */
  async #givePorts(node: LabNode, hasConsole: boolean): Promise<void> {
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

/** What the keeper holds of a node: its unit, when there is one, and its ports. */
type Run = { unit: UnitState | undefined; readonly ports: Inventory['ports'][number][] }

/** What a keeper holds, by the keys of units. */
function byUnit({ units, ports }: Inventory): Map<string, Run> {
  const runs = new Map<string, Run>()
  const runOf = (key: string): Run => {
    const run = runs.get(key) ?? { unit: undefined, ports: [] }
    runs.set(key, run)
    return run
  }
  for (const unit of units) runOf(unit.key).unit = unit
  for (const port of ports) runOf(unitOf(port.key)).ports.push(port)
  return runs
}

/** Between the signals that end what belongs to no node, ms. */
const strangerMs = 3000
/** When the keepers are asked again what runs, after they did not say it, ms. */
const retryMs = 2000

/** The key of the node of a record. */
function keyOf(name: string): string {
  const node = nodeOfRecord(name)
  return node === undefined ? name : `${node.kind}:${node.nodeId}`
}

/**
 * Stands for a node whose record and the one before it cannot be read, or only by a newer program: its id is in the name of the
 * file.
 */
function placeholder(
  name: string,
  kinds: Readonly<Record<NodeKindName, NodeKind>>,
  newer?: NewerRecord,
): NodeRecord | undefined {
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
    status_reason:
      newer === undefined ? 'The record of the node is damaged: its settings are lost, its files are there' : null,
    running: newer?.content.running === true,
    properties: {},
    ports: {},
  }
}

const isPort = (value: unknown): value is number =>
  Number.isInteger(value) && Number(value) > 0 && Number(value) < 65536
