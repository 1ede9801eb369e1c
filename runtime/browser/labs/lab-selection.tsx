import { type Signal, useSignal } from '@preact/signals'
import type { LabProject } from '../../../src/client/patchbay.ts'
import { PatchbayError } from '../../../src/client/patchbay.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { counted } from '../parts/counted.ts'
import { Icon } from '../parts/icon.tsx'
import { notify } from '../state/notices.ts'
import type { LabList } from './lab-list.ts'
import { failuresText, selectedLabs, withEach } from './selected-labs.ts'

interface SelectionProps {
  readonly list: LabList
  /** Ids of the labs that are shown. */
  readonly shown: readonly string[]
  readonly chosen: Signal<ReadonlySet<string>>
}

/** What is done with labs that were selected in the list. */
export function LabSelection({ list, shown, chosen }: SelectionProps) {
  const isAsking = useSignal(false)
  const isBusy = useSignal(false)
  const labs = selectedLabs(list.labs.values(), chosen.value, shown)
  const choose = (ids: readonly string[]) => {
    chosen.value = new Set(ids)
  }
  /** Does something with each of them, and says what became of it. */
  const each = async (act: (lab: LabProject) => Promise<unknown>, done: string, not: string) => {
    isBusy.value = true
    const failed = await withEach(labs, act)
    isBusy.value = false
    const count = labs.length - failed.length
    if (count > 0) notify('done', `${counted(count, 'lab')} ${done}.`)
    if (failed.length > 0) notify('error', failuresText(failed, labs.length, not))
    return failed.length === 0
  }
  const remove = async () => {
    const gone = new Set(labs.map(({ project_id }) => project_id))
    // Those that the search hides stay selected.
    if (await each((lab) => removed(list, lab), 'deleted', 'could not be deleted'))
      choose([...chosen.value].filter((id) => !gone.has(id)))
  }
  if (labs.length === 0) return null
  return (
    <div class="row selection" role="group" aria-label="Selected labs">
      <b role="status">{labs.length} selected</b>
      <button
        type="button"
        disabled={isBusy.value}
        onClick={() => void each((lab) => list.start(lab), 'started', 'did not start')}
      >
        <Icon name="play" /> Start
      </button>
      <button
        type="button"
        disabled={isBusy.value}
        onClick={() => void each((lab) => list.stop(lab), 'stopped', 'did not stop')}
      >
        <Icon name="stop" /> Stop
      </button>
      <button
        type="button"
        class="is-danger"
        disabled={isBusy.value}
        onClick={() => {
          isAsking.value = true
        }}
      >
        <Icon name="trash" /> Delete
      </button>
      <span class="spacer" />
      {labs.length < shown.length && (
        <button type="button" class="is-quiet" onClick={() => choose([...new Set([...chosen.value, ...shown])])}>
          Select all
        </button>
      )}
      <button type="button" class="is-quiet" onClick={() => choose([])}>
        Select none
      </button>
      {isAsking.value && (
        <ActionDialog
          title={`Delete ${counted(labs.length, 'lab')}?`}
          verb="Delete"
          isDanger
          onSend={remove}
          onClose={() => {
            isAsking.value = false
          }}
        >
          <p>
            <bdi>
              <b>{labs.map(({ name }) => name).join(', ')}</b>
            </bdi>{' '}
            {labs.length === 1 ? 'is' : 'are'} deleted with all nodes and files. This cannot be undone.
          </p>
        </ActionDialog>
      )}
    </div>
  )
}

/** Deletes a lab. One that somebody else has deleted is deleted. */
async function removed(list: LabList, lab: LabProject): Promise<void> {
  try {
    await list.remove(lab)
  } catch (error) {
    if (!(error instanceof PatchbayError) || error.status !== 404) throw error
  }
}
