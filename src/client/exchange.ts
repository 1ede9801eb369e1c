import { abortable, onAbort } from '../async/abort.ts'
import { pause } from '../async/pause.ts'

/** Why an exchange was ended by ourselves. */
export type ExchangeEnd = 'late' | 'cancelled'

/** One request and its answer: ended by the caller's signal, or when what is waited for takes too long. */
export class Exchange {
  readonly #over = new AbortController()
  readonly #caller: AbortSignal | undefined
  #forget = () => {}
  #timer: ReturnType<typeof setTimeout> | undefined
  #ending: ExchangeEnd | undefined
  #bound = 0
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

  /** What the caller gave as the reason. */
  get reason(): unknown {
    return this.#caller?.reason
  }

  /** The time that was given last, ms. */
  get bound(): number {
    return this.#bound
  }

  /** From now on it may take this long, ms; undefined: as long as it likes. */
  within(ms: number | undefined): void {
    clearTimeout(this.#timer)
    if (ms === undefined || this.#isOver) return
    this.#bound = ms
    this.#timer = setTimeout(() => this.abort('late'), ms)
  }

  /** The result; rejects when the exchange is ended first, also where a transport does not look at the signal. */
  until<T>(result: Promise<T>): Promise<T> {
    return abortable(result, this.signal)
  }

  /** Resolves after this time, ms, or with the end. */
  async pause(ms: number): Promise<void> {
    await pause(ms, this.signal)
  }

  /** Ends what is under way. */
  abort(ending: ExchangeEnd = 'cancelled'): void {
    this.#ending ??= ending
    this.#over.abort()
    this.release()
  }

  /** Nothing is waited for any more. */
  release(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
    this.#forget()
  }
}
