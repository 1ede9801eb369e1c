import { useSignal } from '@preact/signals'
import { linksBetween } from '../editing/bulk-links.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'

/** Links all nodes of a pattern with all of another. */
export function BulkLinkDialog({ window: lab }: { window: LabWindow }) {
  const { store } = lab.editor
  const from = useSignal('')
  const to = useSignal('')
  const { ends, reasons } = linksBetween(store.nodes.values(), store.links.values(), [from.value, to.value])
  return (
    <ActionDialog
      title="Link nodes by their names"
      verb={`Make ${ends.length} links`}
      onSend={() => lab.editor.linkAll(ends)}
      onClose={() => lab.escape()}
    >
      {[
        { title: 'From', field: from, hint: 'leaf*' },
        { title: 'To', field: to, hint: 'spine*' },
      ].map(({ title, field, hint }) => (
        <div class="field" key={title}>
          <label for={`link-${title}`}>{title}</label>
          <input
            id={`link-${title}`}
            required
            autofocus={title === 'From'}
            autocomplete="off"
            spellcheck={false}
            placeholder={hint}
            value={field.value}
            onInput={(event) => {
              field.value = event.currentTarget.value
            }}
          />
        </div>
      ))}
      <p class="help">* stands for any text. Nodes that are linked already are left out.</p>
      {reasons.length > 0 && (
        <p class="reason" dir="auto">
          {reasons.length} pairs have no free ports: {reasons[0]}
        </p>
      )}
    </ActionDialog>
  )
}
