import type { Bookmarks } from '../../src/gateway/events.ts'

/** Up to which event each compute was heard, in a table of the Durable Object. */
export class BookmarkTable implements Bookmarks {
  readonly #sql: SqlStorage
  readonly #heard: Map<string, number>

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec('CREATE TABLE IF NOT EXISTS bookmarks (compute_id TEXT PRIMARY KEY, seq INTEGER NOT NULL) WITHOUT ROWID')
    const rows = sql.exec<{ compute_id: string; seq: number }>('SELECT * FROM bookmarks').toArray()
    this.#heard = new Map(rows.map(({ compute_id, seq }) => [compute_id, seq]))
  }

  get(id: string): number | undefined {
    return this.#heard.get(id)
  }

  put(id: string, seq: number): void {
    if (this.#heard.get(id) === seq) return
    this.#heard.set(id, seq)
    this.#sql.exec('INSERT OR REPLACE INTO bookmarks VALUES (?, ?)', id, seq)
  }

  clear(): void {
    this.#heard.clear()
    this.#sql.exec('DELETE FROM bookmarks')
  }
}
