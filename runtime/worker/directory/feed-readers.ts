import { computeKey } from '../../../src/fleet/pool/computes.ts'

/** The computes at whose objects a credential has opened feeds: these objects are called when it is revoked. */
export class FeedReaders {
  readonly #sql: SqlStorage

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec(
      'CREATE TABLE IF NOT EXISTS feed_readers (key TEXT, compute_id TEXT, PRIMARY KEY (key, compute_id)) WITHOUT ROWID',
    )
  }

  add(key: string, computeId: string): void {
    this.#sql.exec('INSERT OR IGNORE INTO feed_readers VALUES (?, ?)', key, computeKey(computeId))
  }

  /** Returns the computes of a credential, and removes them. */
  drain(key: string): string[] {
    const rows = this.#sql.exec<{ compute_id: string }>(
      'DELETE FROM feed_readers WHERE key = ? RETURNING compute_id',
      key,
    )
    return rows.toArray().map(({ compute_id }) => compute_id)
  }
}
