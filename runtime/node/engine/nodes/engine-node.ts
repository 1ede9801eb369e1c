import { join } from 'node:path'
import { KeyedMutex } from '../../../../src/lib/async/keyed-mutex.ts'
import { conflict } from '../../../../src/lib/errors/api-error.ts'
import type { EventPayload } from '../../../../src/model/event.ts'
import type { NodeChange } from '../../../../src/model/feed-line.ts'
import type { Node } from '../../../../src/model/kinds/node.ts'
import type { NodeStatus } from '../../../../src/model/schema/node-fields.ts'
import type { OpenProject } from '../projects/open-project.ts'
import { type Deletion, nodeRecordFile } from '../projects/project-record.ts'
import { withDiskErrors } from '../storage/disk.ts'
import { removeDurable, renameDurable, writeDurable } from '../storage/durable-file.ts'
import { type NewerRecord, newerReason } from '../storage/newer-record.ts'
import type { KindNode, NodeKind } from './kind.ts'
import { type EngineNodeRecord, storedRecord } from './record.ts'
import { type NodeEvent, NodeStateMachine } from './states.ts'

/** A node of an open project. */
export class EngineNode implements KindNode {
  readonly project: OpenProject
  readonly kind: NodeKind
  /** Unique on the host; also the key of its unit in the keeper. */
  readonly key: string
  record: EngineNodeRecord
  readonly #states = new NodeStateMachine()
  /** Number of its run in the keeper. */
  run: number | undefined
  /** What its start warned of: the reason of its status while it runs as it should. */
  startWarning: string | null = null
  /** Set when a newer program wrote its record: the node can be shown and stopped, but not changed. */
  newer: NewerRecord | undefined
  /** How it is being deleted. The name of its record includes it, so that a later service can finish the deletion. */
  deletion: Deletion | undefined
  /** Whether the node was restored with its project, and the client has not created it again yet. */
  isUnclaimed = false
  /** The cached `directory`, and the path of the project that it belongs to. */
  #directory = { of: '', path: '' }
  #shown: Node | undefined
  readonly #saving = new KeyedMutex()
  /** `#guestFacts` at the last write of the record. */
  #savedFacts: string | undefined
  #bytes: number | undefined

  readonly #troubleOf: (key?: string) => string | undefined

  /** `troubleOf`: why the state of a node is unknown, by its key. */
  constructor(
    project: OpenProject,
    kind: NodeKind,
    record: EngineNodeRecord,
    troubleOf: (key?: string) => string | undefined = () => undefined,
  ) {
    this.#troubleOf = troubleOf
    this.project = project
    this.kind = kind
    this.record = record
    this.key = `${record.kind}:${record.node_id}`
    this.#savedFacts = this.#guestFacts
  }

  /** What clients see of its state. */
  get status(): NodeStatus {
    return this.#states.status
  }

  get isStopped(): boolean {
    return this.#states.state === 'stopped'
  }

  /** Its program has started, as far as this service knows, and has not ended: also while its guest is paused, or is being stopped. */
  get isRunning(): boolean {
    return this.can('end')
  }

  get isSuspended(): boolean {
    return this.#states.state === 'suspended'
  }

  /** Whether its state has such a transition. */
  can(event: NodeEvent): boolean {
    return this.#states.can(event)
  }

  /** Changes its state. */
  move(event: NodeEvent): void {
    const { status } = this
    this.#states.move(event)
    if (status !== this.status) this.project.linkChanges += 1
  }

  /** Whether this service has read the state of the node from its keeper. */
  get isReconciled(): boolean {
    return this.#states.state !== 'unknown'
  }

  /** The owner of its ports, for the port allocator. */
  get owner(): string {
    return `${this.project.id}/${this.key}`
  }

  get projectId(): string {
    return this.project.id
  }

  get projectPath(): string {
    return this.project.path
  }

