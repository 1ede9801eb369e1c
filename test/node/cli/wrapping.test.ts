import { expect, test } from 'vitest'
import { columnsOf, wrapped } from '../../../runtime/node/cli/wrapping.ts'

test.for([
  { text: 'R1 is running', columns: 20, shown: ['R1 is running'] },
  { text: 'the lab two-pcs has no link x', columns: 20, shown: ['the lab two-pcs has', 'no link x'] },
  // Below the column that is broken.
  {
    text: '  --name NAME  the name of the lab',
    columns: 30,
    shown: ['  --name NAME  the name of the', '               lab'],
  },
  // Not in a column that begins in the second half of the terminal.
  { text: '  a long command  with its text', columns: 24, shown: ['  a long command  with', '  its text'] },
  // A path is not broken.
  { text: 'see /var/lib/patchbay/service.log', columns: 20, shown: ['see', '/var/lib/patchbay/service.log'] },
  // Chinese characters take two columns each, and colours none.
  { text: '路由器一 路由器二 路由器三', columns: 20, shown: ['路由器一 路由器二', '路由器三'] },
  { text: '\u001b[32mok\u001b[39m the rest of it', columns: 20, shown: ['\u001b[32mok\u001b[39m the rest of it'] },
])('$text in $columns columns', ({ text, columns, shown }) => {
  expect(wrapped(text, columns).split('\n')).toEqual(shown)
})

test('only a terminal has columns', () => {
  expect(columnsOf({ isTTY: true, columns: 80 })).toBe(80)
  expect(columnsOf({ columns: 80 })).toBeUndefined()
  // A terminal that does not know its size.
  expect(columnsOf({ isTTY: true, columns: 0 })).toBeUndefined()
  expect(wrapped('a '.repeat(100), undefined)).toBe('a '.repeat(100))
})
