import { expect, test } from 'vitest'
import { differenceOf } from '../../../runtime/browser/forms/difference.ts'

const numbered = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, at) => `line ${from + at}\n`).join('')
const shown = (before: string, after: string) =>
  differenceOf(before, after)?.lines.map(({ kind, text }) => `${kind} ${text}`)

test('a change is shown with two lines around it, and the others as their number', () => {
  const before = numbered(1, 20)
  const after = before.replace('line 10\n', 'line ten\nand a half\n')
  expect(differenceOf(before, after)).toMatchObject({ added: 2, removed: 1 })
  expect(shown(before, after)).toEqual([
    ...['gap 7 lines', 'same line 8', 'same line 9', 'removed line 10', 'added line ten', 'added and a half'],
    ...['same line 11', 'same line 12', 'gap 8 lines'],
  ])
})

test('a new text is all added, and an emptied one all removed', () => {
  expect(shown('', 'hostname R1\n')).toEqual(['added hostname R1'])
  expect(shown('hostname R1\n', '')).toEqual(['removed hostname R1'])
})

test('a long difference is cut, and says how much is left', () => {
  const { lines = [], added } = differenceOf('', numbered(1, 1000)) ?? {}
  expect([lines.length, lines.at(-1), added]).toEqual([401, { kind: 'gap', text: '600 more lines' }, 1000])
})
