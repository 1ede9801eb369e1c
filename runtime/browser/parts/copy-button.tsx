import { useSignal } from '@preact/signals'
import { Icon } from './icon.tsx'

/** Copies a text; `what` is its name for screen readers, `label` a text beside the icon. */
export function CopyButton({ text, what, label }: { text: string; what: string; label?: string }) {
  const isCopied = useSignal(false)
  return (
    <button
      type="button"
      class={label === undefined ? 'is-quiet' : undefined}
      aria-label={isCopied.value ? `Copied ${what}` : `Copy ${what}`}
      title={`Copy ${what}`}
      onClick={(event) => {
        copy(text, event.currentTarget)
        isCopied.value = true
      }}
    >
      <Icon name={isCopied.value ? 'check' : 'copy'} /> {label}
    </button>
  )
}

/** The clipboard of scripts needs https; a selection is copied everywhere. */
function copy(text: string, beside: Element): void {
  const area = document.createElement('textarea')
  area.value = text
  area.className = 'hidden'
  beside.after(area)
  area.select()
  document.execCommand('copy')
  area.remove()
}
