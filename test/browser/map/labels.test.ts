import { expect, test } from 'vitest'
import { shortened } from '../../../runtime/browser/map/labels.ts'

test('of a name that is too long the middle is left out, by characters as people count them', () => {
  expect(shortened('access-switch-floor-12', 22)).toBe('access-switch-floor-12')
  expect(shortened('access-switch-floor-12', 12)).toBe('access…or-12')
  expect(shortened('👨‍👩‍👧'.repeat(5), 3)).toBe('👨‍👩‍👧…👨‍👩‍👧')
})
