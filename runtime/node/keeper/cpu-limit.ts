import { performance } from 'node:perf_hooks'
import { KeeperError } from '../keeper-protocol/error.ts'
import { ProcessorTime, tickMs } from '../system/processor-time.ts'
import { signalGroup } from '../system/signal-group.ts'

/** How long one round of running and being stopped takes, unless that is too short to be measured, ms. */
const roundMs = 100
const shortestStopMs = 5
/** What a process used beyond its share before it was noticed is made up for in a stop of about this length at most, ms. */
const longestDebtMs = 1000
/** What may be used in one go after a rest: at least so much, because the clock is no finer, ms. */
const minBurstMs = 2 * tickMs
/** How fast it uses time is remembered through rests: this much of it after every round of not being stopped. */
const remembered = 0.98
const maxPercent = 800

/**
 * Limits the processor time of a process by stopping and continuing its group. Its share is paid into an account that every
 * use is taken from; it is stopped when nothing is left, until there is enough for another round. The account follows what
 * the kernel has counted, so no error adds up, and a process that needs less than its share is never stopped.
 */
export class CpuLimit {
  readonly #pid: number
  readonly #leader: number
  #time: ProcessorTime | undefined
  #timer: NodeJS.Timeout | undefined
  /** Of one processor; 0: no limit. */
  #share = 0
  #isStopped = false
  /** Processor time that may still be used, ms; below zero: used too much. */
  #left = 0
  /** How many processors it uses when nothing stops it, which says when to look next. */
  #pace = 1
  /** What the pace is measured by. */
  #ran = 0
  #usedMeanwhile = 0
  #lookedAt = 0
  #usedBefore = 0

  /** The time is that of a process, and what is stopped is its group. */
  constructor(pid: number, leader = pid) {
    this.#pid = pid
    this.#leader = leader
  }

  /** Percent of one processor; 0 lifts the limit. `bad_request`, `unsupported` where processor time cannot be read. */
  set(percent: number): void {
    if (percent !== 0 && !(Number.isFinite(percent) && percent >= 1 && percent <= maxPercent))
      throw new KeeperError('bad_request', `cpu_percent: expected 0, or 1 to ${maxPercent}`)
    const share = percent / 100
    if (share === this.#share) return
    if (share === 0) return this.lift()
    if (this.#time === undefined) this.#begin()
    else this.#account()
    this.#share = share
    this.#look()
  }

  /** Has it run freely from now on. Must be called before the process has been waited for, or at once then. */
  lift(): void {
    clearTimeout(this.#timer)
    this.#time?.close()
    this.#time = undefined
    this.#share = 0
    if (!this.#isStopped) return
    this.#isStopped = false
    signalGroup(this.#leader, 'SIGCONT')
  }

  #begin(): void {
    try {
      this.#time = new ProcessorTime(this.#pid)
    } catch (cause) {
      throw new KeeperError('unsupported', `the processor time of ${this.#pid} cannot be read`, { cause })
    }
    this.#lookedAt = performance.now()
    this.#usedBefore = this.#time.read() ?? 0
    this.#left = minBurstMs
    this.#pace = 1
    this.#ran = 0
    this.#usedMeanwhile = 0
  }

  /** Brings the account up to date; false when the process is gone. */
  #account(): boolean {
    const now = performance.now()
    const total = this.#time?.read()
    if (total === undefined) return false
    const passed = now - this.#lookedAt
    const used = total - this.#usedBefore
    this.#lookedAt = now
    this.#usedBefore = total
    const most = Math.max(this.#share * roundMs, minBurstMs)
    const least = -this.#share * longestDebtMs
    this.#left = Math.min(Math.max(this.#left + this.#share * passed - used, least), most)
    if (!this.#isStopped) this.#ran += passed
    this.#usedMeanwhile += used
    if (this.#ran >= roundMs) {
      this.#pace = Math.max(this.#usedMeanwhile / this.#ran, this.#pace * remembered)
      this.#ran = 0
      this.#usedMeanwhile = 0
    }
    return true
  }

  /** Stops it, has it go on, or leaves it as it is; and says when to look again. */
  #look(): void {
    clearTimeout(this.#timer)
    if (!this.#account()) return this.lift()
    const mayRun = this.#left > 0
    if (mayRun === this.#isStopped) {
      this.#isStopped = !mayRun
      signalGroup(this.#leader, mayRun ? 'SIGCONT' : 'SIGSTOP')
    }
    this.#timer = setTimeout(() => this.#look(), Math.ceil(mayRun ? this.#untilUsed() : this.#untilEnough()))
  }

  /** When it could at earliest have used what is left, ms. */
  #untilUsed(): number {
    const excess = this.#pace - this.#share
    // Less than a tick cannot be seen.
    return excess <= 0 ? roundMs : Math.min(Math.max(this.#left, tickMs) / excess, roundMs)
  }

  /** How long a stop lasts that, with the run after it, makes a round. */
  #untilEnough(): number {
    const stop = roundMs * (1 - this.#share / Math.max(this.#pace, this.#share))
    return Math.max(stop, shortestStopMs) - this.#left / this.#share
  }
}
