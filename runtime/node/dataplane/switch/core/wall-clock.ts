const resyncMs = 1000
const toleratedMs = 5

/** Wall-clock time in microseconds that ignores small backward corrections of the system clock. */
export class WallClock {
  seconds = 0
  micros = 0
  #offset = Date.now() - performance.now()
  #syncedAt = 0

  /** Sets both fields to the time of `now` (performance.now(), ms). */
  set(now: number): void {
    if (now - this.#syncedAt > resyncMs) {
      const offset = Date.now() - performance.now()
      if (Math.abs(offset - this.#offset) > toleratedMs) this.#offset = offset
      this.#syncedAt = now
    }
    const micros = Math.floor((now + this.#offset) * 1000)
    this.seconds = Math.floor(micros / 1_000_000)
    this.micros = micros - this.seconds * 1_000_000
  }
}
