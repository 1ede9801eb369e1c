import type { LabDrawing } from '../model/lab/drawing.ts'
import type { LabLink } from '../model/lab/link.ts'
import type { LabNode } from '../model/lab/node.ts'
import type { LabProject } from '../model/lab/project.ts'
import type { LabSnapshot } from '../model/lab/snapshot.ts'
import type { LabEntries } from './store.ts'

/** What is kept of a project. */
export type ProjectRecord = Omit<LabProject, 'status' | 'filename'> & {
  /** Ids of the computes that have the project, the one that was first before the others. */
  readonly computes: readonly string[]
  /** Whether it was open when it was last saved. */
  readonly is_open: boolean
  /** It is being imported or copied: it is not shown, and goes when the service ends before that is complete. */
  readonly unfinished?: true
  /** A snapshot is being restored. `back`: an end of the service takes it back; `on`: only what was there before has to go. */
  readonly restoring?: { readonly snapshot_id: string; readonly way: 'back' | 'on' }
}

/** What is kept of a node: what is wanted of it, and how its compute showed it last. */
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
  /** Why its compute could not make it; its next start tries again. */
  readonly unmade?: string
}

/** How the two ends of a link are attached. */
export type Wiring =
  | { readonly type: 'direct'; readonly compute_id: string }
  | { readonly type: 'udp' }
  /** An end is a placeholder, or could not be attached. */
  | { readonly type: 'none' }

/** What is kept of a link. */
export type LinkRecord = Omit<
  LabLink,
  | 'project_id'
  | 'capturing'
  | 'capture_file_name'
  | 'capture_file_path'
  | 'capture_compute_id'
  | 'verdict'
  | 'verdict_reason'
  | 'traffic_ab'
  | 'traffic_ba'
> & {
  readonly wiring: Wiring
  /** The end at which its capture runs, and the name of the file; null without a capture. */
  readonly capture: { readonly end: 0 | 1; readonly file: string } | null
}

/** What is kept of a snapshot; its document is beside that of the lab. */
export interface SnapshotRecord extends Omit<LabSnapshot, 'project_id'> {
  /** The computes that have files of it. */
  readonly computes: readonly string[]
}

export type DrawingRecord = Omit<LabDrawing, 'project_id'>

/** What a document has by its keys. */
interface Tables {
  node: NodeRecord
  link: LinkRecord
  drawing: DrawingRecord
  snapshot: SnapshotRecord
}
type TableName = keyof Tables

/** Changes of a document by key, as the store takes them; undefined removes an entry. */
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

  remove(table: TableName, id: string): this {
    this.entries.set(`${table}/${id}`, undefined)
    return this
  }
}

/** The document of a lab: what is wanted. Records are replaced, not changed in place. */
export class LabDocument {
  project: ProjectRecord
  readonly nodes = new Map<string, NodeRecord>()
  readonly links = new Map<string, LinkRecord>()
  readonly drawings = new Map<string, DrawingRecord>()
  readonly snapshots = new Map<string, SnapshotRecord>()

  constructor(entries: LabEntries) {
    this.project = entries.get('project') as ProjectRecord
    this.apply(entries)
  }

  apply(changes: LabEntries): void {
    const tables = this.#tables
    for (const [key, value] of changes) {
      if (key === 'project') {
        this.project = value as ProjectRecord
        continue
      }
      const [table = '', id = ''] = key.split('/')
      if (value === undefined) tables[table]?.delete(id)
      else tables[table]?.set(id, value)
    }
  }

  /** What is kept of the lab, but for its snapshots, which stay with it. */
  entries(): LabEntries {
    const all = new Map<string, unknown>([['project', this.project]])
    for (const table of ['node', 'link', 'drawing'])
      for (const [id, record] of this.#tables[table] ?? []) all.set(`${table}/${id}`, record)
    return all
  }

  /** The values that keys have now, undefined for those that it lacks: what takes changes of them back. */
  read(keys: Iterable<string>): LabEntries {
    return new Map([...keys].map((key) => [key, this.#get(key)]))
  }

  #get(key: string): unknown {
    if (key === 'project') return this.project
    const [table = '', id = ''] = key.split('/')
    return this.#tables[table]?.get(id)
  }

  get #tables(): Readonly<Record<string, Map<string, unknown>>> {
    return { node: this.nodes, link: this.links, drawing: this.drawings, snapshot: this.snapshots }
  }

  /** The links of a node. */
  linksOf(nodeId: string): LinkRecord[] {
    return [...this.links.values()].filter(({ nodes }) => nodes.some(({ node_id }) => node_id === nodeId))
  }
}
