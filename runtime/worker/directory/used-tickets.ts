/** Used tickets that have not expired yet, in a table of the Durable Object. */
export class UsedTickets {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec('CREATE TABLE IF NOT EXISTS used_tickets (id TEXT PRIMARY KEY, expires INTEGER NOT NULL) WITHOUT ROWID')
  }

  /** Records a use; false when the ticket was used before, or has expired. `expires`: ms since 1970. */
  use(id: string, expires: number): boolean {
    const now = Date.now()
    this.#sql.exec('DELETE FROM used_tickets WHERE expires <= ?', now)
    if (expires <= now) return false
    const cursor = this.#sql.exec('INSERT OR IGNORE INTO used_tickets VALUES (?, ?) RETURNING id', id, expires)
    return cursor.toArray().length === 1
  }
}
