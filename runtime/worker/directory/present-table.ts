import type { PresentReport, PresentStore } from '../../../src/labs/directory-registry.ts'
import type { BatchedWrites } from './batched-writes.ts'

interface Row extends Record<string, SqlStorageValue> {
  lab: string
  names: string
  until: number
}

/** Who has labs open, as their objects report it, in a table of the directory. */
export class PresentTable implements PresentStore {
  readonly #sql: SqlStorage
  readonly #writes: BatchedWrites

  constructor(sql: SqlStorage, writes: BatchedWrites) {
    this.#sql = sql
    this.#writes = writes
    sql.exec(
      'CREATE TABLE IF NOT EXISTS present (lab TEXT PRIMARY KEY, names TEXT NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID',
    )
  }

  all(): [id: string, report: PresentReport][] {
    const rows = this.#sql.exec<Row>('SELECT lab, names, until FROM present').toArray()
    return rows.map(({ lab, names, until }) => [lab, { names: JSON.parse(names), until }])
  }

  async save(id: string, report: PresentReport | undefined): Promise<void> {
    const write = () => {
      if (report === undefined) this.#sql.exec('DELETE FROM present WHERE lab = ?', id)
      else {
        const { names, until } = report
        this.#sql.exec('INSERT OR REPLACE INTO present VALUES (?, ?, ?)', id, JSON.stringify(names), until)
      }
    }
    await this.#writes.add(`present ${id}`, write)
  }
}
