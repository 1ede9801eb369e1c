import type { EventLog } from '../fleet/events/event-log.ts'
import type { FeedRequest } from '../host-agent.ts'
import { onAbort } from '../lib/async/abort.ts'
import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import type { EventPayload, FeedItem } from '../model/event.ts'
import type { NodeKindName } from '../model/kinds/node.ts'
import type { LabEvent } from '../model/lab/event.ts'
import type { AutoStart } from './autostart.ts'
import { type ComputeAgents, openProject, renameProject } from './computes/agents.ts'
import { absenceReasons, type ComputePool } from './computes/compute-pool.ts'
import { ComputeWatch } from './computes/watch.ts'
import type { LabDocuments } from './documents.ts'
import type { Lab } from './lab/lab.ts'
import { recordEndedCaptures } from './links/captures.ts'
import { watchLinks } from './links/link-states.ts'
import type { LabRegistry } from './registry.ts'

export interface SyncOptions {
  readonly registry: LabRegistry
  readonly documents: LabDocuments
  readonly computes: ComputePool
  readonly events: EventLog<LabEvent>
  readonly autoStart: AutoStart
}

/** Keeps open labs in step with their computes: the states of nodes and links, and what is wrong with a compute. */
export class ComputeSync {
  protected readonly documents: LabDocuments
  protected readonly events: EventLog<LabEvent>
  protected readonly watch: ComputeWatch
  /** On behalf of the service itself. */
  protected readonly agentFor: ComputeAgents
  protected readonly autoStart: AutoStart
  readonly #registry: LabRegistry
  readonly #computes: ComputePool
  /** Feeds that have the states of links, by lab. */
  readonly #linkReaders = new Map<string, number>()

  /** `projectId`: the only lab of this process. */
  constructor({ registry, documents, computes, events, autoStart }: SyncOptions, projectId?: string) {
    this.#registry = registry
    this.documents = documents
    this.#computes = computes
    this.events = events
    this.autoStart = autoStart
    this.agentFor = (computeId) => computes.agent(computeId)
    const listener: ConstructorParameters<typeof ComputeWatch>[1] = {
      item: (computeId, item) => {
        const { project_id, payload } = item
        const lab = documents.get(project_id)
        // A compute may send events of any project.
        if (lab?.document.project.computes.includes(computeId)) this.#onComputeEvent(lab, computeId, payload)
      },
      refresh: (computeId) => this.#refreshAll(computeId),
      lost: (computeId, error) => {
        for (const lab of documents.openOn(computeId)) {
          this.markUnknown(lab, computeId, error)
          this.#publishNodes(lab, computeId)
          this.#publishReason(lab)
        }
      },
    }
    this.watch = new ComputeWatch(computes, listener, projectId)
  }

  /** Follows the computes of a lab that has just been opened. */
  opened(lab: Lab): void {
    lab.onNodeActed = (shown) => this.autoStart.trackRunning(lab, shown)
    lab.linkReaders = this.#linkReaders.get(lab.id) ?? 0
    this.follow(lab, lab.closing.signal)
  }

  /** Takes note that a lab was closed. */
  closed(lab: Lab): void {
    this.autoStart.closed(lab)
    this.watch.keep(new Set(this.documents.open().flatMap(({ document }) => document.project.computes)))
  }

  /** Follows a further compute of an open lab. */
  computeAdded(computeId: string): void {
    this.watch.add(computeId)
  }

