import { Check } from '@sinclair/typebox/value'
import type { Registry } from '../../src/fleet/registry.ts'
import { ComputeRecord } from '../../src/model/compute.ts'
import type { Sealer } from './sealed.ts'

/** The computes in a table of the Durable Object; passwords are sealed. */
export class RegistryTable implements Registry {
  readonly #sql: SqlStorage
  readonly #sealer: Sealer
  readonly #warn: (message: string) => void

  constructor(sql: SqlStorage, sealer: Sealer, warn: (message: string) => void) {
    this.#sql = sql
    this.#sealer = sealer
    this.#warn = warn
    sql.exec(
      `CREATE TABLE IF NOT EXISTS computes (
        position INTEGER PRIMARY KEY AUTOINCREMENT, compute_id TEXT NOT NULL UNIQUE COLLATE NOCASE,
        record TEXT NOT NULL, password TEXT)`,
    )
  }

  async load(): Promise<readonly ComputeRecord[]> {
    const rows = this.#sql.exec<Row>('SELECT compute_id, record, password FROM computes ORDER BY position').toArray()
    const records = await Promise.all(rows.map((row) => this.#recordOf(row)))
    return records.filter((record) => record !== undefined)
  }

  async save(record: ComputeRecord): Promise<void> {
    const { compute_id, password } = record
    const sealed = password === null ? null : await this.#sealer.seal(password, compute_id)
    this.#sql.exec(
      `INSERT INTO computes (compute_id, record, password) VALUES (?, ?, ?)
        ON CONFLICT (compute_id) DO UPDATE SET record = excluded.record, password = excluded.password`,
      compute_id,
      JSON.stringify({ ...record, password: null }),
      sealed,
    )
  }

  async remove(computeId: string): Promise<void> {
    this.#sql.exec('DELETE FROM computes WHERE compute_id = ?', computeId)
  }

  /** A record. Without its password when that cannot be decrypted; undefined when the record is malformed. */
  async #recordOf({ compute_id, record, password: sealed }: Row): Promise<ComputeRecord | undefined> {
    const value: unknown = JSON.parse(record)
    if (!Check(ComputeRecord, value)) {
      this.#warn(`The record of the compute ${compute_id} cannot be read`)
      return undefined
    }
    if (sealed === null) return value
    try {
      return { ...value, password: await this.#sealer.open(sealed, compute_id) }
    } catch {
      this.#warn(`The password of the compute ${compute_id} was sealed with another FLEET_KEY: PUT it again`)
      return value
    }
  }
}

interface Row extends Record<string, SqlStorageValue> {
  compute_id: string
  record: string
  password: string | null
}
