import { type StartTimer, startTimer } from '../../../src/lib/async/pause.ts'

/** Bytes that may wait for the terminal before the reader pauses. */
const maxWaiting = 256 * 1024
/**
 * A terminal that is not shown takes its output in pieces, ms. xterm draws all rows of a terminal after output that scrolls, shown or not:
 * ten busy consoles behind another one would be drawn with each picture of the page.
 */
const hiddenMs = 250

/** Takes a piece of output, and calls `taken` when it has. */
export type OutputSink = (data: Uint8Array, taken: () => void) => void

/** The output of a node on its way into a terminal. */
export class HeldOutput {
  #isShown = true
  #waiting = 0
  #held: { readonly data: Uint8Array; readonly taken: () => void }[] = []
  #cancel: (() => void) | undefined
  readonly #sink: OutputSink
  readonly #timer: StartTimer

  constructor(sink: OutputSink, timer: StartTimer = startTimer) {
    this.#sink = sink
    this.#timer = timer
  }

  /** Resolves when there is room for more. */
  write(data: Uint8Array): Promise<void> {
    this.#waiting += data.length
    const hasRoom = this.#waiting < maxWaiting
    return new Promise((resolve) => {
      const taken = () => {
        this.#waiting -= data.length
        if (!hasRoom) resolve()
      }
      this.#held.push({ data, taken })
      if (this.#isShown) this.flush()
      else this.#cancel ??= this.#timer(() => this.flush(), hiddenMs)
      if (hasRoom) resolve()
    })
  }

  /** Says whether the terminal can be seen. */
  setShown(isShown: boolean): void {
    this.#isShown = isShown
    if (isShown) this.flush()
  }

  /** Gives the terminal all that has come. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const held = this.#held
    this.#held = []
    for (const { data, taken } of held) this.#sink(data, taken)
  }

  /** Drops the output that waits. */
  close(): void {
    this.#cancel?.()
    this.#held = []
  }
}
