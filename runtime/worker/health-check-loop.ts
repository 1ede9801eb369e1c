import { ignore } from '../../src/async/ignore.ts'
import { withTimeout } from '../../src/async/timeout.ts'
import type { Fleet } from '../../src/fleet/fleet.ts'
import type { Compute } from '../../src/model/compute.ts'

/** Time between two health checks, ms. */
export const roundMs = 15_000
/** Time without requests after which the checks stop, ms. */
const idleMs = 10 * 60_000
/** Time between two checks when only feeds are open, ms: they report lost computes. */
const restingMs = 5 * 60_000
/** Age up to which the result of a check is used, ms. */
const freshMs = 2 * roundMs
/** Precision of the stored time of the last request, ms. */
const usedMs = 60_000
/** How long a list of computes waits for the first check, ms. */
const firstLookMs = 5000
/** Characters of a row, of at most three bytes each: a row has at most 2 MB. */
const rowCharacters = 600_000

/**
 * Checks the computes periodically while the gateway is used, by the alarm of the Durable Object, and stores the results: the object may
 * hibernate between two checks.
 */
export class HealthCheckLoop {
  readonly #storage: DurableObjectStorage
  readonly #fleet: Fleet
  readonly #feeds: () => number
  #usedAt: number
  /** Time of the last check of all computes, ms since 1970. */
  #foundAt: number
  #round: Promise<void> | undefined
  /** Whether the last check is recent. */
  #isFresh = false
  /** The connected computes in the stored result. */
  #connected: string

  /** `feeds`: the number of open feeds. */
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
    // The stored result lacks computes that were registered later.
    const isKnown = [...fleet.registered().values()].every(({ compute_id }) => ids.has(compute_id))
    // Tunnels may have ended with the program that knew of them.
    const isCertain = shown.every(
      ({ compute_id, connected }) => !connected || fleet.find(compute_id)?.state !== 'disconnected',
    )
    this.#isFresh = ageMs <= freshMs && isKnown && isCertain
    this.#connected = connectedIn(shown)
    fleet.listen(() => void this.#noticed())
  }

  /** Records a request, and begins the checks if they had stopped. */
  async used(): Promise<void> {
    const now = Date.now()
    if (now - this.#usedAt > usedMs) {
      this.#usedAt = now
      this.#keep('used', [''], now)
    }
    if (this.#round !== undefined) return
    const alarm = await this.#storage.getAlarm()
    if (this.#isFresh && alarm !== null && alarm <= now + roundMs) return
    this.run().catch(ignore('the next request begins another check'))
  }

  /** Checks all computes, and schedules the next check while the gateway is used. */
  run(): Promise<void> {
    this.#round ??= this.#look().finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  /** Resolves after the first check of the computes, or its timeout. */
  async known(): Promise<void> {
    if (this.#isFresh || this.#round === undefined) return
    // The caller of the check gets its failure.
    await withTimeout(this.#round.catch(ignore('the caller of the check gets the error')), firstLookMs, () => {})
  }

  async #look(): Promise<void> {
    const isIdle = Date.now() - this.#usedAt > idleMs
    const isEmpty = (await this.#fleet.list()).length === 0
    this.#isFresh = isEmpty
    if (isEmpty || (isIdle && this.#feeds() === 0)) return
    const pauseMs = isIdle ? restingMs : roundMs
    // Also before the check: if that fails, the next one still follows.
    await this.#storage.setAlarm(Date.now() + pauseMs)
    await this.#fleet.check()
    this.#isFresh = true
    this.#foundAt = Date.now()
    await this.#keepFound()
    await this.#storage.setAlarm(Date.now() + pauseMs)
  }

  /** Stores the states when a compute has joined or left since the last check. */
  async #noticed(): Promise<void> {
    if (this.#round === undefined && connectedIn(await this.#fleet.list()) !== this.#connected) await this.#keepFound()
  }

  async #keepFound(): Promise<void> {
    const found = await this.#fleet.list()
    this.#connected = connectedIn(found)
    this.#keep('computes', rowsOf(found), this.#foundAt)
  }

  /** The stored parts of a value. */
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

/** Splits computes into JSON lists that fit into rows. */
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
