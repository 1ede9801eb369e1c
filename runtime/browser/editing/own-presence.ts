import { effect } from '@preact/signals'
import type { Patchbay } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { studentIn } from '../state/own-student.ts'
import { windowId } from '../state/window-id.ts'
import type { LabEditor } from './lab-editor.ts'

/** Selections that follow each other within this time are sent as one, ms. */
const gatherMs = 50
/** The service forgets a selection after 15 s, ms. */
const repeatMs = 10_000
/** The service takes no more ids. */
const maxShown = 200

/** Shows the others at the lab who is there, and what is selected, as long as the page is in front. The result ends that. */
export function showSelection(client: Patchbay, { store, selection }: LabEditor): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let current: readonly string[] = []
  const tell = async (project_id: string, shown: readonly string[]) => {
    const body = { client: windowId, selection: [...shown], name: studentIn(project_id) ?? null }
    const present = await client
      .call('POST /v2/projects/{project_id}/presence', { params: { project_id }, body })
      .catch(ignore('the next one is sent soon, and a lost connection is shown'))
    if (present) store.meetAll(present)
  }
  const send = async (shown: readonly string[]) => {
    const project = store.project.peek()
    if (project === undefined) return
    // Who has another page in front is not there.
    if (!document.hidden) await tell(project.project_id, shown)
    if (shown === current) timer = setTimeout(() => void send(shown), repeatMs)
  }
  const end = effect(() => {
    current = [...selection.value].slice(0, maxShown)
    if (store.project.value === undefined) return
    clearTimeout(timer)
    timer = setTimeout(() => void send(current), gatherMs)
  })
  return () => {
    end()
    current = []
    clearTimeout(timer)
  }
}
