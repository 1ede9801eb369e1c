import { startTimer } from '../async/pause.ts'
import type { Lab } from './lab.ts'

/** Time after the last feed or console before a lab with `auto_close` is closed, ms: a page that is loaded again is back by then. */
const graceMs = 5000

interface LabUsesOptions {
  /** Whether a job of the lab runs. */
  readonly isBusy: (lab: Lab) => boolean
  /** Whether a node of the lab has telnet clients. */
  readonly hasTelnet: (lab: Lab) => Promise<boolean>
  readonly close: (lab: Lab) => Promise<void>
  readonly warn: (message: string) => void
}

/**
 * Counts the open feeds and consoles of labs. A lab with `auto_close` is closed some seconds after the last of them has gone, unless
 * telnet clients stay: these are counted by the computes, which are asked then.
 */
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
    const cancel = startTimer(() => {
      this.#closing.delete(lab)
      void this.#closeUnlessUsed(lab)
    }, graceMs)
    this.#closing.set(lab, cancel)
  }

  async #closeUnlessUsed(lab: Lab): Promise<void> {
    const { isBusy, hasTelnet, close, warn } = this.#options
    const isDue = () =>
      lab.isOpen && lab.document.project.auto_close && !this.#counts.has(lab) && !this.#closing.has(lab)
    if (!isDue()) return
    const isUsed = isBusy(lab) || (await hasTelnet(lab))
    // It may have been used, and left again, meanwhile.
    if (!isDue()) return
    if (isUsed) return this.#closeLater(lab)
    const failed = ({ message }: Error) => warn(`The project ${lab.document.project.name} was not closed: ${message}`)
    await close(lab).catch(failed)
  }

  #cancel(lab: Lab): void {
    this.#closing.get(lab)?.()
    this.#closing.delete(lab)
  }
}
