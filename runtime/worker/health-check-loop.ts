import { ignore } from '../../src/async/ignore.ts'
import { withTimeout } from '../../src/async/timeout.ts'
import type { Fleet } from '../../src/fleet/fleet.ts'
import type { Compute } from '../../src/model/compute.ts'

/** Between two looks at the computes, ms. */
export const roundMs = 15_000
/** Nobody looks after computes that nobody used for so long, ms. */
const idleMs = 10 * 60_000
/** Between two looks when nobody asks anything, but feeds are open, ms: what has gone is still to be told. */
const restingMs = 5 * 60_000
/** What was found is of use for so long, ms. */
const freshMs = 2 * roundMs
/** How exactly it is kept when the gateway was used, ms. */
const usedMs = 60_000
/** How long a list of computes waits for the first look, ms. */
const firstLookMs = 5000
/** Characters of a row, of three bytes at most: a row of these tables has no more than 2 MB. */
const rowCharacters = 600_000

/**
 * Looks after the computes from time to time while the gateway is used, by the alarm of the Durable Object, and keeps what was
 * found: between two looks the object may have slept.
 */
export class HealthCheckLoop {
  readonly #storage: DurableObjectStorage
  readonly #fleet: Fleet
  readonly #feeds: () => number
  #usedAt: number
  /** When all of them were looked at last, ms. */
  #foundAt: number
  #round: Promise<void> | undefined
  /** Whether what is shown of the computes was found lately. */
  #isFresh = false
  /** The computes that were connected by what was kept. */
  #connected: string

  /** `feeds`: how many are open. */
  constructor(storage: DurableObjectStorage, fleet: Fleet, feeds: () => number) {
    this.#storage = storage
    this.#fleet = fleet
    this.#feeds = feeds
    const { sql } = storage
    sql.exec(
      `CREATE TABLE IF NOT EXISTS kept (
        name TEXT, part INTEGER, at INTEGER NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, part))`,
    )
    this.#usedAt = this.#kept('used')[0]?.at ?? 0
    const found = this.#kept('computes')
    this.#foundAt = found[0]?.at ?? 0
    const ageMs = Date.now() - this.#foundAt
    const shown = found.flatMap(({ value }) => JSON.parse(value) as Compute[])
    if (found.length > 0) fleet.recall(shown, ageMs, freshMs)
    const ids = new Set(shown.map(({ compute_id }) => compute_id))
    // One that was registered after the last look is not among them.
    this.#isFresh = ageMs <= freshMs && [...fleet.registered().values()].every(({ compute_id }) => ids.has(compute_id))
    this.#connected = connectedIn(shown)
    fleet.listen(() => void this.#noticed())
  }

  /** The gateway is used. */
  async used(): Promise<void> {
    const now = Date.now()
    if (now - this.#usedAt > usedMs) {
      this.#usedAt = now
      this.#keep('used', [''], now)
    }
    if (this.#round !== undefined) return
    const alarm = await this.#storage.getAlarm()
    if (this.#isFresh && alarm !== null && alarm <= now + roundMs) return
    this.run().catch(ignore('a look that failed is made again with the next request'))
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
    // The look itself tells of its failure.
    await withTimeout(this.#round.catch(ignore('who began the round is told')), firstLookMs, () => {})
  }

  async #look(): Promise<void> {
    const isIdle = Date.now() - this.#usedAt > idleMs
    const isEmpty = (await this.#fleet.list()).length === 0
    this.#isFresh = isEmpty
    if (isEmpty || (isIdle && this.#feeds() === 0)) return
    const pauseMs = isIdle ? restingMs : roundMs
    // Beforehand, too: whatever ends this one, another follows.
    await this.#storage.setAlarm(Date.now() + pauseMs)
    await this.#fleet.check()
    this.#isFresh = true
    this.#foundAt = Date.now()
    await this.#keepFound()
    await this.#storage.setAlarm(Date.now() + pauseMs)
  }

  /** What has joined or gone is known after a sleep, too. */
  async #noticed(): Promise<void> {
    if (this.#round === undefined && connectedIn(await this.#fleet.list()) !== this.#connected) await this.#keepFound()
  }

  async #keepFound(): Promise<void> {
    const found = await this.#fleet.list()
    this.#connected = connectedIn(found)
    this.#keep('computes', rowsOf(found), this.#foundAt)
  }

  /** What was kept last by that name, in its parts. */
  #kept(name: string): { at: number; value: string }[] {
    const { sql } = this.#storage
    return sql
      .exec<{ at: number; value: string }>('SELECT at, value FROM kept WHERE name = ? ORDER BY part', name)
      .toArray()
  }

  #keep(name: string, values: readonly string[], at: number): void {
    const { sql } = this.#storage
    sql.exec('DELETE FROM kept WHERE name = ? AND part >= ?', name, values.length)
    for (const [part, value] of values.entries())
      sql.exec('INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)', name, part, at, value)
  }
}

/** Computes as lists in JSON, none longer than a row may be. */
function rowsOf(computes: readonly Compute[]): string[] {
  const rows: string[][] = []
  let left = 0
  for (const compute of computes) {
    const text = JSON.stringify(compute)
    left -= text.length + 1
    if (left < 0) {
      rows.push([])
      left = rowCharacters - text.length
    }
    rows.at(-1)?.push(text)
  }
  return rows.map((row) => `[${row.join()}]`)
}

const connectedIn = (found: readonly Compute[]): string =>
  found
    .filter(({ connected }) => connected)
    .map(({ compute_id }) => compute_id)
    .join(' ')
