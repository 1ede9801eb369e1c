import { useSignal } from '@preact/signals'
import { ActionDialog } from '../parts/action-dialog.tsx'
import type { OpenConsole } from './dock.ts'

interface PasteProps {
  /** Name of the node. */
  readonly name: string
  readonly console: OpenConsole
  readonly onClose: () => void
}

/** A text for a console. The clipboard of scripts needs https; a field takes a paste everywhere. */
export function PasteDialog({ name, console: { send, terminal, screen }, onClose }: PasteProps) {
  const text = useSignal(screen?.clipboard.value ?? '')
  return (
    <ActionDialog
      title={`Paste into ${name}`}
      verb={screen === undefined ? 'Paste' : 'Type it'}
      onSend={async () => (terminal?.paste ?? send)(text.value)}
      onClose={onClose}
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
        <>
          <p class="help">
            The text is typed with the keys of a US keyboard. If the guest has an agent, this field shows what the guest
            copies.
          </p>
          <button
            type="button"
            onClick={() => {
              screen.give(text.value)
              onClose()
            }}
          >
            Copy it to the clipboard of the guest
          </button>
        </>
      )}
    </ActionDialog>
  )
}
