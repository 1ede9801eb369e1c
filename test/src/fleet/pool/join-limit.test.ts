import { expect, test } from 'vitest'
import { JoinLimit } from '../../../../src/fleet/pool/join-limit.ts'
import type { ApiError } from '../../../../src/lib/errors/api-error.ts'

function limited() {
  const clock = { now: 1_000_000 }
  const limit = new JoinLimit(() => clock.now)
  /** Seconds to wait; 0: it may join. */
  const take = (key: string): number => {
    try {
      limit.consume({ key })
      return 0
    } catch (error) {
      expect((error as ApiError).status).toBe(429)
      const seconds = Number((error as ApiError).headers['Retry-After'])
      expect((error as ApiError).message).toContain(`wait ${seconds} s`)
      return seconds
    }
  }
  return { clock, take }
}

test('a token that joins in a loop has to wait, and other tokens do not', () => {
  const { clock, take } = limited()
  for (let count = 0; count < 60; count++) expect(take('a')).toBe(0)
  expect([take('a'), take('a'), take('b')]).toEqual([2, 2, 0])
  clock.now += 2000
  expect([take('a'), take('a')]).toEqual([0, 2])
})

test('a thousand computes may join twice at once, also beside one that joins in a loop', () => {
  const { take } = limited()
  for (let count = 0; count < 1000; count++) take('loop')
  for (let round = 0; round < 2; round++)
    for (let compute = 0; compute < 1000; compute++) expect(take(`compute ${compute}`)).toBe(0)
})

test('an organization with many tokens has a limit, too', () => {
  const { clock, take } = limited()
  for (let token = 0; token < 3000; token++) expect(take(`token ${token}`)).toBe(0)
  expect(take('one more')).toBe(1)
  clock.now += 1000
  for (let token = 0; token < 50; token++) expect(take(`later ${token}`)).toBe(0)
  expect(take('and more')).toBe(1)
})