  /**
   * Opens a feed of a lab, which ends when the lab is deleted: a closed lab may be opened again. `showsLinks`: whether it has the states of
   * links, which are read only then.
   */
  feed(lab: Lab, request: FeedRequest, showsLinks: boolean): ReadableStream<FeedItem<LabEvent>> {
    if (!lab.isOpen) this.events.openProject(lab.id)
    try {
      const items = this.events.open(request)
      if (showsLinks) {
        this.#countLinkReaders(lab.id, 1)
        onAbort(request.signal, () => this.#countLinkReaders(lab.id, -1))
      }
      if (lab.isOpen) this.feedOpened(lab)
      return items
    } finally {
      if (!lab.isOpen) this.events.idleProject(lab.id)
    }
  }

  /** Takes note that a feed of an open lab was opened. */
  protected feedOpened(_lab: Lab): void {}

  /** Brings an open lab up to date for a request that reads it. */
  async beforeRead(lab: Lab): Promise<void> {
    await this.recordReason(lab)
  }

  /** Takes note that all nodes of a lab have just been read. */
  nodesRead(): void {}

  end(): void {
    this.watch.close()
  }

  protected follow(lab: Lab, signal: AbortSignal): void {
    void watchLinks(lab, { agentFor: this.agentFor, signal })
    for (const computeId of lab.document.project.computes) this.watch.add(computeId)
  }

  /** Counts the feeds of a lab that have the states of links. */
  #countLinkReaders(id: string, more: 1 | -1): void {
    const count = (this.#linkReaders.get(id) ?? 0) + more
    if (count > 0) this.#linkReaders.set(id, count)
    else this.#linkReaders.delete(id)
    const lab = this.documents.get(id)
    if (lab !== undefined) lab.linkReaders = count
  }

  /** Reads the nodes of a lab from computes. */
  async refresh(lab: Lab, computes: readonly string[], agentFor: ComputeAgents): Promise<void> {
    await mapLimit(computes, async (computeId) => {
      const nodes = [...lab.document.nodes.values()].filter(({ compute_id }) => compute_id === computeId)
      await mapLimit([...new Set(nodes.map(({ node_type }) => node_type))], async (kind) => {
        try {
          const shown = new Map(
            (await agentFor(computeId).nodes.list(lab.id, kind as NodeKindName)).map((node) => [node.node_id, node]),
          )
          for (const { node_id, node_type } of nodes) {
            if (node_type !== kind) continue
            const node = shown.get(node_id)
            if (node === undefined)
              lab.unknownReasons.set(node_id, 'Its compute has lost the node: delete the node, or recreate it')
            else {
              lab.unknownReasons.delete(node_id)
              lab.keepReported(node)
            }
          }
        } catch (error) {
          for (const { node_id, node_type } of nodes) {
            if (node_type === kind) lab.unknownReasons.set(node_id, (error as Error).message)
          }
        }
      })
    })
    this.#recordEndedCaptures(lab, computes, agentFor)
  }

  /** The states of the nodes on a compute that does not answer are unknown. */
  markUnknown(lab: Lab, computeId: string, error: Error): void {
    for (const { node_id, compute_id } of lab.document.nodes.values()) {
      if (compute_id === computeId) lab.unknownReasons.set(node_id, error.message)
    }
  }

  /** Updates what is wrong with a lab; true when that has changed. */
  async recordReason(lab: Lab): Promise<boolean> {
    const { project } = lab.document
    const before = lab.statusReason
    lab.statusReason =
      this.#registry.unopenedReason(lab.id) ?? (await absenceReasons(this.#computes, project.computes))(project)
    return lab.statusReason !== before
  }

  /** After a break in the feed of a compute: opens its labs there if they are closed, and reads their nodes. */
  async #refreshAll(computeId: string): Promise<void> {
    const { agentFor } = this
    for (const lab of this.documents.openOn(computeId)) {
      const { name } = lab.document.project
      try {
        const there = await openProject(agentFor(computeId), { project_id: lab.id, name })
        // The lab was renamed while the compute was not connected.
        if (there.name !== name) await renameProject(agentFor(computeId), lab.id, name)
        await this.refresh(lab, [computeId], agentFor)
        await this.autoStart.startAfterReboot(lab, [computeId], agentFor)
      } catch (error) {
        this.markUnknown(lab, computeId, error as Error)
      }
      this.#publishNodes(lab, computeId)
      this.#publishReason(lab)
    }
  }

  /** Emits an event when `status_reason` of a lab has changed. */
  #publishReason(lab: Lab): void {
    this.recordReason(lab).then((isOther) => {
      if (isOther && lab.isOpen) this.documents.publish(lab, 'project.updated')
    }, ignore('the next reading of the project shows it'))
  }

  #publishNodes(lab: Lab, computeId: string): void {
    for (const record of lab.document.nodes.values()) {
      if (record.compute_id === computeId) lab.emit({ action: 'node.updated', event: lab.nodeView(record) })
    }
  }

  #onComputeEvent(lab: Lab, computeId: string, payload: EventPayload): void {
    if (payload.type === 'node.updated' || payload.type === 'node.deleted') {
      const shown = payload.node
      const record = lab.document.nodes.get(shown.node_id)
      if (record === undefined || record.compute_id !== computeId) return
      lab.unknownReasons.delete(record.node_id)
      this.autoStart.trackRunning(lab, shown)
      if (payload.type === 'node.deleted') lab.reported.delete(record.node_id)
      else lab.keepReported(shown)
      if (payload.type === 'node.deleted')
        lab.unknownReasons.set(
          record.node_id,
          'The node was deleted on its compute: delete it here as well, or recreate it',
        )
      lab.emit({ action: 'node.updated', event: lab.nodeView(record) })
    } else if ('message' in payload) {
      lab.emit({ action: payload.type, event: { message: payload.message } })
      if (payload.type === 'log.error') this.#recordEndedCaptures(lab, [computeId], this.agentFor)
    }
  }

  /** Looks for captures that have ended by themselves: a compute reports this by an error event, which may have been missed. */
  #recordEndedCaptures(lab: Lab, computes: readonly string[], agentFor: ComputeAgents): void {
    recordEndedCaptures(lab, computes, agentFor).catch(ignore('the next reading of the computes takes note of it'))
  }
}
