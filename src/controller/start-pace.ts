import { onAbort } from '../async/abort.ts'
import { pause } from '../async/pause.ts'

/** A compute measures its load every 2 s. */
const windowMs = 2100
/** Load of the processors at which starts wait, percent. */
const busyPercent = 75
/** Weight of the starts of a window: the first one, and the most. It doubles while the compute has little to do. */
const weights = [16, 512] as const
/** Weight of the starts of a window on a compute that is busy: a machine, or some small programs. */
const busyWeight = 4
/** After this time nothing is known of a compute, ms. */
const staleMs = 60_000
/** Requests at once: of nodes that cost nothing, and of others. */
const freeAtOnce = 32
const costlyAtOnce = 8

/** How much a start costs: 0 for a node within the keeper, 1 for a small program, more for a machine. */
type Weigh = () => number

interface Turn {
  readonly weigh: Weigh
  readonly go: () => void
}

/**
 * When nodes of one compute may be started, over all labs: nodes that cost nothing at once, others as its load allows. On a compute
 * that is busy all the time starts go on slowly.
 */
export class StartPace {
  readonly #load: () => Promise<number>
  readonly #queue = new Set<Turn>()
  #running = 0
  #costly = 0
  /** Weight that may be started in this window, and what every window gets. */
  #credit = 0
  #budget: number = weights[0]
  #measuredAt = Number.NEGATIVE_INFINITY
  #isMeasuring = false

  /** `load`: of the processors, percent. */
  constructor(load: () => Promise<number>) {
    this.#load = load
  }

  /** Resolves when it is the turn of a node, with the function that ends the turn. Rejects when the signal aborts before. */
  turn(weigh: Weigh, signal: AbortSignal): Promise<() => void> {
    return new Promise((resolve, reject) => {
      const turn: Turn = {
        weigh,
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
    // The starts themselves tell that a compute is away.
    const load = await this.#load().catch(() => 0)
    if (age > staleMs) this.#budget = weights[0]
    else if (load >= busyPercent) this.#budget = weights[0]
    else if (load < busyPercent / 2) this.#budget = Math.min(this.#budget * 2, weights[1])
    this.#credit = load < busyPercent ? this.#budget : busyWeight
    this.#measuredAt = performance.now()
    this.#isMeasuring = false
    this.#pump()
  }
}
