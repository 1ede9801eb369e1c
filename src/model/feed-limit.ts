import { type Bucket, type BucketRate, tokensIn } from '../lib/async/bucket.ts'
import { pause } from '../lib/async/pause.ts'

/** How fast a feed of a compute is read. */
export interface FeedRates {
  readonly lines: BucketRate
  readonly bytes: BucketRate
  /** The number of lines for which a gap counts: after it all clients of the feed read all resources again. */
  readonly linesOfGap: number
  /** The same of a search for a project that an event names: all computes are asked for it. */
  readonly linesOfSearch: number
}

/**
 * A lab of a thousand nodes has some three thousand events when it starts, of 1 KB each. 500 lines a second are those of 60 nodes that are made,
 * started and removed in each second.
 */
export const feedRates: FeedRates = {
  lines: { perSecond: 500, burst: 10_000 },
  bytes: { perSecond: 1 << 20, burst: 16 << 20 },
  linesOfGap: 2500,
  linesOfSearch: 50,
}

/**
 * Limits how fast the feed of one compute is read, also when it is opened again: a bucket of lines and one of bytes. While both are empty nothing
 * is read. A compute with more events then drops the oldest ones and reports that, which is a gap; one that does not can only fill the
 * buffers of its own connection.
 */
export class FeedLimit {
  readonly #rates: FeedRates
  readonly #now: () => number
  #lines: Bucket
  #bytes: Bucket

  constructor(rates = feedRates, now: () => number = Date.now) {
    this.#rates = rates
    this.#now = now
    this.#lines = { left: rates.lines.burst, at: now() }
    this.#bytes = { left: rates.bytes.burst, at: now() }
  }

  /** Counts a line. Undefined: more may be read; else resolves when it may, or when the signal aborts. */
  line(signal: AbortSignal): Promise<void> | undefined {
    return this.#consume(1, 0, signal)
  }

  /** Counts bytes likewise. */
  bytes(count: number, signal: AbortSignal): Promise<void> | undefined {
    return this.#consume(0, count, signal)
  }

  /** Counts a gap likewise. */
  gap(signal: AbortSignal): Promise<void> | undefined {
    return this.#consume(this.#rates.linesOfGap, 0, signal)
  }

  /** Counts a search for a project likewise. */
  search(signal: AbortSignal): Promise<void> | undefined {
    return this.#consume(this.#rates.linesOfSearch, 0, signal)
  }

  #consume(lines: number, bytes: number, signal: AbortSignal): Promise<void> | undefined {
    const { lines: ofLines, bytes: ofBytes } = this.#rates
    const at = this.#now()
    this.#lines = { left: tokensIn(this.#lines, ofLines, at) - lines, at }
    this.#bytes = { left: tokensIn(this.#bytes, ofBytes, at) - bytes, at }
    const waitS = Math.max(-this.#lines.left / ofLines.perSecond, -this.#bytes.left / ofBytes.perSecond)
    return waitS > 0 ? pause(waitS * 1000, signal) : undefined
  }
}
