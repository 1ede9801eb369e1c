import { onAbort } from '../../lib/async/abort.ts'
import { pause } from '../../lib/async/pause.ts'

/** Length of a window, ms: a compute measures its load every 2 s. */
const windowMs = 2100
/** CPU load from which starts wait, percent. */
const busyPercent = 75
/** Budget of a window, as the sum of weights: the first one, and the largest. It doubles while the load is low. */
const budgets = [16, 512] as const
/** Budget of a window on a busy compute: one machine, or 4 small programs. */
const busyBudget = 4
/** Age of a measurement after which the budget starts at its first value again, ms. */
const staleMs = 60_000
/** Concurrent start requests: all, and those of nodes with a weight. */
const freeAtOnce = 32
const costlyAtOnce = 8

/** The weight of a start: 0 for a node within the keeper, 1 for a small program, more for a machine. */
type Weigh = () => number

interface Turn {
  readonly weigh: Weigh
  /** CPU load from which it waits, percent. */
  readonly busyPercent: number
  readonly go: () => void
}

/**
 * Decides when nodes of one compute may start, over all labs: nodes without weight at once, others as its load allows. On a compute
 * that stays busy, starts go on slowly.
 */
export class StartPace {
  readonly #load: () => Promise<number>
  readonly #queue = new Set<Turn>()
  #running = 0
  #costly = 0
  /** What is left of the budget of this window, and the budget of a window. */
  #credit = 0
  #budget: number = budgets[0]
  #measuredAt = Number.NEGATIVE_INFINITY
  #isMeasuring = false

  /** `load`: measures the CPU load, percent. */
  constructor(load: () => Promise<number>) {
    this.#load = load
  }

  /** Resolves when a node may start, with the function to call after its start request. Rejects when the signal aborts. */
  turn(weigh: Weigh, signal: AbortSignal, loadBelow = busyPercent): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        weigh,
        busyPercent: loadBelow,
        go: () => {
          forget()
          const isCostly = weigh() > 0
          this.#running += 1
          if (isCostly) this.#costly += 1
          resolve(() => {
            this.#running -= 1
            if (isCostly) this.#costly -= 1
            this.#pump()
          })
        },
      }
      this.#queue.add(turn)
      const forget = onAbort(signal, () => {
        this.#queue.delete(turn)
        reject(signal.reason)
      })
      this.#pump()
    })
  }

  #pump(): void {
    let isWaiting = false
    for (const turn of this.#queue) {
      if (this.#running >= freeAtOnce) return
      const weight = turn.weigh()
      if (weight > 0 && this.#costly >= costlyAtOnce) continue
      if (weight > 0 && (this.#credit < weight || performance.now() - this.#measuredAt > windowMs)) {
        isWaiting = true
        continue
      }
      this.#credit -= weight
      this.#queue.delete(turn)
      turn.go()
    }
    if (isWaiting && !this.#isMeasuring) void this.#measure()
  }

  async #measure(): Promise<void> {
    this.#isMeasuring = true
    const age = performance.now() - this.#measuredAt
    if (age < windowMs) await pause(windowMs - age, new AbortController().signal)
    // A compute that does not answer fails the starts themselves.
    const load = await this.#load().catch(() => 0)
    // The strictest of those that wait decides.
    const busy = Math.min(...[...this.#queue].map((turn) => turn.busyPercent), 100)
    if (age > staleMs || load >= busy) this.#budget = budgets[0]
    else if (load < busy / 2) this.#budget = Math.min(this.#budget * 2, budgets[1])
    this.#credit = load < busy ? this.#budget : busyBudget
    this.#measuredAt = performance.now()
    this.#isMeasuring = false
    this.#pump()
  }
}
