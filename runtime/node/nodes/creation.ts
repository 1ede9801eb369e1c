import { mkdir, rm } from 'node:fs/promises'
import { ignore } from '../../../src/async/ignore.ts'
import type { NodeCreate, NodeRef } from '../../../src/kinds/node.ts'
import type { EventPayload } from '../../../src/model/event.ts'
import type { NodeKind } from '../kinds/kind.ts'
import type { PortAllocator } from '../ports/allocator.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { diskError, requireSpace } from '../storage/disk.ts'
import { recordVersion } from '../storage/newer-record.ts'
import type { Consoles } from './consoles.ts'
import { LabNode } from './lab-node.ts'
import type { NodeTable } from './node-table.ts'
import { defaultConsole, parseOrDefault } from './record.ts'

export interface CreationOptions {
  readonly table: NodeTable
  readonly ports: PortAllocator
  readonly consoles: Consoles
  readonly minFreeMb: () => number
  readonly emit: (node: LabNode, payload: EventPayload) => void
  /** Why nothing is known of a node now, by its key. */
  readonly troubleOf: (key?: string) => string | undefined
}

/** How nodes come to be. Callers hold the lock of the node. */
export class Creation {
  readonly #options: CreationOptions

  constructor(options: CreationOptions) {
    this.#options = options
  }

  /** A new node, stopped; nothing is left when it fails. */
  async create(
    project: OpenProject,
    kind: NodeKind,
    { kind: kindName, node_id: nodeId }: Pick<NodeRef, 'kind' | 'node_id'>,
    input: NodeCreate,
  ): Promise<LabNode> {
    await requireSpace(project.path, this.#options.minFreeMb())
    project.requireUsable()
    const { name, console: wanted, console_type } = input
    const { cleanup } = kind
    const record: LabNode['record'] = {
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
    const node = new LabNode(project, kind, record, this.#options.troubleOf)
    kind.onNew?.(node)
    // From here on its properties are seen by siblings, so that two creates at once do not get the same.
    project.nodes.set(node.key, node)
    let isMade = false
    let moved: string | undefined
    try {
      moved = await this.#options.consoles.give(node, wanted ?? undefined)
      // What a saved lab has there is not ours to remove when this fails.
      isMade = (await mkdir(node.directory, { recursive: true, mode: 0o700 })) !== undefined
      await kind.prepare(node, input)
      await node.save()
      await keep(project, `${kindName}/${nodeId}`)
    } catch (error) {
      project.nodes.delete(node.key)
      this.#options.ports.releaseAll(node.owner)
      const how = { isDeleted: true }
      await cleanup?.onRemoved?.(node, how).catch(() => cleanup.deferredCleanup?.(node, how))
      await cleanup?.dispose?.(node)
      // Else it would be there again after a restart.
      await node
        .removeRecord()
        .catch((failure: unknown) => project.unsaved(node.key, `The removal of ${name}`, failure))
      if (isMade)
        await rm(node.directory, { recursive: true, force: true }).catch(ignore('no other node has this directory'))
      throw diskError('The directory of the node', error)
    }
    this.#options.table.set(node.key, node)
    await kind.onCreated?.(node)
    this.#options.emit(node, { type: 'node.created', node: node.view() })
    if (moved !== undefined) this.#options.emit(node, { type: 'log.warning', message: moved })
    return node
  }
}

/** Has the next commit remove the directory of a deleted node; false when that cannot be written down. */
export async function noteDeleted({ project, record }: LabNode): Promise<boolean> {
  const name = `${record.kind}/${record.node_id}`
  if (!project.record.deleted.includes(name)) project.record.deleted.push(name)
  return project.save().then(
    () => true,
    () => false,
  )
}

/** The directory belongs to a node again: a commit must not remove it. */
async function keep(project: OpenProject, name: string): Promise<void> {
  if (!project.record.deleted.includes(name)) return
  project.record.deleted = project.record.deleted.filter((it) => it !== name)
  await project.save()
}
