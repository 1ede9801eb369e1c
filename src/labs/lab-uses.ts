import { ignore } from '../lib/async/ignore.ts'
import { mapLimit } from '../lib/async/map-limit.ts'
import { startTimer } from '../lib/async/pause.ts'
import type { ComputeAgents } from './computes/agents.ts'
import type { LabDocuments } from './documents.ts'
import type { Jobs } from './jobs/jobs.ts'
import type { Lab } from './lab/lab.ts'
import type { LabLifecycle } from './lifecycle.ts'

/** Delay between the end of the last feed or console and the close, ms: a page that reloads is back by then. */
const graceMs = 5000

interface LabUsesOptions {
  readonly documents: LabDocuments
  readonly jobs: Jobs
  readonly lifecycle: LabLifecycle
  /** On behalf of the service itself. */
  readonly agentFor: ComputeAgents
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
      if (this.#options.documents.get(id) !== undefined) this.#closeLater(id)
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
    const { documents, jobs, lifecycle, agentFor, warn } = this.#options
    const lab = documents.get(id)
    if (lab === undefined) return
    const isDue = () => lab.isOpen && lab.document.project.auto_close && !this.#counts.has(id) && !this.#closing.has(id)
    if (!isDue()) return
    const isUsed = jobs.isBusy(id) || (await hasTelnetClients(lab, agentFor))
    // Another feed may have begun and ended meanwhile.
    if (!isDue()) return
    if (isUsed) return this.#closeLater(id)
    const failed = ({ message }: Error) => warn(`The project ${lab.document.project.name} was not closed: ${message}`)
    await lifecycle.close(id, agentFor).catch(failed)
  }

  #cancel(id: string): void {
    this.#closing.get(id)?.()
    this.#closing.delete(id)
  }
}

/** Whether a node of the lab has telnet clients. */
async function hasTelnetClients({ id, document: { project } }: Lab, agentFor: ComputeAgents): Promise<boolean> {
  const none = ignore('a compute that does not answer counts as without clients')
  const found = await mapLimit(project.computes, (computeId) => agentFor(computeId).nodes.telnetClients(id).catch(none))
  return found.some((count) => (count ?? 0) > 0)
}
