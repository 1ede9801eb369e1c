import { expect, test } from 'vitest'
import { restacked, stacked } from '../../../runtime/browser/drawings/layers.ts'

const drawings = (layers: Readonly<Record<string, number>>) =>
  Object.entries(layers).map(([drawing_id, z]) => ({ drawing_id, z }))
/** The ids from the hindmost to the foremost, after the change. */
function order(layers: Readonly<Record<string, number>>, changed: ReadonlyMap<string, number>): string {
  const after = drawings({ ...layers, ...Object.fromEntries(changed) })
  return stacked(after)
    .map((it) => it.drawing_id)
    .join('')
}

test('drawings come before all others, or behind them, and keep their order among each other', () => {
  const layers = { a: 1, b: 1, c: 2, d: 5 }
  expect(restacked(drawings(layers), new Set('a'), 'front')).toEqual(new Map([['a', 6]]))
  expect(order(layers, restacked(drawings(layers), new Set('a'), 'front'))).toBe('bcda')
  expect(order(layers, restacked(drawings(layers), new Set('ca'), 'front'))).toBe('bdac')
  expect(order(layers, restacked(drawings(layers), new Set('db'), 'back'))).toBe('bdac')
})

test('drawings that are already in front or behind change nothing', () => {
  const layers = { a: 1, b: 1, c: 2 }
  expect(restacked(drawings(layers), new Set('c'), 'front').size).toBe(0)
  expect(restacked(drawings(layers), new Set('a'), 'back').size).toBe(0)
  expect(restacked(drawings(layers), new Set('abc'), 'back').size).toBe(0)
  expect(restacked([], new Set('a'), 'front').size).toBe(0)
})

test('where no layer is left before or behind, all drawings get new ones', () => {
  const layers = { a: -1000, b: 1000, c: 1000 }
  for (const side of ['front', 'back'] as const) {
    const changed = restacked(drawings(layers), new Set('b'), side)
    expect(order(layers, changed)).toBe(side === 'front' ? 'acb' : 'bac')
    expect(Math.max(...[...changed.values()].map(Math.abs))).toBeLessThanOrEqual(1000)
  }
})
