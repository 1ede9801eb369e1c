import { expect, test } from 'vitest'
import { inOrder } from '../../../runtime/browser/labs/lab-order.ts'
import type { LabProject } from '../../../src/client/patchbay.ts'

const lab = (name: string, changed_at: string, running?: number) =>
  ({ name, changed_at, status: running === undefined ? 'closed' : 'opened', counts: { running } }) as LabProject

test('labs are in the order of their names, their last changes, or how much of them runs', () => {
  const labs = [
    lab('lab10', '2026-11-01T10:00:00Z'),
    lab('lab2', '2026-11-03T10:00:00Z', 0),
    lab('lab1', '2026-11-02T10:00:00Z', 3),
    lab('Other', '2026-11-01T10:00:00Z', 3),
  ]
  const names = (order: Parameters<typeof inOrder>[1]) => inOrder(labs, order).map(({ name }) => name)
  expect(names('name')).toEqual(['lab1', 'lab2', 'lab10', 'Other'])
  expect(names('changed')).toEqual(['lab2', 'lab1', 'lab10', 'Other'])
  expect(names('running')).toEqual(['lab1', 'Other', 'lab2', 'lab10'])
  // A lab of an older compute does not say when it was changed.
  const { changed_at: _, ...old } = lab('Alpha', '')
  expect(inOrder([...labs, old as LabProject], 'changed').map(({ name }) => name)).toEqual([
    ...['lab2', 'lab1', 'lab10', 'Other', 'Alpha'],
  ])
})
