import { startTimer } from '../async/pause.ts'
import type { Lab } from './lab.ts'

/** Time after the last feed or console before a lab with `auto_close` is closed, ms: a page that is loaded again is back by then. */
const graceMs = 5000

interface LabUsesOptions {
  /** Whether a job of the lab runs. */
  readonly isBusy: (lab: Lab) => boolean
  readonly close: (lab: Lab) => Promise<void>
  readonly warn: (message: string) => void
}

/** Counts the open feeds and consoles of labs. A lab with `auto_close` is closed some seconds after the last of them has gone. */
export class LabUses {
  readonly #options: LabUsesOptions
  readonly #counts = new Map<Lab, number>()
  /** What cancels the closing of a lab. */
  readonly #closing = new Map<Lab, () => void>()

  constructor(options: LabUsesOptions) {
    this.#options = options
  }

  /** A feed or console is opened; the result says that it has gone. */
  begin(lab: Lab): () => void {
    this.#cancel(lab)
    this.#counts.set(lab, (this.#counts.get(lab) ?? 0) + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const left = (this.#counts.get(lab) ?? 1) - 1
      if (left > 0) return void this.#counts.set(lab, left)
      this.#counts.delete(lab)
      if (lab.isOpen) this.#closeLater(lab)
    }
  }

  /** No lab is closed any more. */
  end(): void {
    for (const lab of this.#closing.keys()) this.#cancel(lab)
  }

  #closeLater(lab: Lab): void {
    const { isBusy, close, warn } = this.#options
    const cancel = startTimer(() => {
      this.#closing.delete(lab)
      if (!lab.isOpen || !lab.document.project.auto_close || this.#counts.has(lab)) return
      if (isBusy(lab)) return this.#closeLater(lab)
      const failed = ({ message }: Error) => warn(`The project ${lab.document.project.name} was not closed: ${message}`)
      close(lab).catch(failed)
    }, graceMs)
    this.#closing.set(lab, cancel)
  }

  #cancel(lab: Lab): void {
    this.#closing.get(lab)?.()
    this.#closing.delete(lab)
  }
}
