import { effect } from '@preact/signals'
import { expect, test } from 'vitest'
import { Table } from '../../../runtime/browser/state/table.ts'

test('a reader of one resource is not notified of changes of others', () => {
  const table = new Table<string>()
  table.put('a', 'one')
  table.put('b', 'two')
  const seen: (string | undefined)[] = []
  effect(() => {
    seen.push(table.get('a'))
  })
  table.put('b', 'three')
  table.put('c', 'four')
  expect(seen).toEqual(['one'])
  table.put('a', 'five')
  expect(seen).toEqual(['one', 'five'])
})

test('a reader of a missing resource is notified when it appears', () => {
  const table = new Table<string>()
  const seen: (string | undefined)[] = []
  effect(() => {
    seen.push(table.get('a'))
  })
  table.put('a', 'here')
  expect(seen).toEqual([undefined, 'here'])
})

test('a reset keeps the signals of resources that stay, and notifies each once', () => {
  const table = new Table<number>()
  table.put('a', 1)
  table.put('b', 2)
  const row = table.row('a')
  const lists: string[][] = []
  effect(() => {
    lists.push([...table.ids.value])
  })
  table.reset([
    ['c', 3],
    ['a', 4],
  ])
  expect(lists).toEqual([
    ['a', 'b'],
    ['c', 'a'],
  ])
  expect(table.row('a')).toBe(row)
  expect([row?.value, table.has('b')]).toEqual([4, false])
})

test.for([
  ['a deletion', (table: Table<string>) => table.delete('a')],
  ['a reset', (table: Table<string>) => table.reset([['b', 'two']])],
] as const)('a reader of one resource is notified when it goes by %s', ([, remove]) => {
  const table = new Table<string>()
  table.put('a', 'one')
  table.put('b', 'two')
  const seen: (string | undefined)[] = []
  effect(() => {
    seen.push(table.get('a'))
  })
  remove(table)
  expect(seen).toEqual(['one', undefined])
  table.put('a', 'again')
  expect(seen).toEqual(['one', undefined, 'again'])
})
