/** A wait for a `SharedTimer`. */
export interface SharedWait {
  /** Resolves when the timer fires. */
  readonly fired: Promise<void>
  cancel(): void
}

/**
 * One timer for all that wait: it fires for all of them at once, at most `ms` after the first has begun. In workerd a timer of its own is a
 * fiftieth of the processor time of a small request. A promise that another request resolves continues with the request that made it there
 * (compatibility flag `handle_cross_request_promise_resolution`, on since 2024-10-14).
 */
export class SharedTimer {
  readonly #ms: number
  readonly #waitUntil: (work: Promise<unknown>) => void
  readonly #waiting = new Set<() => void>()
  /** ms since 1970; a timer whose request was ended nevertheless is made again. */
  #firesAt = 0

  /** `waitUntil` keeps what belongs to the present request, such as the timer, after its answer. */
  constructor(ms: number, waitUntil: (work: Promise<unknown>) => void) {
    this.#ms = ms
    this.#waitUntil = waitUntil
  }

  wait(): SharedWait {
    const now = Date.now()
    // Less than a second late it may still fire.
    if (now > this.#firesAt + 1000) {
      this.#firesAt = now + this.#ms
      this.#waitUntil(new Promise<void>((resolve) => setTimeout(() => resolve(this.#fire()), this.#ms)))
    }
    let fire = () => {}
    const fired = new Promise<void>((resolve) => {
      fire = resolve
    })
    this.#waiting.add(fire)
    return { fired, cancel: () => void this.#waiting.delete(fire) }
  }

  #fire(): void {
    this.#firesAt = 0
    const waiting = [...this.#waiting]
    this.#waiting.clear()
    for (const fire of waiting) fire()
  }
}
