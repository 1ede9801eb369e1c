import xterm from '@xterm/xterm'
import { expect, test } from 'vitest'
import { matchesOf, nextMatch } from '../../../runtime/browser/console/search.ts'

/** The matches of a text in a terminal of 20 columns and 3 rows. */
async function found(output: string, text: string): Promise<(readonly [row: number, column: number, size: number])[]> {
  const terminal = new xterm.Terminal({ cols: 20, rows: 3 })
  await new Promise<void>((resolve) => terminal.write(output, resolve))
  return matchesOf(text, terminal.buffer.active, 20).map(({ row, column, size }) => [row, column, size])
}

test('a text is found in the scroll-back and on the screen, without regard to case', async () => {
  const output = 'PC1> ping\r\nPing: no answer\r\n\r\n\r\nPC1> ping'
  expect(await found(output, 'PING')).toEqual([
    [0, 5, 4],
    [1, 0, 4],
    [4, 5, 4],
  ])
})

test('a text is found where the terminal has wrapped its line', async () => {
  expect(await found('this line is longer than the terminal', 'longer')).toEqual([[0, 13, 6]])
  expect(await found('this line is rather long', 'rather long')).toEqual([[0, 13, 11]])
  expect(await found('this line\r\nis not', 'lineis')).toEqual([])
})

test('wide characters take two cells, and combined ones one', async () => {
  expect(await found('你好 world', 'world')).toEqual([[0, 5, 5]])
  expect(await found('你好 world', '好')).toEqual([[0, 2, 2]])
  expect(await found('ende\u0301 and', 'and')).toEqual([[0, 5, 3]])
})

test('characters of regular expressions are found as they are', async () => {
  expect(await found('eth0 (up) [1.5]', '(up) [1.5]')).toEqual([[0, 5, 10]])
  expect(await found('abc', 'a.c')).toEqual([])
  expect(await found('abc', '')).toEqual([])
})

test('the next match is the one after the selected match, and after the last one the first', () => {
  const matches = [
    { row: 1, column: 4, size: 2 },
    { row: 1, column: 9, size: 2 },
    { row: 7, column: 0, size: 2 },
  ]
  const [first, second, third] = matches
  expect(nextMatch(matches, undefined, false)).toBe(first)
  expect(nextMatch(matches, first, false)).toBe(second)
  expect(nextMatch(matches, third, false)).toBe(first)
  expect(nextMatch(matches, undefined, true)).toBe(third)
  expect(nextMatch(matches, third, true)).toBe(second)
  expect(nextMatch(matches, first, true)).toBe(third)
  expect(nextMatch([], first, true)).toBeUndefined()
})
