import { expect, test } from 'vitest'
import { rowOf } from '../../../runtime/node/cli/ls.ts'

test.for([
  { lab: { name: 'a', status: 'opened', nodes: 3, running: 2 }, row: ['a', 'running', '2 of 3', ''] },
  { lab: { name: 'a', status: 'opened', nodes: 3, running: 0 }, row: ['a', 'stopped', '0 of 3', ''] },
  { lab: { name: 'a', status: 'closed', nodes: 3, running: 0 }, row: ['a', 'closed', '3', ''] },
  { lab: { name: 'a', status: 'closed' }, row: ['a', 'closed', '-', ''] },
  {
    lab: {
      name: 'a',
      status: 'opened',
      nodes: 1,
      running: 1,
      stop_at: '2000-01-01T00:00:00Z',
      status_reason: 'no archive',
    },
    row: ['a', 'running', '1 of 1', 'stops within a minute; no archive'],
  },
])('the row of a lab in the table is $row', ({ lab, row }) => {
  expect(rowOf(lab)).toEqual(row)
})
