import { labSettings } from '../model/lab/project.ts'
import type { LabDocument, LinkRecord, NodeRecord, ProjectRecord } from './document.ts'
import type { LabEntries } from './store.ts'

const maxEdits = 100
/** Characters of JSON of all edits together. */
const maxSize = 16 << 20

/** Edits of the document that belong together, and what made them. */
export interface EditStep {
  readonly by: 'edit' | 'undo' | 'redo'
}

/** An edit of a lab: what was there before, and after. */
export interface PastEdit {
  readonly before: Map<string, unknown>
  readonly after: Map<string, unknown>
  readonly step: EditStep
  size: number
}

/** The last edits of a lab, while it is open: what may be taken back, and what was. */
export class LabHistory {
  readonly #undo: PastEdit[] = []
  readonly #redo: PastEdit[] = []

  /** Notes an edit. One that changes nothing that a person sets is none. Edits of one step are one. */
  note(before: LabEntries, after: LabEntries, step: EditStep = { by: 'edit' }): void {
    const keys = [...after.keys()].filter((key) => !isSame(key, before.get(key), after.get(key)))
    if (keys.length === 0) return
    const list = step.by === 'undo' ? this.#redo : this.#undo
    const last = list.at(-1)
    const edit: PastEdit = last?.step === step ? last : { before: new Map(), after: new Map(), step, size: 0 }
    for (const key of keys) {
      if (!edit.before.has(key)) edit.before.set(key, before.get(key))
      edit.after.set(key, after.get(key))
      edit.size += (JSON.stringify([before.get(key), after.get(key)]) ?? '').length
    }
    if (edit !== last) list.push(edit)
    if (step.by === 'edit') this.#redo.length = 0
    for (const it of [this.#undo, this.#redo])
      while (it.length > maxEdits || it.reduce((sum, { size }) => sum + size, 0) > maxSize) it.shift()
  }

  last(way: 'undo' | 'redo'): PastEdit | undefined {
    return (way === 'undo' ? this.#undo : this.#redo).at(-1)
  }

  /** An edit that was taken back, or cannot be any more. */
  drop(edit: PastEdit): void {
    for (const list of [this.#undo, this.#redo]) if (list.includes(edit)) list.splice(list.indexOf(edit), 1)
  }

  clear(): void {
    this.#undo.length = 0
    this.#redo.length = 0
  }
}

/** Whether an entry has the same of what a person sets. */
export const isSame = (key: string, a: unknown, b: unknown): boolean =>
  JSON.stringify(setBy(key, a)) === JSON.stringify(setBy(key, b))

/** What a person sets in an entry: captures, consoles and the way of a link come and go by themselves. */
function setBy(key: string, value: unknown): unknown {
  if (value === undefined || key.startsWith('snapshot/')) return undefined
  if (key === 'project') return settingsOf(value as ProjectRecord)
  if (key.startsWith('link/')) {
    const { capture: _, wiring: __, ...link } = value as LinkRecord
    return link
  }
  if (!key.startsWith('node/')) return value
  const { console: _, unmade: __, ...node } = value as NodeRecord
  return node
}

/** What a person sets of a project. */
export const settingsOf = (record: ProjectRecord): Partial<LabDocument['project']> =>
  Object.fromEntries(Object.entries(record).filter(([name]) => name === 'name' || name in labSettings))
