import { startTimer } from '../async/pause.ts'
import type { Lab } from './lab.ts'

/** Delay between the end of the last feed or console and the close, ms: a page that reloads is back by then. */
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
 * Counts the open feeds and consoles of labs. A lab with `auto_close` is closed some seconds after the end of the last one, unless its
 * computes count telnet clients.
 */
export class LabUses {
  readonly #options: LabUsesOptions
  readonly #counts = new Map<Lab, number>()
  /** Cancels the pending close of a lab. */
  readonly #closing = new Map<Lab, () => void>()

  constructor(options: LabUsesOptions) {
    this.#options = options
  }

  /** Counts a feed or console; the returned function ends it. */
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

  /** Cancels all pending closes. */
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
    // Another feed may have begun and ended meanwhile.
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
