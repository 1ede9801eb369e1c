import { ApiError } from '../errors.ts'

/** How many credentials are remembered; the one that was used longest ago is forgotten first. */
const mostBuckets = 5000

export interface Rate {
  /** Requests a second, in the long run; 0: no limit. */
  readonly perSecond: number
  /** Requests at once, after a time without any. */
  readonly burst: number
}

/** Bounds the requests of every credential by itself: a bucket of tokens each, in the memory of this process. */
export class RateLimit {
  readonly #rate: () => Rate
  readonly #now: () => number
  readonly #buckets = new Map<string, { left: number; at: number }>()

  /** `rate` is asked for every request. */
  constructor(rate: () => Rate, now: () => number = Date.now) {
    this.#rate = rate
    this.#now = now
  }

  /** Counts a request of the credential; 429 when there were too many. An empty key is not counted. */
  take(key: string): void {
    const { perSecond, burst } = this.#rate()
    if (perSecond <= 0 || key === '') return
    const most = Math.max(burst, 1)
    const now = this.#now()
    const bucket = this.#buckets.get(key) ?? { left: most, at: now }
    // A clock that was set back gives nothing, and takes nothing.
    const left = Math.min(most, bucket.left + (Math.max(0, now - bucket.at) * perSecond) / 1000)
    const isOver = left < 1
    this.#keep(key, { left: isOver ? left : left - 1, at: now })
    if (!isOver) return
    const seconds = Math.max(1, Math.ceil((1 - left) / perSecond))
    throw new ApiError(429, `Too many requests: these credentials may send ${perSecond} a second; wait ${seconds} s`, {
      headers: { 'Retry-After': String(seconds) },
    })
  }

  #keep(key: string, bucket: { left: number; at: number }): void {
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= mostBuckets) break
      this.#buckets.delete(oldest)
    }
  }
}
