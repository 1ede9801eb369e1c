import { Worker } from 'node:worker_threads'
import { programArguments } from '../programs/own-program.ts'
import { cell, cells, type EndedTurn, holdFunction, nobody, type WatchdogStart } from './watched-turn.ts'

/** A turn takes about a millisecond. One that took so much processor time never ends, ms. */
export const turnLimitMs = 1000
/** How long the main thread waits for the decision of the watchdog, ms. */
const decisionMs = 1000
/** The first line of a stack, the function that takes it, and the expression that calls this. */
const linesOfHold = 3

/**
 * Ends a turn that does not end. A thread watches the processor time of the main thread: when it grows by the limit and
 * no other turn begins, the thread has V8 terminate what runs (`Runtime.terminateExecution` of an inspector session inside the
 * process; no port is opened). The event loop then goes on.
 */
export class Watchdog {
  readonly #memory = new Int32Array(new SharedArrayBuffer(cells * Int32Array.BYTES_PER_ELEMENT))
  readonly #ended: (turn: EndedTurn) => void
  #owner = 0
  #isStarted = false

  /** `ended` is told of a turn that was ended. */
  constructor(ended: (turn: EndedTurn) => void) {
    this.#ended = ended
  }

  /** Whose turn it is; 0: that of the process itself, whose turns are not ended. */
  get owner(): number {
    return this.#owner
  }

  /** A turn begins. What follows belongs to it, its microtasks too, until the next one begins. */
  began(owner: number): void {
    this.#owner = owner
    this.#memory[cell.turn] = (this.#memory[cell.turn] ?? 0) + 1
  }

  /** Starts the thread, the first time. Without the thread a turn that does not end is a matter for the keeper. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    Object.defineProperty(globalThis, holdFunction, { value: this.#hold })
    const [program = ''] = programArguments(
      new URL('./watchdog-thread.ts', import.meta.url),
      new URL('./pc-watchdog.js', import.meta.url),
    ).slice(-1)
    const workerData: WatchdogStart = { memory: this.#memory, limitMs: turnLimitMs }
    const failed = (error: unknown) => {
      process.stderr.write(`embedded pcs have no watchdog: ${(error as Error).message}\n`)
    }
    try {
      const resourceLimits = { maxYoungGenerationSizeMb: 1, codeRangeSizeMb: 1 }
      const worker = new Worker(program, { workerData, resourceLimits })
      worker.on('message', this.#ended)
      worker.on('error', failed)
      worker.unref()
    } catch (error) {
      failed(error)
    }
  }

  /**
   * Called by the watchdog in the middle of a turn, on top of its stack. While it waits, the turn cannot end by itself: so the
   * watchdog ends this one and never the next.
   */
  readonly #hold = (): string => {
    const stack = (new Error().stack ?? '').split('\n').slice(linesOfHold)
    const memory = this.#memory
    Atomics.store(memory, cell.held, stack.length === 0 || this.#owner === 0 ? nobody : this.#owner)
    Atomics.notify(memory, cell.held)
    Atomics.wait(memory, cell.released, 0, decisionMs)
    return stack.join('\n')
  }
}
