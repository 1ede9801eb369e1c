import type { EventLog } from '../../fleet/events/event-log.ts'
import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { SerialQueue } from '../../lib/async/serial-queue.ts'
import { SharedLock } from '../../lib/async/shared-lock.ts'
import { type ApiError, conflict, notFound } from '../../lib/errors/api-error.ts'
import { worstVerdict } from '../../model/direct-link.ts'
import type { LabDrawing } from '../../model/lab/drawing.ts'
import type { LabEvent } from '../../model/lab/event.ts'
import type { LabLink, LabLinkState } from '../../model/lab/link.ts'
import { nameKey } from '../../model/lab/names.ts'
import { isKnownKind, type LabNode } from '../../model/lab/node.ts'
import { portsOf } from '../../model/lab/ports.ts'
import type { LabCounts, LabProject } from '../../model/lab/project.ts'
import type { Placement } from '../../model/placement.ts'
import { isUuid } from '../../model/schema/fields.ts'
import { archivedView, archiveFailure } from './archive-status.ts'
import { Changes, type DrawingRecord, LabDocument, type LinkRecord, type NodeRecord, shownOf } from './document.ts'
import { withoutNulls } from './fields.ts'
import { LabHistory, setBy, type UndoGroup } from './history.ts'
import { defaultLabLimits, inMebibytes, jsonBytes, type LabLimits, limitReached, mebibyte } from './lab-limits.ts'
import type { ReportedNode } from './node-on-compute.ts'
import { placeholderPorts, placeholderReason } from './placeholder-view.ts'
import type { LabEntries, LabStorage } from './store.ts'
import { tasksWithNames } from './task-names.ts'

/** Changes of the document, with the events that report them. */
interface Edit {
  readonly changes: Changes
  readonly news: () => readonly LabEvent[]
  readonly undoGroup: UndoGroup | undefined
  /** The caller who makes it. */
  readonly madeBy: string | undefined
  /** Whether the edit changes nothing that users made, as a closing: the time of the last change stays. */
  readonly isServiceChange?: boolean | undefined
  /** Whether its size was checked before, and it must not be refused any more. */
  readonly isChecked?: boolean | undefined
}

/** How much a lab may grow. */
export interface LabRoom {
  limits(): LabLimits
  /** Bytes by which all open labs would exceed their limit when one of them grows by so many; older edits to undo are forgotten first. */
  excess(growth: number): number
}
const defaultRoom: LabRoom = { limits: () => defaultLabLimits, excess: () => 0 }

/** Age at which the last read states of links no longer count as the present ones, ms. */
const oldMs = 10_000

/** How long changes of nodes and links may hold up what needs the lab alone, ms. */
const maxWaitMs = 60_000

/** Size of the symbol of every node, pixels. */
const symbolSize = { width: 65, height: 65 }

/** One lab in memory: its document, the states of its nodes and links, and its feed. */
export class Lab {
  readonly id: string
  readonly document: LabDocument
  /** The last state of each node on its compute; empty while the lab is closed. */
  readonly reported = new Map<string, ReportedNode>()
  /** Why the state of a node is unknown: its compute does not answer, or lacks the node. */
  readonly unknownReasons = new Map<string, string>()
  /** Names and ports that pending requests have claimed. */
  readonly claimed = new Set<string>()
  /** MAC addresses of nodes that are being created -> their computes. */
  readonly claimedMacs = new Map<string, string>()
  /** Nodes that are being created -> the computes that were chosen for them. */
  readonly placing = new Map<string, string>()
  /** Changes of nodes and links share it, see `change`. */
  readonly #parts = new SharedLock()
  /** The last states of links. */
  readonly linkStates = new Map<string, LabLinkState>()
  /** Why links are detached whose ports are gone, with the names of these, which their computes do not know. */
  readonly unplugged = new Map<string, string>()
  /** Open feeds that have the states of links. */
  linkReaders = 0
  /** When the states of links were read, ms since 1970; 0: something has changed them since. */
  linksReadAt = 0
  /** The last read of them. */
  linksRead: Promise<void> = Promise.resolve()
  /** For each compute, the position up to which its link states were read. */
  readonly linkCursors = new Map<string, string>()
  /** Nodes that run or ended by themselves: `auto_start` starts them after a reboot of their compute. */
  readonly lastRunning: Set<string>
  /** Nodes that a job started, and that have not been seen to be ready since. */
  readonly unready = new Set<string>()
  /** Ids of nodes that are being started. */
  readonly starting = new Set<string>()
  /** Names of the clients that have it open in a page. */
  present: readonly string[] = []
  /** The last boot id of each compute. */
  readonly #boots: Map<string, string>
  readonly history = new LabHistory()
  /** Aborts when the lab is closed: ends its jobs, timers and polls. */
  readonly closing = new AbortController()
  isOpen = false
  /** Whether the lab was closed or deleted after it was open: it is another object then, and this one changes nothing any more. */
  isOver = false
  /** What is wrong with the lab. */
  statusReason: string | undefined
  /** Called with the node that a compute returned from a start or a stop. */
  onNodeActed: (shown: ReportedNode) => void = () => {}
  readonly #store: LabStorage
  readonly #events: EventLog<LabEvent>
  readonly #room: LabRoom
  readonly #edits = new SerialQueue()
  #added: Edit[] = []
  #adding: Promise<void> | undefined