  get directory(): string {
    const { path } = this.project
    if (this.#directory.of !== path)
      this.#directory = { of: path, path: join(this.project.filesDirectory, this.record.kind, this.record.node_id) }
    return this.#directory.path
  }

  get siblings(): EngineNode[] {
    return [...this.project.nodes.values()].filter((node) => node !== this && node.kind === this.kind)
  }

  /** Why the state of the node is unknown; undefined when it is known. A stopped node is always known. */
  get unknownReason(): string | undefined {
    if (!this.isReconciled)
      return this.#troubleOf() ?? 'the process that holds the nodes (the keeper) has not answered yet'
    return this.status === 'stopped' ? undefined : this.keeperTrouble
  }

  /** Why its keeper does not answer; undefined when it does. */
  get keeperTrouble(): string | undefined {
    return this.#troubleOf(this.key)
  }

  /** The view. A frozen one, which has no objects in it, is the same object until something in it changes. */
  view(): Node {
    const view = this.#viewNow()
    if (this.#shown !== undefined && isSame(view, this.#shown)) return this.#shown
    if (Object.values(view).some((it) => typeof it === 'object' && it !== null)) return view
    this.#shown = Object.freeze(view)
    return view
  }

  #viewNow(): Node {
    const console_host = this.record.console === null ? null : this.project.consoleHost
    const view = { kind: this.record.kind, ...this.kind.view(this), console_host } as Node
    const { unknownReason: trouble } = this
    if (trouble !== undefined) return { ...view, status_reason: `This is the last known status: ${trouble}` }
    if (this.newer === undefined) return view
    return { ...view, status_reason: `The record of the node cannot be read: ${newerReason(this.newer.version)}` }
  }

  /** 409 when a newer program wrote the record. */
  requireUnsealed(): void {
    if (this.newer !== undefined) throw conflict(`The node ${this.record.name}: ${newerReason(this.newer.version)}`)
  }

  /** Runs a function while its files do not change. */
  withQuiescedGuest<T>(run: () => Promise<T>): Promise<T> {
    const { control } = this.kind
    return control === undefined || this.status === 'stopped' ? run() : control.withQuiescedGuest(this, run)
  }

  updated(change?: NodeChange): EventPayload {
    return { type: 'node.updated', node: this.view(), ...(change !== undefined && { change }) }
  }

  /** Size of the record, about, bytes. */
  get bytes(): number {
    this.#bytes ??= this.stored().length
    return this.#bytes
  }

  /** Writes the record in its state at the time of the write: an earlier state never replaces a later one. */
  save(): Promise<void> {
    // The record of a newer program must stay, and the record of a node that is being deleted is no longer needed.
    if (this.newer !== undefined || this.deletion !== undefined) return Promise.resolve()
    return this.#saving.run('', async () => {
      const facts = this.#guestFacts
      const text = this.stored()
      this.#bytes = text.length
      await withDiskErrors('The record of the node', () => writeDurable(this.#file(), text))
      this.#savedFacts = facts
      this.project.saved(this.key)
    })
  }

  /** The record as it is written, with other values. */
  stored(others: Partial<EngineNodeRecord> = {}): string {
    return JSON.stringify(storedRecord({ ...this.record, ...others }))
  }

  /** Saves the record; reports a failure once (`unsaved`), and does not reject. */
  async saveOrTell(): Promise<void> {
    await this.save().catch((error: unknown) => this.unsaved(error))
  }

  /** Reports that the record could not be saved. */
  unsaved(error: unknown): void {
    this.project.unsaved(this.key, this.record.name, error)
  }

  /** Whether the record has unsaved facts about the guest that the keeper does not have. */
  get hasUnsavedFacts(): boolean {
    return this.#savedFacts !== this.#guestFacts
  }

  /** The facts that only the record has. For a running node the keeper has the ports, and the console unless the emulator serves it. */
  get #guestFacts(): string {
    const { console, console_type, properties } = this.record
    return JSON.stringify([properties, console_type, console_type === 'telnet' ? null : console])
  }

  /**
   * Records that the node is being deleted, so that the next service finishes it if this one is killed. It renames the record, because
   * that needs no sync of a file, and many deletions share the sync of the directory.
   */
  async beginDeletion(deletion: Deletion): Promise<void> {
    await this.#saving.run('', async () => {
      const before = this.#file()
      this.deletion = deletion
      try {
        await withDiskErrors('The record of the node', () => renameDurable(before, this.#file()))
      } catch (error) {
        this.deletion = undefined
        throw error
      }
    })
  }

  /** Undoes `beginDeletion`: the node stays. */
  async endDeletion(): Promise<void> {
    const before = this.#file()
    this.deletion = undefined
    await withDiskErrors('The record of the node', () => renameDurable(before, this.#file())).catch((error: unknown) =>
      this.unsaved(error),
    )
    await this.saveOrTell()
  }

  async removeRecord(): Promise<void> {
    await removeDurable(this.#file())
  }

  #file(): string {
    return nodeRecordFile(this.project.path, this.record.kind, this.record.node_id, this.deletion)
  }
}

function isSame(view: Node, shown: Node): boolean {
  for (const name in view) if (view[name as keyof Node] !== shown[name as keyof Node]) return false
  return Object.keys(view).length === Object.keys(shown).length
}
