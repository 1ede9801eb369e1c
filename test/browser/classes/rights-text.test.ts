import { expect, test } from 'vitest'
import { rightsText } from '../../../runtime/browser/classes/rights-text.ts'
import type { ClassStudent } from '../../../src/client/patchbay.ts'

const withLink = (limits: object, role = 'operate') => ({ token: { role, limits } as ClassStudent['token'] })

test('the limits of the links of a class are told once, where all have the same', () => {
  const student = withLink({ max_nodes: 10, max_running: 5, max_ram_mb: 2048 })
  expect(rightsText([student, student])).toBe('Each student: at most 10 nodes, 5 running, 2048 MB.')
  expect(rightsText([withLink({})])).toBe('Each student: no limits.')
  expect(rightsText([withLink({ max_nodes: 1 }, 'read')])).toBe('Each student: may only look, at most 1 nodes.')
  expect(rightsText([])).toBe('')
})

test('of how many students each is, where they differ', () => {
  const few = withLink({ max_running: 5 })
  expect(rightsText([few, few, withLink({}), { token: null }])).toBe(
    '2 students: at most 5 running. 1 student: no limits. 1 student: no link.',
  )
})
