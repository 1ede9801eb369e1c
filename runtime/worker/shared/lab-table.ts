import { inMebibytes, mebibyte, sizeOf } from '../../../src/labs/lab/lab-limits.ts'
import {
  isApart,
  type LabEntries,
  type LabStorage,
  type StoredHead,
  storedValue,
  UnreadableLab,
} from '../../../src/labs/lab/store.ts'
import { objectLimits } from './object-limits.ts'

/** Characters of a row, of three bytes at most: a row has no more than 2 MB. Documents of snapshots may be longer. */
const rowCharacters = 600_000

/** Documents of labs in a table of a Durable Object: of one lab, or in the directory the heads of all. */
export class LabTable implements LabStorage {
  readonly #storage: DurableObjectStorage
  #isMade: boolean

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage
    const found = storage.sql
      .exec("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'lab_entries'")
      .toArray()
    // Requests for unknown labs must store nothing, so the first save makes the table.
    this.#isMade = found.length > 0
  }

  async heads(): Promise<ReadonlyMap<string, StoredHead>> {
    return new Map(this.#rows("WHERE key = 'project'").map(({ lab, value }) => [lab, headIn(value)]))
  }

  async load(id: string): Promise<LabEntries | undefined> {
    this.#requireSmall(id)
    const rows = this.#rows('WHERE lab = ?', id)
    if (rows.length === 0) return undefined
    if (isApart(id)) return new Map([['document', readable('document', rows.map(({ value }) => value).join(''))]])
    const entries = new Map(rows.map(({ key, value }) => [key, readable(key, value)]))
    requireBytes([...entries.values()].reduce<number>((sum, value) => sum + sizeOf(value).memory, 0))
    return entries
  }

  /** Before rows are read: an object has little memory. */
  #requireSmall(id: string): void {
    if (!this.#isMade) return
    const sum = 'SELECT COALESCE(SUM(LENGTH(value)), 0) AS bytes FROM lab_entries WHERE lab = ?'
    const [found] = this.#storage.sql.exec<{ bytes: number }>(sum, id).toArray()
    requireBytes(found?.bytes ?? 0)
  }

  async save(id: string, changes: LabEntries): Promise<void> {
    const { sql } = this.#storage
    this.#storage.transactionSync(() => {
      if (!this.#isMade) sql.exec(create)
      if (isApart(id)) {
        sql.exec('DELETE FROM lab_entries WHERE lab = ?', id)
        const text = JSON.stringify(changes.get('document'))
        for (let at = 0; at < text.length; at += rowCharacters)
          sql.exec(put, id, `document/${at}`, text.slice(at, at + rowCharacters))
        return
      }
      for (const [key, value] of changes) {
        if (value === undefined || value === null)
          sql.exec('DELETE FROM lab_entries WHERE lab = ? AND key = ?', id, key)
        else sql.exec(put, id, key, JSON.stringify(value))
      }
    })
    this.#isMade = true
  }

  async remove(id: string): Promise<void> {
    if (this.#isMade) this.#storage.sql.exec('DELETE FROM lab_entries WHERE lab = ?', id)
  }

  /** The id of the lab of this object, if it has one; with `isUnfinished` only of an unfinished lab. */
  only(isUnfinished = false): string | undefined {
    const [head] = this.#rows("WHERE key = 'project'")
    return head === undefined || (isUnfinished && JSON.parse(head.value).unfinished !== true) ? undefined : head.lab
  }

  /** Deletes all storage of the object. */
  async drop(): Promise<void> {
    this.#isMade = false
    await this.#storage.deleteAll()
  }

  #rows(where: string, ...values: string[]): Row[] {
    if (!this.#isMade) return []
    return this.#storage.sql
      .exec<Row>(`SELECT lab, key, value FROM lab_entries ${where} ORDER BY position`, ...values)
      .toArray()
  }
}

const headIn = (text: string): StoredHead => {
  try {
    return { head: readable('project', text) }
  } catch (error) {
    return { head: undefined, fault: (error as Error).message }
  }
}

/** Rejects with UnreadableLab. */
function readable(key: string, text: string): unknown {
  try {
    return storedValue(text)
  } catch {
    throw new UnreadableLab(`its document is damaged: its entry ${key} is not JSON`)
  }
}

function requireBytes(bytes: number): void {
  const max = objectLimits.open_labs_mb
  if (bytes > max * mebibyte)
    throw new UnreadableLab(`its document takes ${inMebibytes(bytes)} of memory, and may take ${max} MiB here`)
}

/** `position` keeps the order of creation, which lists show. */
const create = `CREATE TABLE lab_entries (
  position INTEGER PRIMARY KEY AUTOINCREMENT, lab TEXT NOT NULL, key TEXT NOT NULL, value TEXT NOT NULL, UNIQUE (lab, key))`
const put = `INSERT INTO lab_entries (lab, key, value) VALUES (?, ?, ?)
  ON CONFLICT (lab, key) DO UPDATE SET value = excluded.value`

interface Row extends Record<string, SqlStorageValue> {
  lab: string
  key: string
  value: string
}
