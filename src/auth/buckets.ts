/** How fast a bucket fills. */
export interface BucketRate {
  /** In the long run; above 0. */
  readonly perSecond: number
  /** At once, after a time without any; at least 1. */
  readonly burst: number
}

/** Token buckets by key, in the memory of this process. Of more than `maxKeys` the one used longest ago is forgotten. */
export class Buckets {
  readonly #maxKeys: number
  readonly #now: () => number
  readonly #buckets = new Map<string, { left: number; at: number }>()

  constructor(maxKeys: number, now: () => number = Date.now) {
    this.#maxKeys = maxKeys
    this.#now = now
  }

  get size(): number {
    return this.#buckets.size
  }

  has(key: string): boolean {
    return this.#buckets.has(key)
  }

  /** How long until there is one to take, whole seconds; 0: there is. */
  wait(key: string, rate: BucketRate): number {
    const left = this.#left(key, rate, this.#now())
    return left >= 1 ? 0 : Math.max(1, Math.ceil((1 - left) / rate.perSecond))
  }

  /** Takes one; false: there is none. */
  take(key: string, rate: BucketRate): boolean {
    const now = this.#now()
    const left = this.#left(key, rate, now)
    this.#keep(key, { left: left < 1 ? left : left - 1, at: now })
    return left >= 1
  }

  /** Puts back one that was taken. */
  giveBack(key: string, rate: BucketRate): void {
    const now = this.#now()
    if (this.#buckets.has(key)) this.#keep(key, { left: Math.min(rate.burst, this.#left(key, rate, now) + 1), at: now })
  }

  delete(key: string): void {
    this.#buckets.delete(key)
  }

  #left(key: string, { perSecond, burst }: BucketRate, now: number): number {
    const bucket = this.#buckets.get(key)
    // A clock that was set back gives nothing, and takes nothing.
    return bucket === undefined
      ? burst
      : Math.min(burst, bucket.left + (Math.max(0, now - bucket.at) * perSecond) / 1000)
  }

  #keep(key: string, bucket: { left: number; at: number }): void {
    this.#buckets.delete(key)
    this.#buckets.set(key, bucket)
    for (const oldest of this.#buckets.keys()) {
      if (this.#buckets.size <= this.#maxKeys) break
      this.#buckets.delete(oldest)
    }
  }
}
