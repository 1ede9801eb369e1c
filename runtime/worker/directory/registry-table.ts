import { Check } from '@sinclair/typebox/value'
import type { ComputeRegistry } from '../../../src/fleet/pool/registry.ts'
import { ComputeRecord } from '../../../src/model/compute.ts'
import type { Sealer } from '../shared/sealed.ts'

/** The computes in a table of the Durable Object; passwords are sealed. */
export class RegistryTable implements ComputeRegistry {
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
    const rows = this.#sql.exec<SealedRecord>('SELECT compute_id, record, password FROM computes ORDER BY position')
    const records = await Promise.all(rows.toArray().map((row) => openRecord(row, this.#sealer, this.#warn)))
    return records.filter((record) => record !== undefined)
  }

  async save(record: ComputeRecord): Promise<void> {
    const { compute_id, record: text, password } = await sealRecord(record, this.#sealer)
    this.#sql.exec(
      `INSERT INTO computes (compute_id, record, password) VALUES (?, ?, ?)
        ON CONFLICT (compute_id) DO UPDATE SET record = excluded.record, password = excluded.password`,
      compute_id,
      text,
      password,
    )
  }

  async remove(computeId: string): Promise<void> {
    this.#sql.exec('DELETE FROM computes WHERE compute_id = ?', computeId)
  }
}

/** The record of a compute as it is stored. */
export interface SealedRecord extends Record<string, SqlStorageValue> {
  compute_id: string
  /** JSON, without the password. */
  record: string
  password: string | null
}

export async function sealRecord(record: ComputeRecord, sealer: Sealer): Promise<SealedRecord> {
  const { compute_id, password } = record
  const sealed = password === null ? null : await sealer.seal(password, compute_id)
  return { compute_id, record: JSON.stringify({ ...record, password: null }), password: sealed }
}

/** A record. Without its password when that cannot be decrypted; undefined when the record is malformed. */
export async function openRecord(
  { compute_id, record, password: sealed }: SealedRecord,
  sealer: Sealer,
  warn: (message: string) => void,
): Promise<ComputeRecord | undefined> {
  const value: unknown = JSON.parse(record)
  if (!Check(ComputeRecord, value)) {
    warn(`The record of the compute ${compute_id} cannot be read`)
    return undefined
  }
  if (sealed === null) return value
  try {
    return { ...value, password: await sealer.open(sealed, compute_id) }
  } catch {
    warn(`The password of the compute ${compute_id} was sealed with another FLEET_KEY: PUT it again`)
    return value
  }
}
