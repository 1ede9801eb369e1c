import { isSegmentKind } from '../../labfile/segment-kinds.ts'
import { omit } from '../../lib/omit.ts'
import type { LabDrawing } from '../../model/lab/drawing.ts'
import type { LabLink } from '../../model/lab/link.ts'
import type { LabNode } from '../../model/lab/node.ts'
import type { LabProject, LabSizes } from '../../model/lab/project.ts'
import type { LabSnapshot } from '../../model/lab/snapshot.ts'
import type { LabTaskResults, LabTasksRecord } from '../../model/lab/task.ts'
import type { ProjectSnapshot } from '../../model/project-snapshot.ts'
import { type Size, sizeOf } from './lab-limits.ts'
import type { LabEntries } from './store.ts'

/** Who applied the lab file of a project last, and whether that apply is still running. */
export interface ProjectLastApplied {
  /** Name of the user or token that applied the file. */
  readonly by: string
  /** Present while an apply takes its steps: after a crash the next start and the next apply do the rest. */
  readonly pendingApply?: {
    readonly job_id: string
    /** Ids of nodes that it has stopped, and starts again. */
    readonly stopped: readonly string[]
  }
}

/** What the lab file said of a node when it was applied last: the mark of the file on the node. */
export interface NodeLastApplied {
  /** false: the node was there before, and was found by its name. */
  readonly managed: boolean
  /** Names of the settings and properties that the file gave. */
  readonly keys: readonly string[]
  /** Names of those that it did not give, and for which the compute chose other values than the defaults. */
  readonly computeDefaults?: readonly string[]
  /** Fingerprints of properties that the node shows otherwise than the file gives them: as given, and as shown. */
  readonly normalizedValues?: Readonly<Record<string, readonly [given: string, shown: string]>>
  /** SHA-256 of each configuration as it was last taken from the lab file (`file`), and as the node showed it then. */
  readonly configs: Readonly<Record<string, { readonly file: string; readonly node: string }>>
  /** SHA-256 of what is on its CD. */
  readonly day0?: string
}

/** The record of a project. What is stored has other names for some members of records: see document-codec.ts. */
export type ProjectRecord = Omit<
  LabProject,
  'status' | 'filename' | 'status_reason' | 'archived' | 'compute_ids' | 'counts' | 'present'
> & {
  /** For lists of labs whose documents are not in memory. Documents of earlier versions lack it. */
  readonly sizes?: LabSizes
  /** The revision of which there is an archive. With another revision the archive is old. */
  readonly archivedRevision?: number
  /**
   * Present while a closed project has no archive of its present state: how many attempts have begun, when the next one is due, if any, and why the
   * last one failed, if it did.
   */
  readonly archiveAttempts?: { readonly tries: number; readonly again_at?: string; readonly failure?: string }
  /** Ids of the computes that have the project, in the order in which they took part. */
  readonly computes: readonly string[]
  /** Whether the project was open when it was saved last. */
  readonly is_open: boolean
  /** The project is being imported or copied. It is not shown; if the service ends before, the next start removes it. */
  readonly unfinished?: true
  /** Present when it was made from a lab file. */
  readonly lastApplied?: ProjectLastApplied
  /** The id of a snapshot that is being taken. After a crash it is undone. */
  readonly snapshotInProgress?: string
  readonly restoring?: Restoring
  /** Present while a part is copied to another compute. After a crash the copy is removed. */
  readonly moving?: { readonly from: string; readonly to: string }
  /** Ids of computes from which the lab was moved, and which still have its files. */
  readonly formerComputes?: readonly string[]
  /** Ids of links that are to be attached again, as one of their nodes was moved. */
  readonly pendingLinks?: readonly string[]
}

/** What clients see of a record as it is: not what the service keeps in it for itself, or shows in another form. */
export const shownOf = (record: ProjectRecord) =>
  omit(
    record,
    ...([
      'computes',
      'sizes',
      'is_open',
      'unfinished',
      'restoring',
      'snapshotInProgress',
      'lastApplied',
      'moving',
    ] as const),
    ...(['formerComputes', 'pendingLinks', 'archivedRevision', 'archiveAttempts'] as const),
  )

/**
 * A restore in progress. `swapping`: the computes stop nodes and exchange files. Then `committed`: the document is the one of the snapshot;
 * the old files are being removed, and the nodes that ran in the snapshot started. When `swapping` fails, `rolling-back`: the computes exchange
 * the files back. Then `rolled-back`: the nodes that ran before the restore are being started. After a crash the restore continues in this
 * phase.
 */
export interface Restoring {
  readonly snapshot_id: string
  readonly phase: 'swapping' | 'committed' | 'rolling-back' | 'rolled-back'
  /** Nodes that ran before the restore, by their ids. */
  readonly lastRunning?: NonNullable<ProjectSnapshot['ran']>
  /** Computes that have no part of the lab after the restore. */
  readonly formerComputes?: readonly string[]
}

