import type { LabWindow } from '../editing/lab-window.ts'
import { ActionDialog } from '../parts/action-dialog.tsx'

/** Asks before machines are deleted that run: what they have in memory is lost, and undo brings them back stopped. */
export function DeleteDialog({ window: lab }: { window: LabWindow }) {
  const running = lab.runningMachines
  const names = running.map(({ name }) => name).join(', ')
  return (
    <ActionDialog
      title={running.length === 1 ? `Delete ${names}?` : `Delete ${running.length} running machines?`}
      verb="Delete"
      isDanger
      onSend={() => lab.editor.removeSelected()}
      onClose={() => lab.escape()}
    >
      <p>
        <bdi>{names}</bdi> {running.length === 1 ? 'is' : 'are'} running. Undo brings{' '}
        {running.length === 1 ? 'it' : 'them'} back stopped.
      </p>
    </ActionDialog>
  )
}
