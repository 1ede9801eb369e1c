import { expect, test } from 'vitest'
import type { Dock } from '../../../runtime/browser/console/dock.ts'
import { newShape, svgOf, withSize, withText } from '../../../runtime/browser/drawings/shape.ts'
import type { LabEditor } from '../../../runtime/browser/editing/lab-editor.ts'
import { LabWindow } from '../../../runtime/browser/editing/lab-window.ts'
import { centreOf, contains, type Point, tile } from '../../../runtime/browser/map/geometry.ts'
import { LabStore } from '../../../runtime/browser/state/lab-store.ts'
import type { LabDrawing, LabLink, LabNode, LabTemplate } from '../../../src/client/patchbay.ts'

/** The window of an empty lab, in which nodes are where they are added. */
function emptyLab() {
  const store = new LabStore()
  const added: Point[] = []
  const editor = {
    store,
    async add(_: LabTemplate, at: Point) {
      added.push(at)
      const node_id = `${added.length}`
      store.nodes.put(node_id, { node_id, x: at.x - tile / 2, y: at.y - tile / 2 } as LabNode)
    },
  }
  const window = new LabWindow(editor as unknown as LabEditor, {} as Dock)
  return { window, store, added, add: () => window.addInMiddle({} as LabTemplate) }
}

const distance = (a: Point, b: Point) => Math.hypot(a.x - b.x, a.y - b.y)

test('nodes that are added without a place are in the middle and beside it, and none covers another', async () => {
  const { window, added, add } = emptyLab()
  for (let count = 0; count < 12; count++) await add()
  const { at, scale } = window.view.value
  expect(added[0]).toEqual({ x: at.x + 400 / scale, y: at.y + 300 / scale })
  for (const [index, one] of added.entries())
    for (const other of added.slice(index + 1)) expect(distance(one, other)).toBeGreaterThan(tile)
})

test('a link between two of the first three crosses none of them', async () => {
  const { added, add } = emptyLab()
  for (let count = 0; count < 3; count++) await add()
  for (const middle of added) {
    const [a, b] = added.filter((it) => it !== middle) as [Point, Point]
    // Twice the area of the triangle, by the length of the link: how far the node is from it.
    const area = Math.abs((b.x - a.x) * (middle.y - a.y) - (b.y - a.y) * (middle.x - a.x))
    expect(area / distance(a, b)).toBeGreaterThan(tile / 2)
  }
})

test('a place that a node was moved to is left free', async () => {
  const { store, window, added, add } = emptyLab()
  const { at } = window.view.value
  store.nodes.put('moved', { node_id: 'moved', x: at.x + 400 - tile / 2, y: at.y + 300 - tile / 2 } as LabNode)
  await add()
  expect(distance(added[0] as Point, centreOf(store.nodes.get('moved') as LabNode))).toBeGreaterThan(tile)
})

test('many nodes are added around the middle, where they are seen, and cover no name and no text', async () => {
  const { store, window, added, add } = emptyLab()
  window.resize(1200, 800)
  const text = { x: -20, y: -10, svg: svgOf(withText(newShape('text'), 'Area 0')) }
  store.drawings.put('text', text as LabDrawing)
  // A rectangle is the ground of nodes.
  store.drawings.put('zone', {
    x: -400,
    y: -300,
    svg: svgOf(withSize(newShape('rect'), { width: 800, height: 600 })),
  } as LabDrawing)
  const { view } = window
  for (let count = 0; count < 20; count++) await add()
  for (const [index, { x, y }] of added.entries()) {
    expect(
      contains({ ...view.value.at, width: 1200, height: 800 }, { x: x - 32, y: y - 32, width: 64, height: 90 }),
    ).toBe(true)
    expect(Math.abs(x) > 32 + 20 || Math.abs(y) > 32 + 10).toBe(true)
    for (const other of added.slice(index + 1))
      expect(Math.abs(x - other.x) >= 100 || Math.abs(y - other.y) >= 90).toBe(true)
  }
})

test('drawings that are added without a place cover nothing', async () => {
  const { store, window, add } = emptyLab()
  const drawn: Point[] = []
  Object.assign(window.editor, { draw: async (_: unknown, at: Point) => void drawn.push(at) })
  await window.draw('text')
  await add()
  await window.draw('text')
  const node = centreOf(store.nodes.values()[0] as LabNode)
  expect(drawn[0]).toEqual(node)
  expect(distance(drawn[1] as Point, node)).toBeGreaterThan(tile)
  await window.draw('text', node)
  expect(drawn[2]).toEqual(node)
})

test('names of ports are shown as long as they can be read', () => {
  const { window } = emptyLab()
  const shown = (scale: number) => {
    window.view.value = { at: { x: 0, y: 0 }, scale }
    return window.hasPortNames.value
  }
  expect([1, 0.6, 0.59, 0.2].map(shown)).toEqual([true, true, false, false])
  window.hasLabels.value = false
  expect(shown(1)).toBe(false)
})

test('links between the same nodes are bowed apart, and the state of one of them makes nothing again', () => {
  const { window, store } = emptyLab()
  const nodes = ['a', 'b'].map((node_id) => ({ node_id, adapter_number: 0, port_number: 0 }))
  const link = (link_id: string) => ({ link_id, nodes, verdict: null }) as unknown as LabLink
  for (const id of ['1', '2']) store.links.put(id, link(id))
  const { value: strands } = window.strands
  expect([...strands]).toEqual([
    ['1', { index: 0, count: 2 }],
    ['2', { index: 1, count: 2 }],
  ])
  store.links.put('1', { ...link('1'), verdict: 'ok' })
  expect(window.strands.value).toBe(strands)
  store.links.delete('1')
  expect([...window.strands.value]).toEqual([['2', { index: 0, count: 1 }]])
})
