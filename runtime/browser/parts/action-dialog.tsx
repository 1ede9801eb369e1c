import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { messageOf } from '../state/notices.ts'
import { Dialog } from './dialog.tsx'
import { ErrorMessage } from './error-message.tsx'

interface ActionProps {
  readonly title: string
  /** The text of the button. */
  readonly verb: string
  readonly isDanger?: boolean
  /** Whether there is something to do. */
  readonly isReady?: boolean
  /** Does it. A rejection is shown, and the dialog stays. */
  readonly onSend: () => Promise<unknown>
  readonly onClose: () => void
  readonly children: ComponentChildren
  /** Another way to what it is for. */
  readonly below?: ComponentChildren
}

/** A dialog that does one thing, and closes when it is done. */
export function ActionDialog({
  title,
  verb,
  isDanger = false,
  isReady = true,
  onSend,
  onClose,
  children,
  below,
}: ActionProps) {
  const failure = useSignal('')
  const isSending = useSignal(false)
  const send = async () => {
    // The button is disabled only when it is drawn again, which may be after a second press.
    if (isSending.value) return
    isSending.value = true
    try {
      await onSend()
      onClose()
    } catch (error) {
      failure.value = messageOf(error)
    } finally {
      isSending.value = false
    }
  }
  return (
    <Dialog title={title} isWide={below !== undefined} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault()
          void send()
        }}
      >
        {children}
        <ErrorMessage text={failure.value} />
        <div class="row form-actions">
          <button
            type="submit"
            class={isDanger ? 'is-danger is-main' : 'is-main'}
            // Where it asks a question, and not for a text. Otherwise a link in the question would have the focus.
            autofocus={isDanger}
            disabled={isSending.value || !isReady}
          >
            {verb}
          </button>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
        </div>
      </form>
      {below}
    </Dialog>
  )
}
