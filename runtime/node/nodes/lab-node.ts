import { join } from 'node:path'
import { KeyedMutex } from '../../../src/async/keyed-mutex.ts'
import { conflict } from '../../../src/errors/api-error.ts'
import type { Node } from '../../../src/kinds/node.ts'
import type { EventPayload, NodeChange } from '../../../src/model/event.ts'
import type { NodeStatus } from '../../../src/schema/node-fields.ts'
import type { KindNode, NodeKind } from '../kinds/kind.ts'

import type { OpenProject } from '../projects/open-project.ts'
import { type Deletion, nodeRecordFile } from '../projects/project-record.ts'
import { withDiskErrors } from '../storage/disk.ts'
import { removeDurable, renameDurable, writeDurable } from '../storage/durable-file.ts'
import { type NewerRecord, newerReason } from '../storage/newer-record.ts'
import { type NodeRecord, storedRecord } from './record.ts'

/** A node of an open project. */
export class LabNode implements KindNode {
  readonly project: OpenProject
  readonly kind: NodeKind
  /** Unique on the host; also the key of its unit in the keeper. */
  readonly key: string
  record: NodeRecord
  status: NodeStatus = 'stopped'
  /** Number of the keeper's run of it. */
  run: number | undefined
  /** A newer program wrote its record: the node is shown, can be stopped, and is not changed. */
  newer: NewerRecord | undefined
  /** Whether its keeper has said what it does, since this service opened it. */
  isSettled = true
  /** How it is being deleted, which the name of its record says: a service that finds it so finishes that. */
  deletion: Deletion | undefined
  /** Restored when the project was opened again, and not yet asked for by the client that opened it. */
  isUnclaimed = false
  /** Where its files are while its project is at that path. */
  #directory = { of: '', path: '' }
  readonly #saving = new KeyedMutex()
  /** What `guestFacts` was when the record was last written. */
  #savedFacts: string | undefined

  readonly #troubleOf: (key?: string) => string | undefined

  /** `troubleOf`: why nothing is known of a node now, by its key. */
  constructor(
    project: OpenProject,
    kind: NodeKind,
    record: NodeRecord,
    troubleOf: (key?: string) => string | undefined = () => undefined,
  ) {
    this.#troubleOf = troubleOf
    this.project = project
    this.kind = kind
    this.record = record
    this.key = `${record.kind}:${record.node_id}`
    this.#savedFacts = this.#guestFacts
  }

  /** Who owns its ports. */
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

  get siblings(): LabNode[] {
    return [...this.project.nodes.values()].filter((node) => node !== this && node.kind === this.kind)
  }

  /** Why it is not known what the node does now; undefined when it is. What does not run is known not to. */
  get trouble(): string | undefined {
    if (!this.isSettled) return this.#troubleOf() ?? 'the process that holds the nodes (the keeper) has not said it yet'
    return this.status === 'stopped' ? undefined : this.keeperTrouble
  }

  /** Why its keeper cannot be asked for anything now. */
  get keeperTrouble(): string | undefined {
    return this.#troubleOf(this.key)
  }

  view(): Node {
    const console_host = this.record.console === null ? null : this.project.consoleHost
    // The view is that of the kind.
    const view = { kind: this.record.kind, ...this.kind.view(this), console_host } as Node
    const { trouble } = this
    if (trouble !== undefined) return { ...view, status_reason: `This is the last known status: ${trouble}` }
    if (this.newer === undefined) return view
    return { ...view, status_reason: `Of the node little is known: ${newerReason(this.newer.version)}` }
  }

  /** 409 when a newer program wrote the record. */
  requireUnsealed(): void {
    if (this.newer !== undefined) throw conflict(`The node ${this.record.name}: ${newerReason(this.newer.version)}`)
  }

  /** Runs something while its files do not change. */
  whileStill<T>(run: () => Promise<T>): Promise<T> {
    const { control } = this.kind
    return control === undefined || this.status === 'stopped' ? run() : control.whileStill(this, run)
  }

  updated(change?: NodeChange): EventPayload {
    return { type: 'node.updated', node: this.view(), ...(change !== undefined && { change }) }
  }

  /** Writes the record as it is when it is the turn of this: a later state is never replaced by an earlier one. */
  save(): Promise<void> {
    // What a newer program wrote stays as it is, and of a node that is being deleted nothing more is wanted.
    if (this.newer !== undefined || this.deletion !== undefined) return Promise.resolve()
    return this.#saving.run('', async () => {
      const facts = this.#guestFacts
      await withDiskErrors('The record of the node', () =>
        writeDurable(this.#file(), JSON.stringify(storedRecord(this.record))),
      )
      this.#savedFacts = facts
      this.project.saved(this.key)
    })
  }

  /** The same where the node goes on whether that works or not: its user is told once. */
  async saveOrTell(): Promise<void> {
    await this.save().catch((error: unknown) => this.unsaved(error))
  }

  /** What is known of the node could not be saved. */
  unsaved(error: unknown): void {
    this.project.unsaved(this.key, this.record.name, error)
  }

  /** Whether what a guest is started with is not on disk yet, and nobody could tell it from the guest. */
  get hasUnsavedFacts(): boolean {
    return this.#savedFacts !== this.#guestFacts
  }

  /** The keeper knows the console and the ports of a node that runs; the console that an emulator opens itself only the record. */
  get #guestFacts(): string {
    const { console, console_type, properties } = this.record
    return JSON.stringify([properties, console_type, console_type === 'telnet' ? null : console])
  }

  /**
   * Writes down that the node is being deleted: a service that is killed meanwhile is followed by one that finishes it. A new name
   * takes no file of its own to be synced, and many deletions share the sync of the directory.
   */
  async beginDeletion(deletion: Deletion): Promise<void> {
    await this.#saving.run('', async () => {
      const found = this.#file()
      this.deletion = deletion
      try {
        await withDiskErrors('The record of the node', () => renameDurable(found, this.#file()))
      } catch (error) {
        this.deletion = undefined
        throw error
      }
    })
  }

  /** The node could not be deleted, and stays. */
  async endDeletion(): Promise<void> {
    const found = this.#file()
    this.deletion = undefined
    await withDiskErrors('The record of the node', () => renameDurable(found, this.#file())).catch((error: unknown) =>
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
