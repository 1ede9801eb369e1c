import type { TerminalSize } from '../model/schema/console-size.ts'
import { mostCells } from '../model/schema/most-cells.ts'

/** Between two sizes, ms: while a window is dragged they change all the time. */
const spacingMs = 100

/** After a refusal because of too many requests (429): the time until the size is passed on again, ms, and how often that may be. */
const [laterMs, maxRefusals] = [1000, 5]

/** Tells a console its size; false: it has none, and is told no more. */
export type ResizeConsole = (size: TerminalSize) => Promise<boolean>

/** The size of a terminal, for the console that it shows: one after the other is passed on, of those that come meanwhile the last one. */
export class TerminalSizes {
  #size: TerminalSize | undefined
  #passed: TerminalSize | undefined
  #resize: ResizeConsole | undefined
  #isPassing = false

  /** The terminal has this size now; 0: it does not say it. */
  set(columns: number, rows: number): void {
    if (columns < 1 || rows < 1) return
    this.#size = { columns: Math.min(columns, mostCells), rows: Math.min(rows, mostCells) }
    void this.#passOn()
  }

  /** Shows a console, which gets the size now and when it changes. `resize` may reject: but for a 429 the console is then told no more, either. */
  show(resize: ResizeConsole | undefined): void {
    this.#resize = resize
    this.#passed = undefined
    void this.#passOn()
  }

  async #passOn(): Promise<void> {
    if (this.#isPassing) return
    this.#isPassing = true
    let refusals = 0
    while (this.#resize !== undefined && this.#size !== undefined && this.#size !== this.#passed) {
      const resize = this.#resize
      this.#passed = this.#size
      const answer = await resize(this.#size).catch(refusalOf)
      const isLater = answer === 'later' && ++refusals <= maxRefusals
      if (isLater) this.#passed = undefined
      else if (answer !== true && this.#resize === resize) this.#resize = undefined
      await new Promise((resolve) => setTimeout(resolve, isLater ? laterMs : spacingMs))
    }
    this.#isPassing = false
  }
}

const refusalOf = ({ status }: { readonly status?: unknown }): 'later' | false => (status === 429 ? 'later' : false)
