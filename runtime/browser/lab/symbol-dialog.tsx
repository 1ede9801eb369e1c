import { SymbolChoice } from '../canvas/symbol-choice.tsx'
import type { LabWindow } from '../editing/lab-window.ts'
import { Dialog } from '../parts/dialog.tsx'

/** The symbols, of which one is chosen for the selected nodes. */
export function SymbolDialog({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const [first, ...others] = editor.selectedNodes
  if (first === undefined) return null
  const close = () => {
    lab.dialog.value = undefined
  }
  return (
    <Dialog title={others.length === 0 ? `Symbol of ${first.name}` : 'Symbol of the selected nodes'} onClose={close}>
      <SymbolChoice
        chosen={editor.symbolOf(first)}
        onChoose={(symbol) => {
          void editor.changeSymbol(symbol)
          close()
        }}
      />
      <div class="row form-actions">
        <button type="button" onClick={close}>
          Cancel
        </button>
      </div>
    </Dialog>
  )
}
