import { expect, test } from 'vitest'
import type { ApiError } from '../../../../src/lib/errors/api-error.ts'
import { RateLimit } from '../../../../src/server/auth/rate-limit.ts'

function limited(rate = { perSecond: 2, burst: 3 }) {
  const clock = { now: 1_000_000 }
  const limit = new RateLimit(
    () => rate,
    () => clock.now,
  )
  /** Seconds to wait; 0: it was let through. */
  const take = (key: string): number => {
    try {
      limit.consume(key)
      return 0
    } catch (error) {
      expect((error as ApiError).status).toBe(429)
      return Number((error as ApiError).headers['Retry-After'])
    }
  }
  return { clock, rate, take }
}

test('each credential has a burst, and then a rate', () => {
  const { clock, take } = limited()
  expect(['a', 'a', 'a', 'a', 'b'].map(take)).toEqual([0, 0, 0, 1, 0])
  clock.now += 499
  expect(take('a')).toBe(1)
  clock.now += 1
  expect(['a', 'a'].map(take)).toEqual([0, 1])
  clock.now += 3_600_000
  expect(['a', 'a', 'a', 'a'].map(take)).toEqual([0, 0, 0, 1])
})

test('a slow rate says how long to wait', () => {
  const { take, clock } = limited({ perSecond: 0.1, burst: 1 })
  expect([take('a'), take('a')]).toEqual([0, 10])
  clock.now += 9000
  expect(take('a')).toBe(1)
  clock.now -= 60_000
  expect(take('a')).toBe(1)
})

test('without a rate, and without a credential, nothing is counted', () => {
  const off = limited({ perSecond: 0, burst: 1 })
  const on = limited({ perSecond: 1, burst: 1 })
  for (let count = 0; count < 10; count++) expect([off.take('a'), on.take('')]).toEqual([0, 0])
})

test('the memory is limited: the least recently used credential is removed', () => {
  const { take } = limited({ perSecond: 1, burst: 1 })
  take('first')
  take('second')
  expect(take('first')).toBe(1)
  for (let count = 0; count < 4999; count++) take(`k${count}`)
  expect([take('first'), take('second')]).toEqual([1, 0])
})
