import { mkdir, rm } from 'node:fs/promises'
import type { LabLimits } from '../../../../src/labs/lab/lab-limits.ts'
import { ignore } from '../../../../src/lib/async/ignore.ts'
import { Revert } from '../../../../src/lib/revert.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { NodeCreate, NodeRef } from '../../../../src/model/kinds/node.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { requireSpace, withDiskErrors } from '../storage/disk.ts'
import { recordVersion } from '../storage/newer-record.ts'
import type { Consoles } from './consoles.ts'
import { EngineNode } from './engine-node.ts'
import type { NodeKind } from './kind.ts'
import { requireRoomForNode } from './node-limits.ts'
import type { NodeTable } from './node-table.ts'
import { defaultConsole, parseOrDefault } from './record.ts'

export interface CreationOptions {
  readonly table: NodeTable
  readonly ports: PortAllocator
  readonly consoles: Consoles
  readonly minFreeMb: () => number
  readonly limits: () => LabLimits
  readonly emit: (node: EngineNode, payload: EventPayload) => void
  /** Why the state of a node is unknown, by its key; undefined when it is known. */
  readonly troubleOf: (key?: string) => string | undefined
}

/** Creates nodes. Callers hold the lock of the node. */
export class Creation {
  readonly #options: CreationOptions

  constructor(options: CreationOptions) {
    this.#options = options
  }

  /** Creates a stopped node; a failure leaves nothing behind. */
  async create(
    project: OpenProject,
    kind: NodeKind,
    { kind: kindName, node_id: nodeId }: Pick<NodeRef, 'kind' | 'node_id'>,
    input: NodeCreate,
  ): Promise<EngineNode> {
    await requireSpace(project.path, this.#options.minFreeMb())
    project.requireUsable()
    requireRoomForNode(project, input, this.#options.limits())
    const { name, console: wanted, console_type } = input
    const { cleanup } = kind
    const record: EngineNode['record'] = {
      version: recordVersion,
      kind: kindName,
      node_id: nodeId,
      name,
      console: null,
      console_type: console_type ?? defaultConsole(kindName),
      command_line: '',
      status_reason: null,
      running: false,
      properties: parseOrDefault(kind.schema),
      ports: {},
    }
    const node = new EngineNode(project, kind, record, this.#options.troubleOf)
    kind.onNew?.(node, input)
    // From here on other nodes see its properties, so that two simultaneous creations do not choose the same ones.
    project.nodes.set(node.key, node)
    let isMade = false
    await using revert = new Revert(ignore('no other node has this directory or these resources'))
    revert.add(() => isMade && rm(node.directory, { recursive: true, force: true }))
    // Otherwise the node would come back after a restart.
    revert.add(() =>
      node.removeRecord().catch((error: unknown) => project.unsaved(node.key, `The removal of ${name}`, error)),
    )
    revert.add(() => cleanup?.dispose?.(node))
    revert.add(() => {
      const how = { isDeleted: true, keepsFiles: !isMade }
      return cleanup?.onRemoved?.(node, how).catch(() => cleanup.deferredCleanup?.(node, how))
    })
    revert.add(() => this.#options.ports.releaseAll(node.owner))
    revert.add(() => project.nodes.delete(node.key))
    const moved = await withDiskErrors('The directory of the node', async () => {
      const given = await this.#options.consoles.give(node, wanted ?? undefined)
      // A directory that existed before (a saved lab) must survive a failure.
      isMade = (await mkdir(node.directory, { recursive: true, mode: 0o700 })) !== undefined
      await kind.prepare(node, input)
      await node.save()
      await keep(project, `${kindName}/${nodeId}`)
      return given
    })
    revert.commit()
    this.#options.table.set(node.key, node)
    await kind.onCreated?.(node)
    this.#options.emit(node, { type: 'node.created', node: node.view() })
    if (moved !== undefined) this.#options.emit(node, { type: 'log.warning', message: moved })
    return node
  }
}

/** Schedules the removal of a deleted node's directory for the next commit; false when the record cannot be saved. */
export async function markDeleted({ project, record }: EngineNode): Promise<boolean> {
  const name = `${record.kind}/${record.node_id}`
  if (!project.record.deleted.includes(name)) project.record.deleted.push(name)
  return (await project.save().catch(() => false)) !== false
}

/** Cancels the removal: the directory belongs to a node again. */
async function keep(project: OpenProject, name: string): Promise<void> {
  if (!project.record.deleted.includes(name)) return
  project.record.deleted = project.record.deleted.filter((it) => it !== name)
  await project.save()
}
