import { type Bucket, type BucketRate, tokensIn } from './bucket.ts'
import { setNewest } from './newest.ts'

/** Token buckets by key, in the memory of this process. Above `maxKeys` keys the least recently used bucket goes. */
export class Buckets {
  readonly #maxKeys: number
  readonly #now: () => number
  readonly #buckets = new Map<string, Bucket>()

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

  /** Whole seconds until the bucket has a token; 0: it has one now. */
  wait(key: string, rate: BucketRate): number {
    const left = this.#left(key, rate, this.#now())
    return left >= 1 ? 0 : Math.max(1, Math.ceil((1 - left) / rate.perSecond))
  }

  /** Takes a token; false: the bucket is empty. */
  consume(key: string, rate: BucketRate): boolean {
    const now = this.#now()
    const left = this.#left(key, rate, now)
    this.#keep(key, { left: left < 1 ? left : left - 1, at: now })
    return left >= 1
  }

  /** Returns a token to the bucket. */
  refund(key: string, rate: BucketRate): void {
    const now = this.#now()
    if (this.#buckets.has(key)) this.#keep(key, { left: Math.min(rate.burst, this.#left(key, rate, now) + 1), at: now })
  }

  delete(key: string): void {
    this.#buckets.delete(key)
  }

  #left(key: string, rate: BucketRate, now: number): number {
    const bucket = this.#buckets.get(key)
    return bucket === undefined ? rate.burst : tokensIn(bucket, rate, now)
  }

  #keep(key: string, bucket: Bucket): void {
    setNewest(this.#buckets, key, bucket, this.#maxKeys)
  }
}