/** The record of a node: the settings of its user, and the properties that its compute showed last. */
export type NodeRecord = Omit<
  LabNode,
  | 'project_id'
  | 'status'
  | 'status_reason'
  | 'console_host'
  | 'command_line'
  | 'node_directory'
  | 'ports'
  | 'width'
  | 'height'
> & {
  /** Why its compute could not make the node. The next start of the node tries again. */
  readonly creationError?: string
  readonly lastApplied?: NodeLastApplied
}

/** How the two endpoints of a link are attached: as one link of a compute, by UDP between two computes, or not. */
export type LinkWiring =
  | { readonly type: 'direct'; readonly compute_id: string }
  | { readonly type: 'udp' }
  /** One node is a placeholder, or an endpoint could not be attached. */
  | { readonly type: 'none' }

/** The capture of a link, and the endpoint at which it runs. */
export interface CaptureRecord {
  readonly end: 0 | 1
  readonly fileName: string
  /** The name that the client asked for, when the capture was continued in another file. */
  readonly requestedName?: string
  /** The type that the client asked for. */
  readonly data_link_type?: string
  /** A lab file started it. */
  readonly managed?: true
}

/** The record of a link. */
export type LinkRecord = Omit<
  LabLink,
  | 'project_id'
  | 'capturing'
  | 'capture_file_name'
  | 'capture_file_path'
  | 'capture_compute_id'
  | 'verdict'
  | 'verdict_reason'
  | 'path'
  | 'traffic_ab'
  | 'traffic_ba'
> & {
  readonly wiring: LinkWiring
  readonly capture: CaptureRecord | null
  /** Present when it was made from a lab file. */
  readonly lastApplied?: { readonly managed: true }
}

/** The record of a snapshot. The document of the snapshot is apart (`apart` in store.ts). */
export interface SnapshotRecord extends Omit<LabSnapshot, 'project_id' | 'running'> {
  /** Ids of the computes that have its files. */
  readonly computes: readonly string[]
  /** Nodes that ran, by their ids. */
  readonly lastRunning?: NonNullable<ProjectSnapshot['ran']>
  /** Number of these without segments; absent in records of earlier versions. */
  readonly running?: number
  /** Where the nodes of the snapshot are since a move: the new compute, by the id of the compute in the document. */
  readonly moved?: Readonly<Record<string, string>>
}

export type DrawingRecord = Omit<LabDrawing, 'project_id'>

/** The document of a snapshot. */
export interface SnapshotContent {
  readonly project: ProjectRecord
  readonly node: readonly NodeRecord[]
  readonly link: readonly LinkRecord[]
  readonly drawing: readonly DrawingRecord[]
  readonly tasks?: LabTasksRecord
}

/** The records of a document, by the first part of their keys. */
interface Tables {
  node: NodeRecord
  link: LinkRecord
  drawing: DrawingRecord
  snapshot: SnapshotRecord
}
type TableName = keyof Tables

/** The keys of the tasks, and of what their last check found. Both are not edits that an undo reverts. */
export const [tasksKey, resultsKey] = ['tasks', 'task-results'] as const

/** Changes of a document by key, as the store accepts them; undefined removes an entry. */
export class Changes {
  readonly entries = new Map<string, unknown>()

  project(record: ProjectRecord): this {
    this.entries.set('project', record)
    return this
  }

  put<T extends TableName>(table: T, id: string, record: Tables[T]): this {
    this.entries.set(`${table}/${id}`, record)
    return this
  }

  tasks(record: LabTasksRecord | undefined): this {
    this.entries.set(tasksKey, record)
    return this
  }

  taskResults(results: LabTaskResults | undefined): this {
    this.entries.set(resultsKey, results)
    return this
  }

  remove(table: TableName, id: string): this {
    this.entries.set(`${table}/${id}`, undefined)
    return this
  }

  /** Lists these records first, in this order. Otherwise a record that is put again keeps its position, and a new one is the last. */
  order(table: TableName, ids: readonly string[]): this {
    this.entries.set(`order/${table}`, ids)
    return this
  }
}

export const noSizes: LabSizes = { nodes: 0, segments: 0, links: 0 }

/** The document of a lab: all its records. Records are replaced, never changed in place. */
export class LabDocument {
  project: ProjectRecord
  tasks: LabTasksRecord | undefined
  taskResults: LabTaskResults | undefined
  readonly nodes = new Map<string, NodeRecord>()
  readonly links = new Map<string, LinkRecord>()
  readonly drawings = new Map<string, DrawingRecord>()
  readonly snapshots = new Map<string, SnapshotRecord>()
  /** Ids of links by the ids of their nodes. */
  readonly #linksAt = new Map<string, Set<string>>()
  #sizes = noSizes
  /** Absent until it is needed: most documents are only read. */
  #size: Size | undefined

  constructor(entries: LabEntries) {
    this.project = entries.get('project') as ProjectRecord
    this.apply(entries)
  }

  get sizes(): LabSizes {
    return this.#sizes
  }

