import { useSignal } from '@preact/signals'
import { linksBetween } from '../editing/bulk-links.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'
import { counted } from '../parts/counted.ts'
import { TextField } from '../parts/text-field.tsx'

/** Links all nodes of a pattern with all of another. */
export function BulkLinkDialog({ window: lab }: { window: LabWindow }) {
  const { store } = lab.editor
  const from = useSignal('')
  const to = useSignal('')
  const { ends, reasons } = linksBetween(store.nodes.values(), store.links.values(), [from.value, to.value])
  return (
    <ActionDialog
      title="Link nodes by their names"
      verb={`Make ${counted(ends.length, 'link')}`}
      isReady={ends.length > 0}
      onSend={() => lab.editor.linkAll(ends)}
      onClose={() => lab.escape()}
    >
      {[
        { title: 'From', field: from, hint: 'leaf*' },
        { title: 'To', field: to, hint: 'spine*' },
      ].map(({ title, field, hint }) => (
        <TextField
          key={title}
          id={`link-${title}`}
          title={title}
          value={field}
          placeholder={hint}
          isFirst={title === 'From'}
        />
      ))}
      <p class="help">* stands for any text. Nodes that are already linked are skipped.</p>
      {reasons.length > 0 && (
        <p class="reason" dir="auto">
          No free ports for {counted(reasons.length, 'pair')}: {reasons[0]}
        </p>
      )}
    </ActionDialog>
  )
}
