import type { GuestProcess } from '../kinds/kind.ts'

interface Running extends GuestProcess {
  readonly run: number
  readonly over: AbortController
  readonly expedite: AbortController
}

/**
 * The processes of nodes that run. That one has ended is known here at once, also while an operation on the node waits for it;
 * the clean-up has its turn later.
 */
export class RunningProcesses {
  readonly #running = new Map<string, Running>()
  /** Number of the last run of a node that has ended: the news of it may come before the answer to its start. */
  readonly #ended = new Map<string, number>()
  #losses = 0

  /** How often the keeper died that starts nodes: what was begun with one cannot be ended with another. */
  get losses(): number {
    return this.#losses
  }

  add(key: string, { run, pid }: { readonly run: number; readonly pid: number }): GuestProcess {
    const [over, expedite] = [new AbortController(), new AbortController()]
    const running = { run, pid, over, expedite, ended: over.signal, expedited: expedite.signal }
    this.#running.set(key, running)
    if (this.#ended.get(key) === run) over.abort()
    return running
  }

  get(key: string): GuestProcess | undefined {
    return this.#running.get(key)
  }

  end(key: string, run: number): void {
    this.#ended.set(key, run)
    const running = this.#running.get(key)
    if (running?.run === run) running.over.abort()
  }

  expedite(key: string): void {
    this.#running.get(key)?.expedite.abort()
  }

  forget(key: string): void {
    this.#running.delete(key)
    this.#ended.delete(key)
  }

  /** All of one keeper ended at once, with it; `isOwn`: it is the one that starts nodes. */
  lost(isHeld: (key: string) => boolean, isOwn: boolean): void {
    if (isOwn) this.#losses++
    for (const [key, { over }] of this.#running) if (isHeld(key)) over.abort()
    for (const key of [...this.#ended.keys()]) if (isHeld(key)) this.#ended.delete(key)
  }
}
