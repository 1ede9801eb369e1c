import { effect } from '@preact/signals'
import type { Patchbay } from '../../../src/client/patchbay.ts'
import { ignore } from '../../../src/lib/async/ignore.ts'
import { windowId } from '../state/window-id.ts'
import type { LabEditor } from './lab-editor.ts'

/** Selections that follow each other within this time are sent as one, ms. */
const gatherMs = 50
/** The service forgets a selection after 15 s, ms. */
const repeatMs = 10_000
/** The service takes no more ids. */
const maxShown = 200

/** Shows the selection to the others at the lab. The result ends that. */
export function showSelection(client: Patchbay, { store, selection }: LabEditor): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined
  let current: readonly string[] = []
  const send = async (shown: readonly string[]) => {
    const project = store.project.peek()
    if (project === undefined) return
    const present = await client
      .call('POST /v2/projects/{project_id}/presence', {
        params: { project_id: project.project_id },
        body: { client: windowId, selection: [...shown] },
      })
      .catch(ignore('the next one is sent soon, and a lost connection is shown'))
    if (present) store.meetAll(present)
    if (shown === current && shown.length > 0) timer = setTimeout(() => void send(shown), repeatMs)
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
