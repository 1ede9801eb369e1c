import { expect, onTestFinished, test, vi } from 'vitest'
import { LabEditor } from '../../../runtime/browser/editing/lab-editor.ts'
import { showSelection } from '../../../runtime/browser/editing/own-presence.ts'
import { LabStore } from '../../../runtime/browser/state/lab-store.ts'
import { keepStudent } from '../../../runtime/browser/state/own-student.ts'
import { type LabProject, Patchbay } from '../../../src/client/patchbay.ts'

/** The page of a tab, in front or not, and what the tab keeps. */
function stubPage(document: { hidden: boolean }): void {
  const kept = new Map<string, string>()
  vi.useFakeTimers()
  vi.stubGlobal('document', document)
  vi.stubGlobal('sessionStorage', {
    getItem: (key: string) => kept.get(key) ?? null,
    setItem: (key: string, value: string) => kept.set(key, value),
  })
  onTestFinished(() => {
    vi.useRealTimers()
    vi.unstubAllGlobals()
  })
}

test('who has a lab in front is there, also without a selection, and gone with the page in the back', async () => {
  const document = { hidden: false }
  stubPage(document)
  const sent: unknown[] = []
  const client = new Patchbay({
    server: 'http://127.0.0.1:9',
    fetch: async (_, { body }) => {
      sent.push((JSON.parse(String(body)) as { selection: unknown }).selection)
      // The lab may not be open yet at the first one.
      return sent.length === 1 ? new Response('{}', { status: 404 }) : Response.json([])
    },
  })
  const store = new LabStore()
  const editor = new LabEditor(client, store, 'lab')
  store.project.value = { project_id: 'p' } as LabProject
  const end = showSelection(client, editor)
  await vi.advanceTimersByTimeAsync(21_000)
  expect(sent).toEqual([[], [], []])
  document.hidden = true
  await vi.advanceTimersByTimeAsync(20_000)
  expect(sent).toHaveLength(3)
  document.hidden = false
  await vi.advanceTimersByTimeAsync(10_000)
  editor.select(['n'])
  await vi.advanceTimersByTimeAsync(100)
  expect(sent.slice(3)).toEqual([[], ['n']])
  end()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(sent).toHaveLength(5)
})

test('a tab that the link of a student opened says so in the lab of the link, and in no other', async () => {
  stubPage({ hidden: false })
  const sent: unknown[] = []
  const client = new Patchbay({
    server: 'http://127.0.0.1:9',
    fetch: async (_, { body }) => {
      sent.push((JSON.parse(String(body)) as { name: unknown }).name)
      return Response.json([])
    },
  })
  keepStudent({ project_id: 'p', student: 'Anna' })
  for (const project_id of ['p', 'another']) {
    const store = new LabStore()
    store.project.value = { project_id } as LabProject
    const end = showSelection(client, new LabEditor(client, store, 'lab'))
    await vi.advanceTimersByTimeAsync(100)
    end()
  }
  expect(sent).toEqual(['Anna', null])
})
