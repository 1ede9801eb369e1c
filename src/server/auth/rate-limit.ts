import { Buckets } from '../../lib/async/buckets.ts'
import { retryLater } from '../../lib/errors/api-error.ts'

/** Most credentials with a bucket; above it the least recently used bucket goes. */
const maxCredentials = 5000

export interface RequestRate {
  /** Requests a second on average; 0: no limit. */
  readonly perSecond: number
  /** Requests at once after a pause. */
  readonly burst: number
}

/** Limits the requests of each credential, or other key, by a token bucket in the memory of this process. */
export class RateLimit {
  readonly #rate: (key: string) => RequestRate
  readonly #buckets: Buckets
  readonly #whose: (key: string) => string

  /** `rate` is read for every request; `whose`: the subject of the message. */
  constructor(
    rate: (key: string) => RequestRate,
    now: () => number = Date.now,
    whose: (key: string) => string = () => 'these credentials',
  ) {
    this.#whose = whose
    this.#rate = rate
    this.#buckets = new Buckets(maxCredentials, now)
  }

  /** Counts a request of the credential; 429 above the limit. An empty key has no limit. */
  consume(key: string): void {
    const { perSecond, burst } = this.#rate(key)
    if (perSecond <= 0 || key === '') return
    const rate = { perSecond, burst: Math.max(burst, 1) }
    if (this.#buckets.consume(key, rate)) return
    const seconds = this.#buckets.wait(key, rate)
    const message = `Too many requests: ${this.#whose(key)} may send ${perSecond} a second; wait ${seconds} s`
    throw retryLater(429, message, seconds)
  }
}
