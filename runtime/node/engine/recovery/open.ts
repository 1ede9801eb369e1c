import { join } from 'node:path'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import type { NodeKindName } from '../../../../src/model/kinds/node.ts'
import { tidyCopies } from '../nodes/copy.ts'
import { EngineNode } from '../nodes/engine-node.ts'
import type { NodeKind } from '../nodes/kind.ts'
import { defaultConsole, type EngineNodeRecord, parseNodeRecord, parseOrDefault } from '../nodes/record.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { listNodeRecords, nodeOfRecord, nodeRecords } from '../projects/project-record.ts'
import { readDurable } from '../storage/durable-file.ts'
import { NewerRecord, newerReason, recordVersion } from '../storage/newer-record.ts'
import type { Adoption } from './adopt.ts'
import { byUnit, type Inventories, type Run } from './inventories.ts'
import { type RecoveryOptions, warn } from './options.ts'
import type { Reaper } from './reap.ts'
import { sealedKind } from './sealed.ts'

/** Opens nodes from their records. */
export class Opening {
  readonly #options: RecoveryOptions
  readonly #inventories: Inventories
  readonly #adoption: Adoption
  readonly #reaper: Reaper

  constructor(
    options: RecoveryOptions,
    { inventories, adoption, reaper }: { inventories: Inventories; adoption: Adoption; reaper: Reaper },
  ) {
    this.#options = options
    this.#inventories = inventories
    this.#adoption = adoption
    this.#reaper = reaper
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
    const inventory = await (isUnclaimed ? this.#inventories.now() : this.#inventories.shared())
    if (!isUnclaimed) this.#adoption.hold(inventory?.ports ?? [])
    const runs = inventory && byUnit(inventory)
    await Promise.all(names.map((name) => this.#openNode(project, name, runs, isUnclaimed)))
    // Nothing is deleted while the state of the nodes is unknown.
    if (inventory !== undefined) await this.#reaper.finishRemovals(project)
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
      warn(this.#options, project, [
        `The record ${name} does not belong to a node that can be opened; it was left as it is`,
      ])
      this.#reaper.leave(name)
      return
    }
    if (newer !== undefined) warn(this.#options, project, [`The node ${record.name}: ${newerReason(newer.version)}`])
    else if (found.damaged) warn(this.#options, project, [`The record of node ${record.name} was damaged`])
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
      if (runs === undefined) return this.#adoption.leave(node)
      // Saved now: the next service must find the new identity, and a damaged record needs a second valid copy.
      if (isKnownOtherwise || (found.damaged && found.value !== undefined)) await node.saveOrTell()
      await this.#adoption.adopt(node, runs.get(node.key))
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
