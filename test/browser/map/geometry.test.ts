import { expect, test } from 'vitest'
import {
  along,
  boxAround,
  boxBetween,
  boxOf,
  fitted,
  labelPoints,
  lineBetween,
  onMap,
  overlaps,
  pathOf,
  regionIn,
  touches,
  zoomed,
} from '../../../runtime/browser/map/geometry.ts'
import { strandsOf } from '../../../runtime/browser/map/strands.ts'
import type { LabLink } from '../../../src/client/patchbay.ts'

const alone = { index: 0, count: 1 }

test('a zoom leaves the place below the pointer where it is', () => {
  const view = { at: { x: -100, y: 40 }, scale: 0.8 }
  const pointer = { x: 300, y: 200 }
  const next = zoomed(view, 1.5, pointer)
  expect(next.scale).toBeCloseTo(1.2)
  expect(onMap(next, pointer).x).toBeCloseTo(onMap(view, pointer).x)
  expect(onMap(next, pointer).y).toBeCloseTo(onMap(view, pointer).y)
})

test('a zoom has limits', () => {
  const view = { at: { x: 0, y: 0 }, scale: 1 }
  expect(zoomed(view, 1000, { x: 0, y: 0 }).scale).toBe(4)
  expect(zoomed(view, 0, { x: 0, y: 0 }).scale).toBe(0.1)
})

test('a lab is shown in the middle of the window, and a small one in its own size', () => {
  const small = fitted({ x: 0, y: 0, width: 100, height: 100 }, { width: 800, height: 600 })
  expect(small).toEqual({ scale: 1, at: { x: -350, y: -250 } })
  const large = fitted({ x: 0, y: 0, width: 6800, height: 100 }, { width: 800, height: 600 })
  expect(large.scale).toBeCloseTo(0.1)
  expect(boxOf([])).toBe(undefined)
})

test('no node of a lab that is shown as a whole is below the buttons at the right edge of a phone', () => {
  const [box, phone] = [
    { x: 40, y: 10, width: 900, height: 300 },
    { width: 360, height: 640 },
  ]
  const { at, scale } = fitted(box, phone)
  const [left, right] = [box.x, box.x + box.width].map((x) => (x - at.x) * scale) as [number, number]
  expect(left).toBeCloseTo(24)
  expect(phone.width - right).toBeCloseTo(52)
  expect(((box.y - at.y) * scale + (box.y + box.height - at.y) * scale) / 2).toBeCloseTo(320)
})

test('a link goes from centre to centre, and links between the same nodes do not cover each other', () => {
  const [a, b] = [
    { x: 0, y: 0 },
    { x: 200, y: 0 },
  ]
  expect(pathOf(lineBetween(a, b, alone))).toBe('M32 32L232 32')
  const two = [0, 1].map((index) => along(lineBetween(a, b, { index, count: 2 }), 0.5))
  expect(two.map(({ y }) => y)).toEqual([19, 45])
  const [left, right] = labelPoints(lineBetween(a, b, alone))
  expect(left.x).toBeGreaterThan(64)
  expect(right.x).toBeLessThan(200)
  // A VLAN beside the name of a port needs more of the line.
  const [wide] = labelPoints(lineBetween(a, b, alone), ['e0 · v10', 'e0'])
  expect(wide.x).toBeGreaterThan(left.x + 10)
})

test('strands are the same from both ends', () => {
  const link = (link_id: string, from: string, to: string) =>
    ({ link_id, nodes: [{ node_id: from }, { node_id: to }] }) as LabLink
  const strands = strandsOf([link('1', 'a', 'b'), link('2', 'b', 'a'), link('3', 'a', 'c')])
  const [a, b] = [
    { x: 0, y: 0 },
    { x: 200, y: 0 },
  ]
  const first = along(lineBetween(a, b, strands.get('1') ?? alone), 0.5)
  const second = along(lineBetween(b, a, strands.get('2') ?? alone), 0.5)
  expect(first).not.toEqual(second)
  expect(strands.get('3')).toEqual(alone)
})

test('a rectangle selects the nodes that it touches', () => {
  const box = boxBetween({ x: 100, y: 100 }, { x: 10, y: 10 })
  expect(box).toEqual({ x: 10, y: 10, width: 90, height: 90 })
  expect([touches({ x: 90, y: 90 }, box), touches({ x: -60, y: 0 }, box), touches({ x: 101, y: 0 }, box)]).toEqual([
    true,
    false,
    false,
  ])
})

test('the drawn part of the map is larger than the visible part, and changes by whole cells', () => {
  const window = { width: 1000, height: 800 }
  const region = regionIn({ at: { x: 100, y: 100 }, scale: 1 }, window)
  expect(region).toEqual({ x: -512, y: -512, width: 2560, height: 2048 })
  expect(regionIn({ at: { x: 140, y: 130 }, scale: 1 }, window)).toEqual(region)
  expect(touches({ x: 1200, y: 0 }, region)).toBe(true)
  expect(touches({ x: 2100, y: 0 }, region)).toBe(false)
  const across = boxAround([
    { x: -900, y: 300 },
    { x: 4000, y: 300 },
  ])
  expect(overlaps(across, region)).toBe(true)
})
