import { ApiError } from '../errors/api-error.ts'
import { Buckets } from './buckets.ts'

/** How many credentials are remembered; the one that was used longest ago is forgotten first. */
const maxCredentials = 5000

export interface RequestRate {
  /** Requests a second, in the long run; 0: no limit. */
  readonly perSecond: number
  /** Requests at once, after a time without any. */
  readonly burst: number
}

/** Bounds the requests of every credential by itself: a bucket of tokens each, in the memory of this process. */
export class RateLimit {
  readonly #rate: () => RequestRate
  readonly #buckets: Buckets

  /** `rate` is asked for every request. */
  constructor(rate: () => RequestRate, now: () => number = Date.now) {
    this.#rate = rate
    this.#buckets = new Buckets(maxCredentials, now)
  }

  /** Counts a request of the credential; 429 when there were too many. An empty key is not counted. */
  take(key: string): void {
    const { perSecond, burst } = this.#rate()
    if (perSecond <= 0 || key === '') return
    const rate = { perSecond, burst: Math.max(burst, 1) }
    if (this.#buckets.take(key, rate)) return
    const seconds = this.#buckets.wait(key, rate)
    throw new ApiError(429, `Too many requests: these credentials may send ${perSecond} a second; wait ${seconds} s`, {
      headers: { 'Retry-After': String(seconds) },
    })
  }
}
