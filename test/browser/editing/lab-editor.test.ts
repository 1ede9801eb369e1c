import { expect, test } from 'vitest'
import { LabEditor } from '../../../runtime/browser/editing/lab-editor.ts'
import { LabStore } from '../../../runtime/browser/state/lab-store.ts'
import { type LabDrawing, type LabNode, Patchbay } from '../../../src/client/patchbay.ts'

const nowhere = new Patchbay({ server: 'http://127.0.0.1:9' })

test('the place of what was deleted and came back is followed', () => {
  const store = new LabStore()
  const editor = new LabEditor(nowhere, store, 'lab')
  const node = { node_id: 'n', x: 1, y: 2, locked: false } as LabNode
  const drawing = { drawing_id: 'd', x: 3, y: 4, locked: false } as LabDrawing
  store.nodes.put('n', node)
  store.drawings.put('d', drawing)
  const xs = () => [editor.placeOf('n').value.x, editor.placeOf('d').value.x]
  expect(xs()).toEqual([1, 3])
  store.nodes.delete('n')
  store.drawings.delete('d')
  expect(xs()).toEqual([0, 0])
  store.nodes.put('n', node)
  store.drawings.put('d', drawing)
  expect(xs()).toEqual([1, 3])
  store.nodes.put('n', { ...node, x: 11 })
  store.drawings.put('d', { ...drawing, x: 13 })
  expect(xs()).toEqual([11, 13])
})

test('what is locked is selected, and not moved', () => {
  const store = new LabStore()
  const editor = new LabEditor(nowhere, store, 'lab')
  store.nodes.put('n', { node_id: 'n', x: 1, y: 2, locked: true } as LabNode)
  store.drawings.put('d', { drawing_id: 'd', x: 3, y: 4, locked: false } as LabDrawing)
  editor.select(['n', 'd'])
  expect([editor.selectedNodes.length, editor.selectedDrawings.length, editor.movable]).toEqual([1, 1, ['d']])
})
