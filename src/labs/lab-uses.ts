import { startTimer } from '../lib/async/pause.ts'
import type { Lab } from './lab/lab.ts'

/** Delay between the end of the last feed or console and the close, ms: a page that reloads is back by then. */
const graceMs = 5000

interface LabUsesOptions {
  /** An open lab; undefined for a closed one. */
  readonly openLab: (id: string) => Lab | undefined
  /** Whether a job of the lab runs. */
  readonly isBusy: (lab: Lab) => boolean
  /** Whether a node of the lab has telnet clients. */
  readonly hasTelnet: (lab: Lab) => Promise<boolean>
  readonly close: (lab: Lab) => Promise<void>
  readonly warn: (message: string) => void
}

/**
 * Counts the open feeds and consoles of labs. A lab with `auto_close` is closed some seconds after the end of the last one, unless its
 * computes count telnet clients. A feed counts also after the lab was closed and opened again, so labs are counted by id.
 */
export class LabUses {
  readonly #options: LabUsesOptions
  readonly #counts = new Map<string, number>()
  /** Cancels the pending close of a lab. */
  readonly #closing = new Map<string, () => void>()

  constructor(options: LabUsesOptions) {
    this.#options = options
  }

  /** Counts a feed or console; the returned function ends it. */
  begin(id: string): () => void {
    this.#cancel(id)
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1)
    let isOver = false
    return () => {
      if (isOver) return
      isOver = true
      const left = (this.#counts.get(id) ?? 1) - 1
      if (left > 0) return void this.#counts.set(id, left)
      this.#counts.delete(id)
      if (this.#options.openLab(id) !== undefined) this.#closeLater(id)
    }
  }

  /** Cancels all pending closes. */
  end(): void {
    for (const id of this.#closing.keys()) this.#cancel(id)
  }

  #closeLater(id: string): void {
    const cancel = startTimer(() => {
      this.#closing.delete(id)
      void this.#closeUnlessUsed(id)
    }, graceMs)
    this.#closing.set(id, cancel)
  }

  async #closeUnlessUsed(id: string): Promise<void> {
    const { openLab, isBusy, hasTelnet, close, warn } = this.#options
    const lab = openLab(id)
    if (lab === undefined) return
    const isDue = () => lab.isOpen && lab.document.project.auto_close && !this.#counts.has(id) && !this.#closing.has(id)
    if (!isDue()) return
    const isUsed = isBusy(lab) || (await hasTelnet(lab))
    // Another feed may have begun and ended meanwhile.
    if (!isDue()) return
    if (isUsed) return this.#closeLater(id)
    const failed = ({ message }: Error) => warn(`The project ${lab.document.project.name} was not closed: ${message}`)
    await close(lab).catch(failed)
  }

  #cancel(id: string): void {
    this.#closing.get(id)?.()
    this.#closing.delete(id)
  }
}
