import { expect, test, vi } from 'vitest'
import { LabEditor } from '../../../runtime/browser/editing/lab-editor.ts'
import { LabStore } from '../../../runtime/browser/state/lab-store.ts'
import { type LabDrawing, type LabLink, type LabNode, type LabProject, Patchbay } from '../../../src/client/patchbay.ts'

const nowhere = new Patchbay({ server: 'http://127.0.0.1:9' })

test('a node that was deleted and restored keeps its place up to date', () => {
  const store = new LabStore()
  const editor = new LabEditor(nowhere, store, 'lab')
  const node = { node_id: 'n', x: 1, y: 2, locked: false } as LabNode
  const drawing = { drawing_id: 'd', x: 3, y: 4, locked: false } as LabDrawing
  store.nodes.put('n', node)
  store.drawings.put('d', drawing)
  const xs = () => [editor.moves.positionOf('n').value.x, editor.moves.positionOf('d').value.x]
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

test('locked objects can be selected, but not moved', () => {
  const store = new LabStore()
  const editor = new LabEditor(nowhere, store, 'lab')
  store.nodes.put('n', { node_id: 'n', x: 1, y: 2, locked: true } as LabNode)
  store.drawings.put('d', { drawing_id: 'd', x: 3, y: 4, locked: false } as LabDrawing)
  editor.select(['n', 'd'])
  expect([editor.selectedNodes.length, editor.selectedDrawings.length, editor.movable]).toEqual([1, 1, ['d']])
})

test('dragging a node does not move the others', () => {
  const { store, shown, move } = slowLab()
  move('a', 10)
  expect(shown()).toEqual([10, 100])
  const looked = vi.spyOn(store.nodes, 'get')
  move('a', 20)
  expect(shown()).toEqual([20, 100])
  expect(looked).not.toHaveBeenCalled()
})

/** A lab with two nodes, whose service answers a change when the test says so. */
function slowLab() {
  const asked: { readonly id: string; readonly x: number; readonly answer: (status?: number) => void }[] = []
  const client = new Patchbay({
    server: 'http://127.0.0.1:9',
    fetch: (url, { body }) =>
      new Promise((resolve) => {
        const { x = 0, y = 0 } = JSON.parse(String(body)) as { x?: number; y?: number }
        const id = url.slice(url.lastIndexOf('/') + 1)
        const answer = (status = 200) => {
          const headers = status === 200 ? {} : { 'x-patchbay-error': 'conflict' }
          const said = status === 200 ? { node_id: id, x, y, locked: false } : { message: 'no', status }
          resolve(Response.json(said, { status, headers }))
        }
        asked.push({ id, x, answer })
      }),
  })
  const store = new LabStore()
  for (const [id, x] of [
    ['a', 0],
    ['b', 100],
  ] as const)
    store.nodes.put(id, { node_id: id, x, y: 0, locked: false } as LabNode)
  const editor = new LabEditor(client, store, 'lab')
  const shown = () => ['a', 'b'].map((id) => editor.moves.positionOf(id).value.x)
  const move = (id: string, x: number) => editor.moves.drag(new Map([[id, { x, y: 0 }]]))
  return { asked, store, editor, shown, move }
}

test('a move that begins during the request of another move is not lost', async () => {
  const { asked, editor, shown, move } = slowLab()
  move('a', 10)
  const first = editor.moves.drop()
  await expect.poll(() => asked.length).toBe(1)
  move('b', 110)
  move('a', 20)
  const second = editor.moves.drop()
  expect(editor.hasUnsent).toBe(true)
  asked[0]?.answer()
  await first
  expect(shown()).toEqual([20, 110])
  // In the order in which they were made, and each one when the one before it has its answer.
  await expect
    .poll(() => asked.map(({ id, x }) => [id, x]))
    .toEqual([
      ['a', 10],
      ['a', 20],
      ['b', 110],
    ])
  for (const { answer } of asked) answer()
  await second
  expect([shown(), editor.hasUnsent]).toEqual([[20, 110], false])
})

test('nodes that are moved by keys one after the other are all moved', async () => {
  const { asked, editor, move } = slowLab()
  editor.select(['a'])
  editor.moves.nudge(editor.movable, 5, 0)
  editor.select(['b'])
  editor.moves.nudge(editor.movable, 5, 0)
  const ended = editor.moves.endNudge()
  await expect
    .poll(() => asked.map(({ id, x }) => [id, x]))
    .toEqual([
      ['a', 5],
      ['b', 105],
    ])
  for (const { answer } of asked) answer()
  await ended
  move('a', 5)
  await editor.moves.drop()
  expect(asked).toHaveLength(2)
})

test('a refused move is reverted, and the one after it stays', async () => {
  const { asked, editor, shown, move } = slowLab()
  move('a', 10)
  const first = editor.moves.drop()
  await expect.poll(() => asked.length).toBe(1)
  move('b', 110)
  asked[0]?.answer(409)
  await first
  expect(shown()).toEqual([0, 110])
  editor.moves.cancelDrag()
  expect(shown()).toEqual([0, 100])
})

test('an answer does not replace a newer event of the feed', async () => {
  const { asked, editor, store, shown, move } = slowLab()
  move('a', 10)
  const moved = editor.moves.drop()
  await expect.poll(() => asked.length).toBe(1)
  store.nodes.put('a', { node_id: 'a', x: 77, y: 0, locked: false } as LabNode)
  asked[0]?.answer()
  await moved
  expect(shown()[0]).toBe(77)
})

test('a lab has its new name when the service has accepted it, also before the event', async () => {
  const project = { project_id: 'lab', name: 'Old', revision: 1 } as LabProject
  const client = new Patchbay({
    server: 'http://127.0.0.1:9',
    fetch: async () => Response.json({ ...project, name: 'New', revision: 2 }),
  })
  const store = new LabStore()
  store.project.value = project
  await new LabEditor(client, store, 'lab').renameLab('New')
  expect(store.project.value).toMatchObject({ name: 'New' })
})

test('an undo reverts as many requests of an edit as the service took', async () => {
  const asked: string[] = []
  const client = new Patchbay({
    server: 'http://127.0.0.1:9',
    fetch: async (url, { method }) => {
      const path = new URL(url).pathname
      asked.push(`${method} ${path.slice(path.lastIndexOf('/') + 1)}`)
      if (method === 'DELETE') return new Response(null, { status: 204 })
      // The other port is taken: the link is not made again.
      if (path.endsWith('/links')) {
        const headers = { 'x-patchbay-error': 'conflict' }
        return Response.json({ message: 'taken', status: 409 }, { status: 409, headers })
      }
      return Response.json({ project_id: 'lab' })
    },
  })
  const editor = new LabEditor(client, new LabStore(), 'lab')
  const end = { node_id: 'a', adapter_number: 0, port_number: 0 }
  const link = { link_id: 'l', nodes: [end, { ...end, node_id: 'b' }] } as unknown as LabLink
  await editor.replug(link, end, { adapter_number: 0, port_number: 1 })
  await editor.back('undo')
  expect(asked).toEqual(['DELETE l', 'POST links', 'POST undo'])
})
