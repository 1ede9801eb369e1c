import { useSignal } from '@preact/signals'
import { Dialog } from '../parts/dialog.tsx'
import type { OpenConsole } from './dock.ts'

interface PasteProps {
  /** Name of the node. */
  readonly name: string
  readonly console: OpenConsole
  readonly onClose: () => void
}

/** A text for a console. The clipboard of scripts needs https; a field takes a paste everywhere. */
export function PasteDialog({ name, console: { send, terminal, screen, focus }, onClose }: PasteProps) {
  const text = useSignal(screen?.clipboard.value ?? '')
  const finish = (take: (text: string) => void) => {
    take(text.value)
    onClose()
    focus()
  }
  return (
    <Dialog title={`Paste into ${name}`} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          finish(terminal?.paste ?? send)
        }}
      >
        <div class="field">
          <label for="paste">Text</label>
          <textarea
            id="paste"
            rows={8}
            autofocus
            required
            spellcheck={false}
            value={text.value}
            onInput={(event) => {
              text.value = event.currentTarget.value
            }}
          />
        </div>
        {screen !== undefined && (
          <p class="help">
            It is typed by keys of a US keyboard. A guest that has an agent for its clipboard can have it there, too;
            what it copies is in this field.
          </p>
        )}
        <div class="row form-actions">
          <button type="submit" class="is-main">
            {screen === undefined ? 'Paste' : 'Type it'}
          </button>
          {screen !== undefined && (
            <button type="button" onClick={() => finish(screen.give)}>
              Into the clipboard
            </button>
          )}
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
    </Dialog>
  )
}