  /** The size of all records. */
  get size(): Size {
    if (this.#size === undefined) {
      const size = { ...sizeOf(this.project) }
      for (const { json, memory } of [sizeOf(this.tasks), sizeOf(this.taskResults)]) {
        size.json += json
        size.memory += memory
      }
      for (const table of Object.values(this.#tables))
        for (const record of table.values()) {
          const { json, memory } = sizeOf(record)
          size.json += json
          size.memory += memory
        }
      this.#size = size
    }
    return this.#size
  }

  /** Number of nodes, links, drawings and snapshots. */
  get objects(): number {
    return Object.values(this.#tables).reduce((sum, { size }) => sum + size, 0)
  }

  /** How much these changes make it grow; negative when it shrinks. */
  growth(changes: LabEntries): Size & { readonly objects: number } {
    const growth = { json: 0, memory: 0, objects: 0 }
    for (const [key, value] of changes) {
      const [table = ''] = key.split('/')
      const isObject = table in this.#tables
      if (!isObject && !['project', tasksKey, resultsKey].includes(key)) continue
      const before = this.#get(key)
      const [then, now] = [sizeOf(before), sizeOf(value)]
      growth.json += now.json - then.json
      growth.memory += now.memory - then.memory
      if (isObject) growth.objects += Number(value !== undefined) - Number(before !== undefined)
    }
    return growth
  }

  /** The sizes that the document has after these changes. */
  sizesAfter(changes: LabEntries): LabSizes {
    const sizes = { ...this.#sizes }
    const count = (table: string | undefined, record: unknown, by: 1 | -1) => {
      if (record === undefined) return
      if (table === 'link') sizes.links += by
      if (table !== 'node') return
      sizes.nodes += by
      if (isSegmentKind((record as NodeRecord).node_type)) sizes.segments += by
    }
    for (const [key, value] of changes) {
      const [table] = key.split('/')
      count(table, this.#get(key), -1)
      count(table, value, 1)
    }
    return sizes
  }

  apply(changes: LabEntries): void {
    this.#sizes = this.sizesAfter(changes)
    if (this.#size !== undefined) {
      const { json, memory } = this.growth(changes)
      this.#size = { json: this.#size.json + json, memory: this.#size.memory + memory }
    }
    const tables = this.#tables
    for (const [key, value] of changes) {
      if (key === 'project') {
        this.project = value as ProjectRecord
        continue
      }
      if (key === tasksKey) this.tasks = value as LabTasksRecord | undefined
      if (key === resultsKey) this.taskResults = value as LabTaskResults | undefined
      const [table = '', id = ''] = key.split('/')
      if (table === 'link') this.#indexEnds(id, value as LinkRecord | undefined)
      if (value === undefined) tables[table]?.delete(id)
      else tables[table]?.set(id, value)
    }
    for (const [name, table] of Object.entries(tables)) {
      const first = changes.get(`order/${name}`) as readonly string[] | undefined
      if (first !== undefined) reorder(table, first)
    }
  }

  /** All entries but the records of snapshots. */
  entries(): LabEntries {
    const all = new Map<string, unknown>([['project', this.project]])
    if (this.tasks !== undefined) all.set(tasksKey, this.tasks)
    for (const table of ['node', 'link', 'drawing'])
      for (const [id, record] of this.#tables[table] ?? []) all.set(`${table}/${id}`, record)
    return all
  }

  /** The present values of keys; undefined for a key without entry. Written back, they revert a change. */
  read(keys: Iterable<string>): LabEntries {
    return new Map([...keys].map((key) => [key, this.#get(key)]))
  }

  #get(key: string): unknown {
    if (key === 'project') return this.project
    if (key === tasksKey) return this.tasks
    if (key === resultsKey) return this.taskResults
    const [table = '', id = ''] = key.split('/')
    return this.#tables[table]?.get(id)
  }

  get #tables(): Readonly<Record<string, Map<string, unknown>>> {
    return { node: this.nodes, link: this.links, drawing: this.drawings, snapshot: this.snapshots }
  }

  linksOf(nodeId: string): LinkRecord[] {
    return [...(this.#linksAt.get(nodeId) ?? [])].flatMap((id) => this.links.get(id) ?? [])
  }

  #indexEnds(id: string, record: LinkRecord | undefined): void {
    const before = this.links.get(id)?.nodes ?? []
    // A link that stays at its nodes keeps its position among theirs.
    if (before.length === record?.nodes.length && before.every((end, at) => end.node_id === record.nodes[at]?.node_id))
      return
    for (const { node_id } of before) this.#linksAt.get(node_id)?.delete(id)
    for (const { node_id } of record?.nodes ?? []) {
      const ids = this.#linksAt.get(node_id) ?? new Set()
      this.#linksAt.set(node_id, ids.add(id))
    }
  }
}

function reorder(table: Map<string, unknown>, first: readonly string[]): void {
  const ids = new Set([...first.filter((id) => table.has(id)), ...table.keys()])
  const records = [...ids].map((id) => [id, table.get(id)] as const)
  table.clear()
  for (const [id, record] of records) table.set(id, record)
}
