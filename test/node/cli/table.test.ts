import { expect, test } from 'vitest'
import { fitted } from '../../../runtime/node/cli/table.ts'

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
