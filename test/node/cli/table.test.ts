import { expect, test } from 'vitest'
import { fitted, tableOf } from '../../../runtime/node/cli/table.ts'

test.each([
  ['R1  running', 6, 'R1  ru'],
  ['R1', 6, 'R1'],
  // Wide characters take two columns each.
  ['路由器一  running', 6, '路由器'],
  ['路由器一  running', 7, '路由器'],
  ['🦊 fox', 3, '🦊 '],
  // Colours take none, and end with the line.
  ['\u001b[2mNODE  STATE\u001b[22m', 6, '\u001b[2mNODE  \u001b[0m'],
  ['\u001b[2mNODE\u001b[22m', 6, '\u001b[2mNODE\u001b[22m'],
])('%j fits in %d columns as %j', (line, columns, shown) => {
  expect(fitted(line, columns)).toBe(shown)
})

test('a table that is wider than the terminal breaks its widest columns between words', () => {
  const rows = [
    ['R1', 'waits for the licence server to come back'],
    ['R2', 'running'],
  ]
  const lines = (columns: number | undefined) => tableOf(['NODE', 'REASON'], rows, columns).split('\n')
  expect(lines(60)).toEqual(['NODE  REASON', 'R1    waits for the licence server to come back', 'R2    running'])
  expect(lines(30)).toEqual([
    'NODE  REASON',
    'R1    waits for the licence',
    '      server to come back',
    'R2    running',
  ])
  // Nothing is cut off that cannot be broken.
  expect(tableOf(['IMAGE'], [['a'.repeat(64)]], 30)).toContain('a'.repeat(64))
})
