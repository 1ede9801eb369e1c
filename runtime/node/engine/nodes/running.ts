import type { GuestProcess } from './kind.ts'

interface Running extends GuestProcess {
  readonly run: number
  readonly over: AbortController
  readonly graceSkipper: AbortController
}

/**
 * The processes of running nodes. They record an exit at once, even while an operation holds the lock of the node; the clean-up
 * waits for the lock.
 */
export class RunningProcesses {
  readonly #running = new Map<string, Running>()
  /** Number of the last ended run of a node. The exit event may come before the answer to the start. */
  readonly #ended = new Map<string, number>()
  #keeperDeaths = 0

  /** How often the keeper of this build died. An operation that began in one keeper cannot be finished in another. */
  get keeperDeaths(): number {
    return this.#keeperDeaths
  }

  add(key: string, { run, pid }: { readonly run: number; readonly pid: number }): GuestProcess {
    const [over, graceSkipper] = [new AbortController(), new AbortController()]
    const running = { run, pid, over, graceSkipper, ended: over.signal, skipGracePeriod: graceSkipper.signal }
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

  skipGracePeriod(key: string): void {
    this.#running.get(key)?.graceSkipper.abort()
  }

  forget(key: string): void {
    this.#running.delete(key)
    this.#ended.delete(key)
  }

  /** All units of one keeper ended with it; `isOwn`: the keeper of this build. */
  endAllOf(isHeld: (key: string) => boolean, isOwn: boolean): void {
    if (isOwn) this.#keeperDeaths++
    for (const [key, { over }] of this.#running) if (isHeld(key)) over.abort()
    for (const key of [...this.#ended.keys()]) if (isHeld(key)) this.#ended.delete(key)
  }
}
