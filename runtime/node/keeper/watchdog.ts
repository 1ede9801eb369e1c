import { Worker } from 'node:worker_threads'
import { programArguments } from '../programs/own-program.ts'
import { cell, cells, type EndedTurn, holdFunction, nobody, type WatchdogStart } from './watched-turn.ts'

/** Maximum processor time of a turn, ms. A normal turn takes about 1 ms. */
export const turnLimitMs = 1000
/** How long the main thread waits for the decision of the watchdog, ms. */
const decisionMs = 1000
/** Lines of the stack that do not belong to the turn: the heading, the hold function, and its call expression. */
const linesOfHold = 3

/**
 * Ends a hung turn. A thread watches the processor time of the main thread. If one turn uses more than the limit, the thread has V8
 * terminate the running JavaScript (`Runtime.terminateExecution` of an inspector session inside the process; no port is opened).
 * The event loop then goes on.
 */
export class Watchdog {
  readonly #memory = new Int32Array(new SharedArrayBuffer(cells * Int32Array.BYTES_PER_ELEMENT))
  readonly #ended: (turn: EndedTurn) => void
  #owner = 0
  #isStarted = false

  /** `ended` is called with each turn that the watchdog ended. */
  constructor(ended: (turn: EndedTurn) => void) {
    this.#ended = ended
  }

  /** The owner of the current turn; 0: the process itself, whose turns are never ended. */
  get owner(): number {
    return this.#owner
  }

  /** A turn begins. All following work, microtasks included, belongs to it until the next turn. */
  began(owner: number): void {
    this.#owner = owner
    this.#memory[cell.turn] = (this.#memory[cell.turn] ?? 0) + 1
  }

  /** Starts the thread if necessary. Without the thread only the keeper notices a hung turn. */
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
   * Called by the watchdog in the middle of a turn, on top of its stack. The turn cannot end during the wait, so the watchdog never
   * ends the next turn by mistake.
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
