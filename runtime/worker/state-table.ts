import { computeKey } from '../../src/fleet/computes.ts'
import type { Compute } from '../../src/model/compute.ts'

/** The state of each compute as its object told it last, in a table of the directory. */
export class StateTable {
  readonly #sql: SqlStorage
  readonly #connected = new Map<string, boolean>()

  constructor(sql: SqlStorage) {
    this.#sql = sql
    sql.exec('CREATE TABLE IF NOT EXISTS states (compute_id TEXT PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID')
    // Earlier versions kept the states of all computes together.
    sql.exec('DROP TABLE IF EXISTS kept')
  }

  load(): Compute[] {
    const rows = this.#sql.exec<{ state: string }>('SELECT state FROM states').toArray()
    const states = rows.map(({ state }) => JSON.parse(state) as Compute)
    for (const { compute_id, connected } of states) this.#connected.set(computeKey(compute_id), connected)
    return states
  }

  put(shown: Compute): void {
    const id = computeKey(shown.compute_id)
    this.#connected.set(id, shown.connected)
    this.#sql.exec('INSERT OR REPLACE INTO states VALUES (?, ?)', id, JSON.stringify(shown))
  }

  /** Whether the compute was told to be connected; undefined: nothing was told of it. */
  isConnected(id: string): boolean | undefined {
    return this.#connected.get(computeKey(id))
  }

  remove(id: string): void {
    this.#connected.delete(computeKey(id))
    this.#sql.exec('DELETE FROM states WHERE compute_id = ?', computeKey(id))
  }
}
