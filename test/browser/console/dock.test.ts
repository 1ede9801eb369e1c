import { expect, test } from 'vitest'
import { Dock } from '../../../runtime/browser/console/dock.ts'

function dockWith(...ids: string[]): { dock: Dock; typed: string[] } {
  const dock = new Dock()
  const typed: string[] = []
  for (const id of ids) {
    dock.open(id)
    dock.add(id, { send: (text) => typed.push(`${id} ${text}`), focus() {} })
  }
  return { dock, typed }
}

test('a new tab replaces the active one, and side by side all tabs are shown', () => {
  const { dock } = dockWith('a', 'b', 'c')
  expect([dock.panes.value, dock.active.value]).toEqual([['c'], 'c'])
  dock.spread()
  expect([dock.panes.value, dock.active.value]).toEqual([['a', 'b', 'c'], 'c'])
  dock.spread()
  expect(dock.panes.value).toEqual(['c'])
  dock.toggle('a')
  expect([dock.panes.value, dock.active.value]).toEqual([['c', 'a'], 'a'])
})

test('the tab beside a closed one is shown, and nothing remains after the last one', () => {
  const { dock } = dockWith('a', 'b', 'c')
  dock.show('b')
  dock.close('b')
  expect([dock.tabs.value, dock.panes.value, dock.active.value]).toEqual([['a', 'c'], ['a'], 'a'])
  dock.close('a')
  dock.close('c')
  expect([dock.tabs.value, dock.panes.value, dock.active.value]).toEqual([[], [], undefined])
})

test('a tab gets the focus when the user selects it, and not when it replaces a closed tab', () => {
  const dock = new Dock()
  const focused: string[] = []
  for (const id of ['a', 'b', 'c']) {
    dock.open(id)
    dock.add(id, { send() {}, focus: () => focused.push(id) })
  }
  dock.show('b')
  expect([dock.wanted, focused]).toEqual(['b', ['b']])
  dock.close('b', true)
  expect([dock.panes.value, dock.active.value, dock.wanted, focused]).toEqual([['a'], 'a', 'b', ['b']])
  dock.close('a')
  expect([dock.panes.value, dock.wanted, focused]).toEqual([['c'], 'c', ['b', 'c']])
})

test('input goes to one console, or to all consoles that are shown', () => {
  const { dock, typed } = dockWith('a', 'b', 'c')
  dock.type('c', '1')
  dock.toggle('a')
  dock.isShared.value = true
  dock.type('a', '2')
  expect(typed).toEqual(['c 1', 'c 2', 'a 2'])
  dock.toggle('c')
  dock.type('a', '3')
  expect(typed.slice(3)).toEqual(['a 3'])
  expect(dock.isShared.value).toBe(false)
})

test('a hidden tab reports output until it is shown', () => {
  const { dock } = dockWith('a', 'b')
  dock.hasOutput('a')
  dock.hasOutput('b')
  expect([...dock.news.value]).toEqual(['a'])
  dock.show('a')
  expect([...dock.news.value]).toEqual([])
})
