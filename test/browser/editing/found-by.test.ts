import { expect, test } from 'vitest'
import { foundBy } from '../../../runtime/browser/editing/found-by.ts'

const entries = [
  { title: 'Anna', hint: 'pc, started' },
  { title: 'Core', hint: 'switch, started' },
  { title: 'Start all nodes', hint: 'Ctrl+Enter' },
  { title: 'Add PC', hint: 'template' },
]
const found = (words: string) => foundBy(words, entries).map(({ title }) => title)

test('a command that has the words comes before the nodes whose state has them', () => {
  expect(found('start')).toEqual(['Start all nodes', 'Anna', 'Core'])
})

test('entries are found by title and hint together, and without words all are there', () => {
  expect(found('anna STARTED')).toEqual(['Anna'])
  expect(found(' ')).toEqual(entries.map(({ title }) => title))
  expect(found('stop')).toEqual([])
})
