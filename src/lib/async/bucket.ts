/** How fast a bucket fills. */
export interface BucketRate {
  /** Tokens a second; above 0. */
  readonly perSecond: number
  /** Tokens in a full bucket; at least 1. */
  readonly burst: number
}

/** A token bucket: the tokens that it had at a time, ms. */
export interface Bucket {
  readonly left: number
  readonly at: number
}

/** The tokens that a bucket has now. A clock that was set back neither fills nor empties it. */
export function tokensIn({ left, at }: Bucket, { perSecond, burst }: BucketRate, now: number): number {
  return Math.min(burst, left + (Math.max(0, now - at) * perSecond) / 1000)
}
