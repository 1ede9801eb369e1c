import { computeKey } from '../../../src/fleet/pool/computes.ts'
import type { Compute } from '../../../src/model/compute.ts'
import type { BatchedWrites } from './batched-writes.ts'

/** The state of each compute as its object reported it last, in a table of the directory. */
export class StateTable {
  readonly #sql: SqlStorage
  readonly #writes: BatchedWrites
  readonly #connected = new Map<string, boolean>()

  constructor(sql: SqlStorage, writes: BatchedWrites) {
    this.#sql = sql
    this.#writes = writes
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

  /** The first state of a compute is written together with those of others: after a restart all join at once. */
  async put(shown: Compute): Promise<void> {
    const id = computeKey(shown.compute_id)
    const isNew = !this.#connected.has(id)
    this.#connected.set(id, shown.connected)
    const state = JSON.stringify(shown)
    const write = () => this.#sql.exec('INSERT OR REPLACE INTO states VALUES (?, ?)', id, state)
    if (isNew) await this.#writes.add(keyOf(id), write)
    else this.#writes.now(keyOf(id), write)
  }

  /** Whether the last report says that the compute is connected; undefined: there was none. */
  isConnected(id: string): boolean | undefined {
    return this.#connected.get(computeKey(id))
  }

  remove(computeId: string): void {
    const id = computeKey(computeId)
    this.#connected.delete(id)
    this.#writes.now(keyOf(id), () => this.#delete(id))
  }

  /** Removes a state, together with other writes. */
  async forget(computeId: string): Promise<void> {
    const id = computeKey(computeId)
    if (this.#connected.delete(id)) await this.#writes.add(keyOf(id), () => this.#delete(id))
  }

  #delete(id: string): void {
    this.#sql.exec('DELETE FROM states WHERE compute_id = ?', id)
  }
}

const keyOf = (id: string): string => `state ${id}`
