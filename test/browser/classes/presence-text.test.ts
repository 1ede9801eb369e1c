import { expect, test } from 'vitest'
import { countPresent, presenceText } from '../../../runtime/browser/classes/presence-text.ts'

const labOf = (...present: readonly string[]) => ({
  class: { name: 'net', student: 'Anna' },
  ...(present.length > 0 && { present: [...present] }),
})

test.each([
  [[], 'is not there'],
  [['Anna'], 'is there'],
  [['Anna', 'Teacher'], 'is there, with Teacher'],
  [['Teacher'], 'is not there; Teacher is'],
  [['Teacher', 'Tutor'], 'is not there; Teacher, Tutor are'],
  // A service that asks nobody who they are.
  [['anybody'], 'somebody is there'],
  [['Anna', 'anybody'], 'is there, with somebody'],
])('of %j in the lab of Anna it is said that: %s', (present, text) => {
  expect(presenceText(labOf(...present))).toBe(text)
})

test('a teacher in a lab is no student who is there, and of whom nothing is known is not counted', () => {
  expect(countPresent([labOf('Anna'), labOf('Teacher'), labOf()])).toBe('1 of 3 students there')
  expect(countPresent([labOf('Anna'), labOf('anybody')])).toBe('1 of 2 students there, somebody unknown in 1 lab')
  expect(countPresent([labOf('anybody'), labOf('anybody')])).toBe('0 of 2 students there, somebody unknown in 2 labs')
})
