import type { BucketRate } from '../../lib/async/bucket.ts'
import { Buckets } from '../../lib/async/buckets.ts'
import { retryLater } from '../../lib/errors/api-error.ts'
import type { JoinGrant } from './join-tokens.ts'

/** Connections with one token, which a compute opens again with growing waits. */
const ofToken: BucketRate = { perSecond: 0.5, burst: 60 }
/** Connections of all computes: a thousand join again when their gateway has restarted. */
const ofAll: BucketRate = { perSecond: 50, burst: 3000 }
/** Most tokens with a bucket; above it the least recently used bucket goes. */
const maxTokens = 5000

/**
 * Limits how often the computes of an organization join, in the memory of this process. Each connection is greeted, registered and reported, so a
 * compute that joins in a loop would keep its gateway busy.
 */
export class JoinLimit {
  readonly #tokens: Buckets
  readonly #all: Buckets

  constructor(now: () => number = Date.now) {
    this.#tokens = new Buckets(maxTokens, now)
    this.#all = new Buckets(1, now)
  }

  /** Counts a connection; 429 when there are too many. */
  consume({ key }: JoinGrant): void {
    const { burst, perSecond } = ofToken
    const seconds = this.#tokens.wait(key, ofToken)
    if (!this.#tokens.consume(key, ofToken))
      throw retryLater(
        429,
        `Authorization: too many connections with this token: the limit is ${burst} at once and ${perSecond * 60} a minute; wait ${seconds} s`,
        seconds,
      )
    // Only what the first bucket lets through counts here: one compute cannot take the room of the others.
    const secondsOfAll = this.#all.wait('', ofAll)
    if (!this.#all.consume('', ofAll))
      throw retryLater(
        429,
        `Too many computes are joining: the limit is ${ofAll.perSecond} a second; wait ${secondsOfAll} s`,
        secondsOfAll,
      )
  }
}
