import { expect, test } from 'vitest'
import { foundBy } from '../../../runtime/browser/editing/found-by.ts'

const entries = [
  { title: 'Anna', hint: 'pc, started' },
  { title: 'Core', hint: 'switch, started' },
  { title: 'Start all nodes', hint: 'Ctrl+Enter' },
  { title: 'Add PC', hint: 'template' },
]
const found = (words: string) => foundBy(words, entries).map(({ title }) => title)

test('a command with the search words comes before nodes with these words in their state', () => {
  expect(found('start')).toEqual(['Start all nodes', 'Anna', 'Core'])
})

test('entries are found by title and hint together, and all are shown without search words', () => {
  expect(found('anna STARTED')).toEqual(['Anna'])
  expect(found(' ')).toEqual(entries.map(({ title }) => title))
  expect(found('stop')).toEqual([])
})
