import { useSignal } from '@preact/signals'
import type { LabSnapshot } from '../../../src/client/patchbay.ts'
import type { LabEditor } from '../editing/lab-editor.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { Icon } from '../parts/icon.tsx'
import { IconButton } from '../parts/icon-button.tsx'
import { TextField } from '../parts/text-field.tsx'
import { hasAllLabs, mayEdit } from '../state/session.ts'

type Open = { readonly kind: 'take' } | { readonly kind: 'restore' | 'delete'; readonly snapshot: LabSnapshot }

/** The snapshots of a lab: taken, restored and deleted here. */
export function SnapshotsPanel({ editor }: { editor: LabEditor }) {
  const dialog = useSignal<Open | undefined>(undefined)
  const name = useSignal('')
  const { value: open } = dialog
  const snapshots = editor.store.snapshots.values().toSorted((a, b) => b.created_at - a.created_at)
  /** Students keep the snapshot to which a reset goes back. */
  const start = editor.store.project.value?.class?.start_snapshot_id
  const close = () => {
    dialog.value = undefined
  }
  return (
    <section>
      <div class="row">
        <h3>Snapshots</h3>
        <span class="spacer" />
        {mayEdit() && (
          <button
            type="button"
            onClick={() => {
              name.value = `Snapshot ${snapshots.length + 1}`
              dialog.value = { kind: 'take' }
            }}
          >
            <Icon name="plus" /> Take snapshot
          </button>
        )}
      </div>
      {snapshots.length === 0 && <p class="muted">A snapshot keeps nodes, links, drawings, files and memory.</p>}
      <ul class="snapshots">
        {snapshots.map((snapshot) => (
          <li key={snapshot.snapshot_id}>
            <span>
              <bdi>{snapshot.name}</bdi> <small>{new Date(snapshot.created_at * 1000).toLocaleString()}</small>
            </span>
            {mayEdit() && (
              <>
                <button
                  type="button"
                  onClick={() => {
                    dialog.value = { kind: 'restore', snapshot }
                  }}
                >
                  Restore
                </button>
                {(hasAllLabs() || snapshot.snapshot_id !== start) && (
                  <IconButton
                    icon="trash"
                    title={`Delete ${snapshot.name}`}
                    onClick={() => {
                      dialog.value = { kind: 'delete', snapshot }
                    }}
                  />
                )}
              </>
            )}
          </li>
        ))}
      </ul>
      {open?.kind === 'take' && (
        <ActionDialog
          title="Take a snapshot"
          verb="Take"
          onSend={() => editor.takeSnapshot(name.value.trim())}
          onClose={close}
        >
          <TextField id="snapshot-name" title="Name" value={name} />
        </ActionDialog>
      )}
      {open !== undefined && open.kind !== 'take' && (
        <ActionDialog
          title={open.kind === 'restore' ? 'Restore the snapshot?' : 'Delete the snapshot?'}
          verb={open.kind === 'restore' ? 'Restore' : 'Delete'}
          isDanger
          onSend={() =>
            open.kind === 'restore' ? editor.restoreSnapshot(open.snapshot) : editor.deleteSnapshot(open.snapshot)
          }
          onClose={close}
        >
          <p>
            {open.kind === 'restore'
              ? 'The nodes of the lab are stopped, and the whole lab is restored to that state: '
              : 'It cannot be recovered afterwards: '}
            <b>
              <bdi>{open.snapshot.name}</bdi>
            </b>
            .
          </p>
        </ActionDialog>
      )}
    </section>
  )
}
