import { useSignal } from '@preact/signals'
import type { LabWindow } from '../editing/lab-window.ts'
import { byName } from '../parts/by-name.ts'
import { Dialog } from '../parts/dialog.tsx'

/** The node types, of which one takes the place of the selected node. */
export function ReplaceDialog({ window: lab }: { window: LabWindow }) {
  const { editor } = lab
  const templates = editor.templates.value.toSorted(byName)
  const chosen = useSignal('')
  const [node] = editor.selectedNodes
  if (node === undefined) return null
  const close = () => {
    lab.dialog.value = undefined
  }
  const template = templates.find(({ template_id }) => template_id === chosen.value)
  return (
    <Dialog title={`Replace ${node.name}`} onClose={close}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          if (template === undefined) return
          void editor.replace(node, template)
          close()
        }}
      >
        <p class="muted">A node of another type takes its name, its place and its links.</p>
        <div class="field">
          <label for="replace-by">Replace by</label>
          <select
            id="replace-by"
            autofocus
            value={chosen.value}
            onChange={({ currentTarget }) => {
              chosen.value = currentTarget.value
            }}
          >
            <option value="">Choose a node type</option>
            {templates.map(({ template_id, name }) => (
              <option key={template_id} value={template_id}>
                {name}
              </option>
            ))}
          </select>
        </div>
        <div class="row form-actions">
          <button type="submit" class="is-main" disabled={template === undefined}>
            Replace
          </button>
          <button type="button" onClick={close}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}
