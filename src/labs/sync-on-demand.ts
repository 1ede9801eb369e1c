import { pause } from '../lib/async/pause.ts'
import type { Lab } from './lab/lab.ts'
import { ComputeSync } from './sync.ts'

/** Age of node states at which a lab without a feed reads them again, ms. */
const freshMs = 1000
/** Time between two checks whether the feed of the lab has readers, ms. */
const readersMs = 5000

/** Reads the feeds of the computes of the only lab while its own feed has readers: otherwise this process can sleep. */
export class SyncOnDemand extends ComputeSync {
  /** When the nodes of the lab were read, ms since 1970. */
  #readAt = 0
  /** The lab, while its computes are followed. */
  #attended: Lab | undefined

  override computeAdded(computeId: string): void {
    if (this.#attended !== undefined) super.computeAdded(computeId)
  }

  protected override feedOpened(lab: Lab): void {
    if (this.#attended === undefined) void this.#attend(lab)
  }

  override async beforeRead(lab: Lab): Promise<void> {
    if (this.#attended === undefined && Date.now() - this.#readAt > freshMs) await this.#readAgain(lab)
  }

  override nodesRead(): void {
    this.#readAt = Date.now()
  }

  protected override follow(lab: Lab): void {
    if (this.events.hasReaders(lab.id)) void this.#attend(lab)
  }

  async #attend(lab: Lab): Promise<void> {
    this.#attended = lab
    const over = new AbortController()
    const signal = AbortSignal.any([over.signal, lab.closing.signal])
    super.follow(lab, signal)
    await this.#readAgain(lab)
    while (!signal.aborted && this.events.hasReaders(lab.id)) await pause(readersMs, signal)
    over.abort()
    // The lab was closed and opened again meanwhile: it is attended as another object.
    if (this.#attended !== lab) return
    this.watch.close()
    this.#attended = undefined
  }

  async #readAgain(lab: Lab): Promise<void> {
    this.#readAt = Date.now()
    const { agentFor } = this
    const { computes } = lab.document.project
    await this.refresh(lab, computes, agentFor)
    await this.recordReason(lab)
    const hasEnded = [...lab.lastRunning].some((id) => lab.reported.get(id)?.status === 'stopped')
    if (hasEnded) await this.autoStart.startAfterReboot(lab, computes, agentFor)
    for (const shown of lab.reported.values()) this.autoStart.trackRunning(lab, shown)
  }
}
