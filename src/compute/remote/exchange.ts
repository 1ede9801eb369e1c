import { abortable, onAbort } from '../../lib/async/abort.ts'
import { pause } from '../../lib/async/pause.ts'

/** Why this side ended an exchange. */
export type ExchangeEnd = 'late' | 'cancelled'

/** One request and its answer. The signal of the caller ends it, or a timeout. */
export class Exchange {
  readonly #over = new AbortController()
  readonly #caller: AbortSignal | undefined
  #forget = () => {}
  #timer: ReturnType<typeof setTimeout> | undefined
  #ending: ExchangeEnd | undefined
  #bound = 0
  #isSlow = false
  #isOver = false

  constructor(caller: AbortSignal | undefined) {
    this.#caller = caller
    this.#forget = onAbort(caller, () => this.abort('cancelled'))
  }

  get signal(): AbortSignal {
    return this.#over.signal
  }

  get ending(): ExchangeEnd | undefined {
    return this.#ending
  }

  /** The reason of the caller's signal. */
  get reason(): unknown {
    return this.#caller?.reason
  }

  /** The last timeout, ms. */
  get bound(): number {
    return this.#bound
  }

  /** Whether the last timeout was shortened because the body was slow before. */
  get isSlow(): boolean {
    return this.#isSlow
  }

  /** Starts a new timeout, ms; undefined: none. `isSlow`: it is shorter because the body was slow before. */
  within(ms: number | undefined, isSlow = false): void {
    clearTimeout(this.#timer)
    if (ms === undefined || this.#isOver) return
    this.#bound = ms
    this.#isSlow = isSlow
    this.#timer = setTimeout(() => this.abort('late'), ms)
  }

  /** The result; rejects when the exchange ends first, even if a transport ignores the signal. */
  until<T>(result: Promise<T>): Promise<T> {
    return abortable(result, this.signal)
  }

  /** Resolves after `ms`, or at the end of the exchange. */
  async pause(ms: number): Promise<void> {
    await pause(ms, this.signal)
  }

  /** Ends the request and the body of its answer. */
  abort(ending: ExchangeEnd = 'cancelled'): void {
    this.#ending ??= ending
    this.#over.abort()
    this.release()
  }

  /** Ends the timeout and the listening to the caller's signal. */
  release(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#forget()
  }
}
