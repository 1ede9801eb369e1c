import type { Fleet } from '../../src/fleet/fleet.ts'
import type { Compute } from '../../src/model/compute.ts'

/** Between two looks at the computes, ms. */
export const roundMs = 15_000
/** Nobody looks after computes that nobody used for so long, ms. */
const idleMs = 10 * 60_000
/** What was found is of use for so long, ms. */
const freshMs = 2 * roundMs
/** How exactly it is kept when the gateway was used, ms. */
const usedMs = 60_000
/** How long a list of computes waits for the first look, ms. */
const patienceMs = 5000

/**
 * Looks after the computes from time to time while the gateway is used, by the alarm of the Durable Object, and keeps what was
 * found: between two looks the object may have slept.
 */
export class Rounds {
  readonly #storage: DurableObjectStorage
  readonly #fleet: Fleet
  #usedAt: number
  #round: Promise<void> | undefined
  /** Whether what is shown of the computes was found lately. */
  #isFresh = false

  constructor(storage: DurableObjectStorage, fleet: Fleet) {
    this.#storage = storage
    this.#fleet = fleet
    const { sql } = storage
    sql.exec('CREATE TABLE IF NOT EXISTS notes (name TEXT PRIMARY KEY, at INTEGER NOT NULL, value TEXT NOT NULL)')
    this.#usedAt = this.#note('used')?.at ?? 0
    const found = this.#note('computes')
    const ageMs = Date.now() - (found?.at ?? 0)
    if (found === undefined || ageMs > freshMs) return
    fleet.recall(JSON.parse(found.value) as Compute[], ageMs)
    this.#isFresh = true
  }

  /** The gateway is used. */
  async used(): Promise<void> {
    const now = Date.now()
    if (now - this.#usedAt > usedMs) {
      this.#usedAt = now
      this.#keep('used', '')
    }
    if (this.#round !== undefined || (await this.#storage.getAlarm()) !== null) return
    // A look that failed is made again with the next request.
    this.run().catch(() => {})
  }

  /** One look, of which the next follows while the gateway is used. */
  run(): Promise<void> {
    this.#round ??= this.#look().finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  /** Resolves when it is known which computes are there, or that takes too long. */
  async known(): Promise<void> {
    if (this.#isFresh || this.#round === undefined) return
    let timer: ReturnType<typeof setTimeout> | null = null
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, patienceMs)
    })
    await Promise.race([this.#round, late])
    clearTimeout(timer)
  }

  async #look(): Promise<void> {
    const isIdle = Date.now() - this.#usedAt > idleMs
    const isEmpty = (await this.#fleet.list()).length === 0
    this.#isFresh = isEmpty
    if (isIdle || isEmpty) return
    // Beforehand, too: whatever ends this one, another follows.
    await this.#storage.setAlarm(Date.now() + roundMs)
    await this.#fleet.check()
    this.#isFresh = true
    this.#keep('computes', JSON.stringify(await this.#fleet.list()))
    await this.#storage.setAlarm(Date.now() + roundMs)
  }

  #note(name: string): { at: number; value: string } | undefined {
    const cursor = this.#storage.sql.exec<{ at: number; value: string }>(
      'SELECT at, value FROM notes WHERE name = ?',
      name,
    )
    return cursor.toArray()[0]
  }

  #keep(name: string, value: string): void {
    this.#storage.sql.exec('INSERT OR REPLACE INTO notes VALUES (?, ?, ?)', name, Date.now(), value)
  }
}
