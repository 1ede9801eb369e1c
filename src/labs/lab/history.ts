import { omit } from '../../lib/omit.ts'
import { labSettings } from '../../model/lab/project.ts'
import {
  type LabDocument,
  type LinkRecord,
  type NodeRecord,
  type ProjectRecord,
  resultsKey,
  tasksKey,
} from './document.ts'
import { sizeOf } from './lab-limits.ts'
import type { LabEntries } from './store.ts'

const maxEdits = 100
/** Memory of all edits together, bytes. */
const maxBytes = 16 << 20

/** The edits that one undo reverts together. Groups are compared by identity. */
export interface UndoGroup {
  /** `rollback`: reverts what has failed, and is not recorded. */
  readonly by: 'edit' | 'undo' | 'redo' | 'rollback'
  /** Keys of the nodes whose console ports these edits have set. All other changes of console ports are made by the service itself. */
  readonly consoles?: Set<string>
  /** The caller of a job, whose edits go on when its request has been answered; absent: the caller of the present request. */
  readonly madeBy?: string | undefined
}

/** The entries of a document that one group of edits changed, before and after it. */
export interface PastEdit {
  readonly before: Map<string, unknown>
  readonly after: Map<string, unknown>
  readonly undoGroup: UndoGroup
  /** The caller who made it; undefined: without a name. */
  readonly madeBy: string | undefined
  /** Memory of the entries. */
  bytes: number
}

/** The last edits of an open lab, for undo and redo. */
export class LabHistory {
  readonly #undo: PastEdit[] = []
  readonly #redo: PastEdit[] = []

  /** Records an edit. Edits of one group become one. An edit that changes no field that a user sets is not recorded. */
  note(before: LabEntries, after: LabEntries, undoGroup: UndoGroup = { by: 'edit' }, madeBy?: string): void {
    const isSet = (key: string) =>
      undoGroup.consoles?.has(key) && consoleOf(before.get(key)) !== consoleOf(after.get(key))
    const noted = [...after.keys()].filter((key) => key !== tasksKey && key !== resultsKey)
    const keys = noted.filter((key) => isSet(key) || !isSame(key, before.get(key), after.get(key)))
    if (keys.length === 0 || undoGroup.by === 'rollback') return
    const list = undoGroup.by === 'undo' ? this.#redo : this.#undo
    const last = list.at(-1)
    const edit: PastEdit =
      last?.undoGroup === undoGroup ? last : { before: new Map(), after: new Map(), undoGroup, madeBy, bytes: 0 }
    for (const key of keys) {
      if (!edit.before.has(key)) edit.before.set(key, before.get(key))
      edit.after.set(key, after.get(key))
      edit.bytes += sizeOf(before.get(key)).memory + sizeOf(after.get(key)).memory
    }
    if (edit !== last) list.push(edit)
    // What others have undone can still be redone.
    if (undoGroup.by === 'edit')
      for (const undone of this.#redo.filter((it) => it.madeBy === madeBy))
        this.#redo.splice(this.#redo.indexOf(undone), 1)
    for (const it of [this.#undo, this.#redo]) while (it.length > maxEdits) it.shift()
    this.shrink(this.bytes - maxBytes)
  }

  /** Memory of all edits, bytes. */
  get bytes(): number {
    return [...this.#undo, ...this.#redo].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  /** Forgets the oldest edits, of so many bytes if there are as many; the bytes that it forgot. */
  shrink(bytes: number): number {
    let forgotten = 0
    // The last one stays, whatever its size: it may have to be rolled back.
    for (const it of [this.#redo, this.#undo])
      while (forgotten < bytes && it.length > 1) forgotten += it.shift()?.bytes ?? 0
    return forgotten
  }

  /** The edits of one group, the last first: several when others edited in between. */
  of(undoGroup: UndoGroup): PastEdit[] {
    return this.#undo.filter((edit) => edit.undoGroup === undoGroup).reverse()
  }

  last(way: 'undo' | 'redo'): PastEdit | undefined {
    return (way === 'undo' ? this.#undo : this.#redo).at(-1)
  }

  /** The last edit of a caller. */
  lastOf(way: 'undo' | 'redo', caller: string | undefined): PastEdit | undefined {
    return (way === 'undo' ? this.#undo : this.#redo).findLast(({ madeBy }) => madeBy === caller)
  }

  /** The edits that were made after an edit, the last first. */
  since(edit: PastEdit): PastEdit[] {
    return this.#undo.slice(this.#undo.indexOf(edit) + 1).reverse()
  }

  /** Forgets an edit: it was reverted, or cannot be reverted any more. */
  drop(edit: PastEdit): void {
    for (const list of [this.#undo, this.#redo]) if (list.includes(edit)) list.splice(list.indexOf(edit), 1)
  }

  clear(): void {
    this.#undo.length = 0
    this.#redo.length = 0
  }
}

/** Whether two values of an entry are equal in the fields that a user sets. */
export const isSame = (key: string, a: unknown, b: unknown): boolean =>
  JSON.stringify(setBy(key, a)) === JSON.stringify(setBy(key, b))

/** The fields of an entry that a user sets: not captures, consoles and wirings, which the service changes itself. */
export function setBy(key: string, value: unknown): unknown {
  if (value === undefined || key.startsWith('snapshot/')) return undefined
  if (key === 'project') return settingsOf(value as ProjectRecord)
  if (key.startsWith('link/')) return omit(value as LinkRecord, 'capture', 'wiring', 'lastApplied')
  if (key.startsWith('node/')) return omit(value as NodeRecord, 'console', 'creationError', 'lastApplied')
  return value
}

/** The console port in the record of a node. */
export const consoleOf = (node: unknown): number | null | undefined => (node as NodeRecord | undefined)?.console

/** The fields of a project that a user sets. */
export const settingsOf = (record: ProjectRecord): Partial<LabDocument['project']> =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name === 'name' || name in labSettings))
