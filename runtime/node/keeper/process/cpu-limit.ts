import { performance } from 'node:perf_hooks'
import { ProcessorTime, tickMs } from '../../os/system/processor-time.ts'
import { signalGroup } from '../../os/system/signal-group.ts'
import { KeeperError } from '../protocol/error.ts'

/** Length of a round: one period of running and one of being stopped, ms. */
const roundMs = 100
const shortestStopMs = 5
/** Time beyond its share that a process used is paid back by a stop of at most this length, ms. */
const longestDebtMs = 1000
/** Smallest burst after a pause, ms: the clock is not finer. */
const minBurstMs = 2 * tickMs
/** The pace decays by this factor in every round in which the process was not stopped. */
const paceDecay = 0.98
const maxPercent = 800

/**
 * Limits the processor time of a process by SIGSTOP and SIGCONT to its group (a token bucket). The share flows into an account, and
 * used time is taken from it. When the account is empty, the process is stopped until there is enough for another round. The used
 * time is that of the kernel, so errors do not add up. A process that needs less than its share is never stopped.
 */
export class CpuLimit {
  readonly #pid: number
  readonly #leader: number
  #time: ProcessorTime | undefined
  #timer: NodeJS.Timeout | undefined
  /** Fraction of one processor; 0: no limit. */
  #share = 0
  #isStopped = false
  /** The account: processor time that the process may still use, ms; negative: a debt. */
  #left = 0
  /** Number of processors that the process uses while it runs; sets the time of the next check. */
  #pace = 1
  /** The measurement of the pace: time that the process ran, and processor time that it used, ms. */
  #ran = 0
  #usedMeanwhile = 0
  #checkedAt = 0
  #usedBefore = 0

  /** Measures the process `pid`, and stops the process group of `leader`. */
  constructor(pid: number, leader = pid) {
    this.#pid = pid
    this.#leader = leader
  }

  /** Percent of one processor; 0 lifts the limit. `bad_request`, `unsupported` when the processor time cannot be read. */
  set(percent: number): void {
    if (percent !== 0 && !(Number.isFinite(percent) && percent >= 1 && percent <= maxPercent))
      throw new KeeperError('bad_request', `cpu_percent: expected 0, or 1 to ${maxPercent}`)
    const share = percent / 100
    if (share === this.#share) return
    if (share === 0) return this.lift()
    if (this.#time === undefined) this.#begin()
    else this.#account()
    this.#share = share
    this.#check()
  }

  /** Removes the limit. To be called before the process is reaped, or right after. */
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
    this.#checkedAt = performance.now()
    this.#usedBefore = this.#time.read() ?? 0
    this.#left = minBurstMs
    this.#pace = 1
    this.#ran = 0
    this.#usedMeanwhile = 0
  }

  /** Updates the account; false when the process has ended. */
  #account(): boolean {
    const now = performance.now()
    const total = this.#time?.read()
    if (total === undefined) return false
    const passed = now - this.#checkedAt
    const used = total - this.#usedBefore
    this.#checkedAt = now
    this.#usedBefore = total
    const most = Math.max(this.#share * roundMs, minBurstMs)
    const least = -this.#share * longestDebtMs
    this.#left = Math.min(Math.max(this.#left + this.#share * passed - used, least), most)
    if (!this.#isStopped) this.#ran += passed
    this.#usedMeanwhile += used
    if (this.#ran >= roundMs) {
      this.#pace = Math.max(this.#usedMeanwhile / this.#ran, this.#pace * paceDecay)
      this.#ran = 0
      this.#usedMeanwhile = 0
    }
    return true
  }

  /** Stops or continues the process by its account, and schedules the next check. */
  #check(): void {
    clearTimeout(this.#timer)
    if (!this.#account()) return this.lift()
    const mayRun = this.#left > 0
    if (mayRun === this.#isStopped) {
      this.#isStopped = !mayRun
      signalGroup(this.#leader, mayRun ? 'SIGCONT' : 'SIGSTOP')
    }
    this.#timer = setTimeout(() => this.#check(), Math.ceil(mayRun ? this.#untilUsed() : this.#untilEnough()))
  }

  /** Shortest time in which the process can use up the account, ms. */
  #untilUsed(): number {
    const excess = this.#pace - this.#share
    // The clock does not show less than a tick.
    return excess <= 0 ? roundMs : Math.min(Math.max(this.#left, tickMs) / excess, roundMs)
  }

  /** Length of a stop that makes a round together with the run after it, ms. */
  #untilEnough(): number {
    const stop = roundMs * (1 - this.#share / Math.max(this.#pace, this.#share))
    return Math.max(stop, shortestStopMs) - this.#left / this.#share
  }
}
