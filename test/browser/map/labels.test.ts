import { expect, test } from 'vitest'
import { lineBetween } from '../../../runtime/browser/map/geometry.ts'
import { hasPortRoom, shortened } from '../../../runtime/browser/map/labels.ts'

test('of a name that is too long the middle is left out, by characters as people count them', () => {
  expect(shortened('access-switch-floor-12', 22)).toBe('access-switch-floor-12')
  expect(shortened('access-switch-floor-12', 12)).toBe('access…or-12')
  expect(shortened('👨‍👩‍👧'.repeat(5), 3)).toBe('👨‍👩‍👧…👨‍👩‍👧')
})

test('names of ports are left out on a link that is too short for them and its badge', () => {
  const link = (length: number) => lineBetween({ x: 0, y: 0 }, { x: length, y: 0 }, { index: 0, count: 1 })
  expect([hasPortRoom(link(150), '', 2), hasPortRoom(link(150), '100 ms', 2)]).toEqual([true, false])
  expect([hasPortRoom(link(200), '100 ms', 2), hasPortRoom(link(200), '100 ms ± 20 ms, 3 %', 2)]).toEqual([true, false])
  // A VLAN beside the name of the port needs more.
  expect(hasPortRoom(link(200), '100 ms', 'e0 · v10'.length)).toBe(false)
})
