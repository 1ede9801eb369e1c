import type { Bookmarks } from '../../../src/fleet/events/events.ts'

/** Time between two writes, ms. */
const writeMs = 1000

/**
 * The number of the last event that was read of each compute, in a table of the Durable Object. It is written at most once a second: when the
 * program ends without notice, the events of its last second may be sent twice.
 */
export class BookmarkTable implements Bookmarks {
  readonly #sql: SqlStorage
  readonly #heard: Map<string, number>
  /** Computes whose numbers are not written yet. */
  readonly #fresh = new Set<string>()

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
    // The object does not hibernate before the timer has run.
    if (this.#fresh.size === 0) setTimeout(() => this.#write(), writeMs)
    this.#fresh.add(id)
  }

  clear(): void {
    this.#heard.clear()
    this.#sql.exec('DELETE FROM bookmarks')
  }

  #write(): void {
    for (const id of this.#fresh) {
      const seq = this.#heard.get(id)
      if (seq !== undefined) this.#sql.exec('INSERT OR REPLACE INTO bookmarks VALUES (?, ?)', id, seq)
    }
    this.#fresh.clear()
  }
}
