import { ignore } from '../../lib/async/ignore.ts'
import { pause } from '../../lib/async/pause.ts'
import type { NumberedEvent } from '../../model/event.ts'
import { FeedLimit } from '../../model/feed-limit.ts'
import type { ComputePool } from './compute-pool.ts'

/** Least and longest backoff between two attempts to open the feed of a compute, ms. */
const retryMs = [200, 10_000] as const

interface Listener {
  /** An event of a project on a compute. */
  readonly item: (computeId: string, event: NumberedEvent) => void
  /** Events of a compute may have been missed: read its nodes again. */
  readonly refresh: (computeId: string) => Promise<void>
  /** A compute stopped answering. When it answers again, `refresh` follows. */
  readonly lost: (computeId: string, error: Error) => void
}

/** Reads the feeds of the computes of open labs. A feed that breaks off is opened again at its last event. */
export class ComputeWatch {
  readonly #computes: ComputePool
  readonly #listener: Listener
  readonly #projectId: string | undefined
  readonly #feeds = new Map<string, AbortController>()

  /** `projectId`: read the events of this project only. */
  constructor(computes: ComputePool, listener: Listener, projectId?: string) {
    this.#computes = computes
    this.#listener = listener
    this.#projectId = projectId
  }

  add(computeId: string): void {
    if (this.#feeds.has(computeId)) return
    const over = new AbortController()
    this.#feeds.set(computeId, over)
    void this.#run(computeId, over.signal)
  }

  /** Ends the feeds of all other computes. */
  keep(computes: ReadonlySet<string>): void {
    for (const [computeId, over] of this.#feeds) {
      if (computes.has(computeId)) continue
      this.#feeds.delete(computeId)
      over.abort()
    }
  }

  close(): void {
    this.keep(new Set())
  }

  async #run(computeId: string, signal: AbortSignal): Promise<void> {
    let since: number | undefined
    let wait: number = retryMs[0]
    let isFirst = true
    let isLost = false
    const limit = new FeedLimit()
    while (!signal.aborted) {
      let isOpening = true
      try {
        const { events } = this.#computes.agent(computeId)
        const feed = await events.open({
          limit,
          signal,
          ...(this.#projectId !== undefined && { projectId: this.#projectId }),
          ...(since !== undefined && { since }),
        })
        isOpening = false
        // The first feed needs no refresh: opening the lab reads the nodes.
        if (isLost || (!isFirst && since === undefined)) {
          await limit.gap(signal)
          await this.#refresh(computeId)
        }
        isFirst = false
        isLost = false
        const reader = feed.getReader()
        for (;;) {
          const { done, value } = await reader.read()
          if (done) break
          wait = retryMs[0]
          if (value.kind === 'event') this.#listener.item(computeId, value.event)
          if (value.kind === 'dropped' || value.kind === 'resync') await this.#refresh(computeId)
          if (value.kind === 'event') since = value.event.seq
          else if ('seq' in value) since = value.seq
        }
      } catch (error) {
        // The loop opens the feed again.
        if (isOpening && !isLost && !signal.aborted) {
          isLost = true
          this.#listener.lost(computeId, error as Error)
        }
      }
      await pause(wait, signal)
      wait = Math.min(wait * 2, retryMs[1])
    }
  }

  async #refresh(computeId: string): Promise<void> {
    await this.#listener.refresh(computeId).catch(ignore('the next event or feed brings the present state'))
  }
}