  constructor(id: string, entries: LabEntries, store: LabStorage, events: EventLog<LabEvent>, room = defaultRoom) {
    this.id = id
    this.document = new LabDocument(entries)
    this.lastRunning = new Set(entries.get('ran') as string[] | undefined)
    this.#boots = new Map(entries.get('boots') as [string, string][] | undefined)
    this.#store = store
    this.#events = events
    this.#room = room
  }

  /** The name of the caller whose request runs now. */
  get caller(): string | undefined {
    return this.#events.caller
  }

  /** About what it takes in memory while it is open, bytes. */
  get bytes(): number {
    return this.document.size.memory + this.history.bytes
  }

  /** 413 when the lab may not have so many more nodes, links, drawings and snapshots. For checks before a compute makes something. */
  requireRoom(objects: number): void {
    const max = this.#room.limits().lab_objects
    const after = this.document.objects + objects
    if (objects > 0 && after > max)
      throw limitReached(
        `The project is limited to ${max} nodes, links, drawings and snapshots in total and would have ${after}: delete some first`,
        'lab_objects',
      )
  }

  /** 413 when changes would make the lab larger than its limits, or all open labs together. What is too large already may shrink. */
  requireRoomFor(changes: LabEntries): void {
    const { document } = this
    const growth = document.growth(changes)
    this.requireRoom(growth.objects)
    if (growth.json <= 0 || !growsBy(document, changes)) return
    const { lab_mb, open_labs_mb } = this.#room.limits()
    const after = document.size.json + growth.json
    if (after > lab_mb * mebibyte)
      throw limitReached(
        `The project is limited to ${lab_mb} MiB of settings, nodes, links and drawings and would have ${inMebibytes(after)}: delete some first`,
        'lab_mb',
      )
    if (this.isOpen && this.#room.excess(growth.memory) > 0)
      throw limitReached(
        `All open projects together are limited to ${open_labs_mb} MiB of memory: close one first`,
        'open_labs_mb',
      )
  }

  /**
   * Runs a change of nodes or links: on a compute, then in the document. In between both have different ones, so a snapshot, a restore and a
   * closing wait for its end (`exclusive`), and it waits for theirs. It must not begin another one. 404 for a lab that was closed meanwhile.
   */
  change<T>(operation: () => Promise<T>): Promise<T> {
    return this.#parts.shared(async () => {
      if (this.isOver) throw this.#closedError()
      return operation()
    })
  }

  /**
   * Runs an operation while no change of nodes and links runs. When those under way take too long it is 409, or `onTimeout` has it proceed:
   * they fail once the lab is closed.
   */
  exclusive<T>(
    operation: () => Promise<T>,
    { onTimeout }: { readonly onTimeout: 'refuse' | 'proceed' } = { onTimeout: 'refuse' },
  ): Promise<T> {
    const refuse = () => {
      const { name } = this.document.project
      throw conflict(
        `Changes to nodes or links of the project ${name} have not finished within ${maxWaitMs / 1000} s: try again later`,
      )
    }
    return this.#parts.exclusive(operation, { waitMs: maxWaitMs, late: onTimeout === 'refuse' ? refuse : () => {} })
  }

  #closedError(): ApiError {
    return notFound(`project_id: the project ${this.document.project.name} was closed or deleted meanwhile`, {
      code: 'project-closed',
    })
  }

  /**
   * Edits the document, one edit at a time. `change` gets the present document, and is synchronous. When the promise resolves, the edit is
   * durable, and its events are emitted; when it rejects, nothing has changed. One undo reverts all edits of an `undoGroup`.
   */
  edit<T>(
    change: (document: LabDocument) => Omit<Edit, 'undoGroup' | 'madeBy'> & { readonly result: T },
    undoGroup?: UndoGroup,
  ): Promise<T> {
    const madeBy = undoGroup?.madeBy ?? this.caller
    return this.#edits.run(async () => {
      const { result, ...edit } = change(this.document)
      this.#requireRoomOf({ ...edit, undoGroup })
      await this.#write([{ ...edit, undoGroup, madeBy }])
      return result
    })
  }

  /** An edit that does not depend on the document. Such edits that come during a write are written together after it. */
  async add(changes: Changes, news: () => readonly LabEvent[], undoGroup?: UndoGroup): Promise<void> {
    this.#requireRoomOf({ changes, undoGroup })
    this.#added.push({ changes, news, undoGroup, madeBy: undoGroup?.madeBy ?? this.caller })
    this.#adding ??= this.#edits.run(async () => {
      const all = this.#added
      this.#added = []
      this.#adding = undefined
      await this.#write(all)
    })
    await this.#adding
  }

  /** What the service itself notes, and what puts back what was there, is not refused. */
  #requireRoomOf({ changes, undoGroup, isServiceChange, isChecked }: Omit<Edit, 'news' | 'madeBy'>): void {
    if (!isServiceChange && !isChecked && undoGroup?.by !== 'rollback') this.requireRoomFor(changes.entries)
  }

  /** Writes edits at once, as one revision. */
  async #write(edits: readonly Edit[]): Promise<void> {
    const all = new Changes()
    for (const { changes } of edits) for (const [key, value] of changes.entries) all.entries.set(key, value)
    const {
      project,
      project: { revision, changed_at },
    } = this.document
    all.project({
      ...((all.entries.get('project') as LabDocument['project'] | undefined) ?? project),
      revision: revision + 1,
      sizes: this.document.sizesAfter(all.entries),
      ...withoutNulls({
        changed_at: edits.every(({ isServiceChange }) => isServiceChange) ? changed_at : new Date().toISOString(),
      }),
    })
    const tasks = tasksWithNames(this.document, all.entries)
    if (tasks !== undefined) all.tasks(tasks)
    const before = this.document.read(all.entries.keys())
    await this.#save(all.entries)
    this.document.apply(all.entries)
    for (const { changes, undoGroup, madeBy } of edits) this.history.note(before, changes.entries, undoGroup, madeBy)
    if (this.isOpen) this.#room.excess(0)
    for (const { news } of edits) for (const it of news()) this.emit(it)
  }

  /** Keeps the state of a node as its compute has reported it. */
  keepReported(shown: ReportedNode): void {
    const { node_id, status } = shown
    if (this.reported.get(node_id)?.status !== status) this.linksReadAt = 0
    this.reported.set(node_id, shown)
  }

  /**
   * Rejects when the document cannot be saved, as on a full disk. Called before what could not be made again on such a disk: the deletion of a
   * node writes nothing on its compute, and its revert does.
   */
  requireSavable(): Promise<void> {
    return this.#edits.run(() => this.#save(new Map([['project', this.document.project]])))
  }

  /** Saves `lastRunning`, which is not a part of the document. */
  saveLastRunning(): Promise<void> {
    return this.#save(new Map([['ran', [...this.lastRunning]]]))
  }

  /** A lab that is over would be there again, or as it was, after such a save. */
  async #save(entries: LabEntries): Promise<void> {
    if (this.isOver) throw this.#closedError()
    await this.#store.save(this.id, entries)
  }

  /** Saves the boot id of a compute. True when an earlier one was different. */
  async recordBoot(computeId: string, bootId: string): Promise<boolean> {
    const before = this.#boots.get(computeId)
    if (before === bootId) return false
    this.#boots.set(computeId, bootId)
    try {
      await this.#save(new Map([['boots', [...this.#boots]]]))
    } catch (error) {
      // The next attempt has to see the difference again.
      if (before === undefined) this.#boots.delete(computeId)
      else this.#boots.set(computeId, before)
      throw error
    }
    return before !== undefined
  }

  /** Emits an event to the feed of the lab. */
  emit(event: LabEvent): void {
    this.#events.emit(this.id, event)
  }

  /** Finds a node by its id, or by its name in any case. 404. */
  node(idOrName: string): NodeRecord {
    const { nodes } = this.document
    const key = nameKey(idOrName)
    const found = isUuid(idOrName)
      ? nodes.get(idOrName.toLowerCase())
      : [...nodes.values()].find(({ name }) => nameKey(name) === key)
    if (found !== undefined) return found
    const { name } = this.document.project
    // People read this, too: an id says nothing to them, and whoever has one has seen the node.
    const text = isUuid(idOrName)
      ? `the node is gone: the project ${name} does not have it any more`
      : `the project ${name} has no node ${idOrName}`
    throw notFound(`node_id: ${text}`, { code: 'no-such-node' })
  }

  link(id: string): LinkRecord {
    const found = this.document.links.get(id.toLowerCase())
    if (found !== undefined) return found
    const text = `the link is gone: the project ${this.document.project.name} does not have it any more`
    throw notFound(`link_id: ${text}`, { code: 'no-such-link' })
  }

  drawing(id: string): DrawingRecord {
    const found = this.document.drawings.get(id.toLowerCase())
    if (found !== undefined) return found
    throw notFound(`drawing_id: the project ${this.document.project.name} has no drawing ${id}`)
  }

  /** How many nodes run, without the segments: these always pass frames. */
  running(): number {
    const runs = ({ node_id, node_type }: NodeRecord) =>
      this.reported.get(node_id)?.status === 'started' && !isSegmentKind(node_type)
    return [...this.document.nodes.values()].filter(runs).length
  }

  counts(): LabCounts {
    const { sizes, links } = this.document
    if (!this.isOpen) return { ...sizes, running: 0 }
    // It is unknown which nodes run, and which links pass frames, on a compute that is not connected.
    if (this.statusReason !== undefined) return sizes
    const isRead = Date.now() - this.linksReadAt < oldMs
    const verdicts = isRead ? [...links.keys()].flatMap((id) => this.linkStates.get(id)?.verdict ?? []) : []
    const worst_verdict = worstVerdict(verdicts)
    // Links of placeholders have no verdict: the worst one says nothing of them.
    const links_passing = verdicts.filter((it) => it === 'ok').length
    return { ...sizes, running: this.running(), ...(worst_verdict !== undefined && { worst_verdict, links_passing }) }
  }

  project(): LabProject {
    const { project } = this.document
    return {
      ...shownOf(project),
      ...placementOf(project),
      ...archivedView(project),
      ...withoutNulls({ status_reason: this.statusReason ?? archiveFailure(project) }),
      compute_ids: [...project.computes],
      counts: this.counts(),
      ...(this.present.length > 0 && { present: [...this.present] }),
      status: this.isOpen ? 'opened' : 'closed',
      filename: `${fileName(project.name)}.gns3`,
    }
  }

  /** A node as the interface shows it: its record, with its state on its compute. */
  nodeView({ creationError, lastApplied: _, ...record }: NodeRecord): LabNode {
    const shown = this.reported.get(record.node_id)
    const trouble = this.unknownReasons.get(record.node_id)
    const status = shown?.status === 'started' || shown?.status === 'suspended' ? shown.status : 'stopped'
    return {
      ...record,
      // Documents of earlier versions lack it.
      labels: record.labels ?? {},
      ...placementOf(record),
      project_id: this.id,
      status,
      status_reason: placeholderReason(record, creationError) ?? trouble ?? shown?.status_reason ?? null,
      console_host: shown?.console_host ?? null,
      command_line: shown?.command_line ?? null,
      node_directory: shown?.node_directory ?? null,
      ...symbolSize,
      ports: isKnownKind(record.node_type)
        ? portsOf(record)
        : placeholderPorts(this.document.linksOf(record.node_id), record),
    }
  }

  linkView({ wiring: _, lastApplied: __, capture, ...record }: LinkRecord): LabLink {
    const end = capture === null ? undefined : record.nodes[capture.end]
    const node = end && this.document.nodes.get(end.node_id)
    const state = this.linkStates.get(record.link_id)
    return {
      ...record,
      // Documents of earlier versions lack it.
      name: record.name ?? null,
      project_id: this.id,
      verdict: state?.verdict ?? null,
      verdict_reason: state?.verdict_reason ?? null,
      ...(state?.path !== undefined && { path: state.path }),
      traffic_ab: state?.traffic_ab ?? null,
      traffic_ba: state?.traffic_ba ?? null,
      capturing: capture !== null,
      capture_file_name: capture?.fileName ?? null,
      capture_file_path: capture === null ? null : this.#capturePath(capture.fileName),
      capture_compute_id: node?.compute_id ?? null,
    }
  }

  drawingView(record: DrawingRecord): LabDrawing {
    return { ...record, project_id: this.id }
  }

  #capturePath(fileName: string): string | null {
    const { path } = this.document.project
    return path === null ? null : `${path}/project-files/captures/${fileName}`
  }
}

/** Whether changes make larger what users set: not captures, consoles and the progress of an operation, which the service notes. */
const growsBy = (document: LabDocument, changes: LabEntries): boolean => {
  const before = document.read(changes.keys())
  return [...changes].some(([key, value]) => {
    if (key.startsWith('snapshot/')) return value !== undefined && before.get(key) === undefined
    return !key.startsWith('order/') && jsonBytes(setBy(key, value)) > jsonBytes(setBy(key, before.get(key)))
  })
}

/** The placement of a record. Documents of earlier versions lack it. */
export const placementOf = ({ placement }: { placement?: Placement }): { placement: Placement } => ({
  placement: placement ?? {},
})

/** The name of a project in the form of a file name. */
export const fileName = (name: string): string => name.replaceAll(/[/\\]/g, '-')
