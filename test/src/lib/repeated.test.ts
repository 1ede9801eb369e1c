import { expect, test } from 'vitest'
import { repeated } from '../../../src/lib/repeated.ts'

test('the first value that is in a list twice is found', () => {
  expect(repeated([])).toBeUndefined()
  expect(repeated(['a', 'b', ''])).toBeUndefined()
  expect(repeated([3, 1, 2, 1, 3])).toBe(1)
})
