import type { PendingReplications } from '../../../src/fleet/images/kept-images.ts'
import { longWaitsMs } from '../../../src/lib/async/long-waits.ts'

/** The digests of images that are still to be copied to R2, in a table of the directory, whose alarm starts the next attempt. */
export class PendingReplicationsTable implements PendingReplications {
  readonly #sql: SqlStorage
  readonly #wakeAt: (time: number) => void

  /** `wakeAt`: sets the alarm to a time, ms since 1970, unless it is earlier already. */
  constructor(sql: SqlStorage, wakeAt: (time: number) => void) {
    this.#sql = sql
    this.#wakeAt = wakeAt
    sql.exec(
      'CREATE TABLE IF NOT EXISTS unkept_images (sha256 TEXT PRIMARY KEY, tries INTEGER NOT NULL, again_at INTEGER NOT NULL) WITHOUT ROWID',
    )
  }

  add(sha256: string): void {
    const time = Date.now() + (longWaitsMs[0] ?? 0)
    const { rowsWritten } = this.#sql.exec('INSERT OR IGNORE INTO unkept_images VALUES (?, 1, ?)', sha256, time)
    if (rowsWritten > 0) this.#wakeAt(time)
  }

  remove(sha256: string): void {
    this.#sql.exec('DELETE FROM unkept_images WHERE sha256 = ?', sha256)
  }

  /** The digests whose attempt is due. Plans the attempt after this one, as the program may end during this one. */
  due(): string[] {
    const now = Date.now()
    const rows = this.#sql.exec<Row>('SELECT sha256, tries FROM unkept_images WHERE again_at <= ?', now).toArray()
    for (const { sha256, tries } of rows) {
      const wait = longWaitsMs[tries]
      if (wait === undefined) this.remove(sha256)
      else
        this.#sql.exec(
          'UPDATE unkept_images SET tries = ?, again_at = ? WHERE sha256 = ?',
          tries + 1,
          now + wait,
          sha256,
        )
    }
    const [next] = this.#sql.exec<{ time: number | null }>('SELECT MIN(again_at) AS time FROM unkept_images').toArray()
    if (typeof next?.time === 'number') this.#wakeAt(next.time)
    return rows.map(({ sha256 }) => sha256)
  }
}

interface Row extends Record<string, SqlStorageValue> {
  sha256: string
  tries: number
}
