import type { Session } from 'node:inspector'

/** Maximum processor time of a turn, ms. A normal turn takes about 1 ms. */
export const turnLimitMs = 1000
/** Name of the global function that the keeper evaluates, see `HangDetector`. */
export const lookFunction = 'patchbayEndHungTurn'
/** Lines of the stack that do not belong to the turn: the heading, the function itself, and its call expression. */
const linesOfLook = 3

/** A turn that was terminated, with the stack of that moment. */
export interface EndedTurn {
  readonly owner: number
  readonly stack: string
}

/**
 * Ends a hung turn. While the process does not answer, the keeper has the inspector evaluate `look` in the middle of the turn. If the
 * turn uses more processor time than the limit, V8 terminates the running JavaScript. The event loop then goes on.
 */
export class Watchdog {
  /** The owner of the current turn; 0: the process itself, whose turns are never ended. */
  #owner = 0
  #turn = 0
  #suspect: { readonly turn: number; readonly usedMs: number } | undefined
  #ended: EndedTurn | undefined
  #session: Session | undefined

  constructor() {
    Object.defineProperty(globalThis, lookFunction, { value: this.#look })
  }

  get owner(): number {
    return this.#owner
  }

  /** A turn begins. All following work, microtasks included, belongs to it until the next turn. */
  began(owner: number): void {
    this.#owner = owner
    this.#turn = (this.#turn + 1) | 0
  }

  /** Closes the inspector if it is open. Returns the turn that was terminated since the last call. */
  settle(): EndedTurn | undefined {
    const ended = this.#ended
    this.#ended = undefined
    this.#suspect = undefined
    this.#session?.disconnect()
    this.#session = undefined
    const inspector = process.getBuiltinModule('node:inspector')
    if (inspector.url() !== undefined) inspector.close()
    return ended
  }

  /** `usedMs`: the processor time of the main thread so far. Nothing else runs between the check of the turn and its end. */
  readonly #look = (usedMs: number): void => {
    const turn = this.#turn
    if (this.#suspect?.turn !== turn) this.#suspect = { turn, usedMs }
    if (usedMs - this.#suspect.usedMs < turnLimitMs) return
    const stack = (new Error().stack ?? '').split('\n').slice(linesOfLook)
    // With an empty stack the event loop is idle.
    if (stack.length === 0 || this.#owner === 0) return
    this.#suspect = undefined
    this.#ended = { owner: this.#owner, stack: stack.join('\n') }
    const { Session } = process.getBuiltinModule('node:inspector')
    this.#session = new Session()
    this.#session.connect()
    this.#session.post('Runtime.terminateExecution')
  }
}
