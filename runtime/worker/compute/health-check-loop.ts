import type { FleetTimeouts } from '../../../src/compute/remote/timeouts.ts'
import type { Fleet } from '../../../src/fleet/pool/fleet.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { withTimeout } from '../../../src/lib/async/timeout.ts'
import type { Compute } from '../../../src/model/compute.ts'
import type { ComputeCache } from './compute-cache.ts'

/** Time between two health checks of a compute that is used, ms. */
const roundMs = 15_000
/** Time without requests after which there are fewer checks, ms. */
const idleMs = 10 * 60_000
/** Time between two checks then, ms: of a connected compute, and of one that may come back. */
const restingMs = 5 * 60_000
const awaitingMs = 60_000
/** Age up to which the result of a check is used, ms. */
const freshMs = 2 * roundMs
/** Precision of the stored time of the last request, ms. */
const usedMs = 60_000
/** How long a request waits for the first check, ms. */
const firstCheckMs = 5000
/** A load that differs less than this from the last report, percent, is reported at most this often, ms. */
const smallChange = 10
const loadMs = 60_000

/** Of the fleet in the object of a compute. The result of a health check holds until the next one. */
export const checkTimeouts: Partial<FleetTimeouts> = {
  connectMs: 10_000,
  failures: 2,
  lookMs: roundMs,
  retryMs: [freshMs, freshMs],
}

export interface HealthCheckOptions {
  /** Of the object, which has one alarm. */
  readonly storage: { getAlarm(): Promise<number | null>; setAlarm(at: number): Promise<void> }
  readonly kept: Pick<ComputeCache, 'reported' | 'usedAt'>
  /** Has this compute only. */
  readonly fleet: Fleet
  readonly computeId: string
  /** Reports the state to the directory; `isNew`: it is connected, and was not at the last report. */
  readonly report: (shown: Compute, isNew: boolean) => Promise<void>
  /** Keeps the program awake until the work is done. */
  readonly waitUntil: (work: Promise<unknown>) => void
}

/**
 * Checks one compute by the alarm of its object, which may hibernate between two checks: every 15 s while it is used, and seldom otherwise. A
 * joined compute without a tunnel is not checked: it joins by itself. Each change is reported to the directory at once, and the load at most
 * once a minute unless it changed much.
 */
export class HealthCheckLoop {
  readonly #options: HealthCheckOptions
  #usedAt: number
  #checkedAt = 0
  /** The time of the alarm that this program has set, ms since 1970. */
  #nextAt = 0
  #round: Promise<void> | undefined

  constructor(options: HealthCheckOptions) {
    this.#options = options
    this.#usedAt = options.kept.usedAt
  }

  /** Records a request. The compute is checked at once when the last check was long ago. */
  used(): void {
    const now = Date.now()
    if (now - this.#usedAt <= usedMs || this.#shown() === undefined) return
    this.#usedAt = now
    this.#options.kept.usedAt = now
    // Until now it may have been checked seldom.
    if (now - this.#checkedAt > freshMs || this.#nextAt > now + roundMs) this.begin()
  }

  /** Begins a check. */
  begin(): void {
    this.#options.waitUntil(this.run().catch(ignore('the alarm or the next request begins another check')))
  }

  /** Checks the compute; resolves when the directory has the result. */
  run(): Promise<void> {
    this.#round ??= this.#check().finally(() => {
      this.#round = undefined
    })
    return this.#round
  }

  /** Resolves when the compute was checked once, at the latest after 5 s. */
  async known(): Promise<void> {
    const shown = this.#shown()
    if (shown === undefined || isFound(shown)) return
    await withTimeout(this.run().catch(ignore('the state shows the failure')), firstCheckMs, () => {})
  }

  /** Reports the state to the directory, if it is news. */
  async report(): Promise<void> {
    const { kept, report } = this.#options
    const shown = this.#shown()
    if (shown === undefined || !isFound(shown)) return
    const { reported } = kept
    if (reported !== undefined && !isNews(shown, reported.shown, Date.now() - reported.at)) return
    kept.reported = { at: Date.now(), shown }
    try {
      await report(shown, shown.connected && reported?.shown.connected !== true)
    } catch (error) {
      // The next check reports it again.
      kept.reported = undefined
      throw error
    }
  }

  async #check(): Promise<void> {
    const { storage, fleet, computeId } = this.#options
    const pauseMs = this.#pauseMs()
    if (pauseMs === undefined) return
    // The alarm is set before the check, so that another check follows even if this one fails. An earlier alarm is left as it is: each write
    // waits for the disk. An overdue alarm may begin just when it is set to a later time: workerd then logs "SQLite alarm handler canceled
    // with requestScheduledAlarm", and runs it at the new time (armAlarmHandler in io/actor-sqlite.c++). No check is lost: it begins here.
    const [now, set] = [Date.now(), await storage.getAlarm()]
    const isSet = set !== null && set > now && set <= now + pauseMs
    this.#nextAt = isSet ? set : now + pauseMs
    if (!isSet) await storage.setAlarm(this.#nextAt)
    await fleet.check(computeId)
    this.#checkedAt = Date.now()
    await this.report()
  }

  /** Undefined: there is nothing to check. */
  #pauseMs(): number | undefined {
    const shown = this.#shown()
    if (shown === undefined) return undefined
    if (Date.now() - this.#usedAt <= idleMs) return roundMs
    return shown.connected ? restingMs : awaitingMs
  }

  /** Undefined for a joined compute without a tunnel: the directory has the report of its end. */
  #shown(): Compute | undefined {
    const { fleet, computeId } = this.#options
    const found = fleet.find(computeId)
    return found?.session.isWaiting === false ? found.show() : undefined
  }
}

/** Whether a check has found something. */
const isFound = ({ connected, last_error }: Compute): boolean => connected || last_error !== null

/** Whether the result of a check must be reported when `reported` was the last report, `ageMs` ago. */
export function isNews(now: Compute, reported: Compute, ageMs: number): boolean {
  if (stateOf(now) !== stateOf(reported)) return true
  const changes = (['cpu_usage_percent', 'memory_usage_percent'] as const).map((it) =>
    Math.abs((now[it] ?? -Number.MAX_VALUE) - (reported[it] ?? -Number.MAX_VALUE)),
  )
  const change = Math.max(...changes)
  return change > smallChange || (change > 0 && ageMs >= loadMs)
}

const stateOf = (shown: Compute): string =>
  JSON.stringify({ ...shown, cpu_usage_percent: null, memory_usage_percent: null })
