import { useEffect, useRef } from 'preact/hooks'

interface NameProps {
  readonly name: string
  readonly label: string
  readonly isDisabled: boolean
  /** Whether the field takes the focus. */
  readonly isWanted?: boolean
  readonly onFocused?: () => void
  readonly onRename: (name: string) => void
}

/** A title that is edited in place: Enter takes the new name, Escape the old one. */
export function EditableName({ name, label, isDisabled, isWanted = false, onFocused, onRename }: NameProps) {
  const input = useRef<HTMLInputElement>(null)
  useEffect(() => {
    if (!isWanted) return
    input.current?.focus()
    input.current?.select()
    onFocused?.()
  }, [isWanted])
  return (
    <input
      ref={input}
      class="title"
      aria-label={label}
      value={name}
      dir="auto"
      maxLength={255}
      spellcheck={false}
      autocomplete="off"
      readOnly={isDisabled}
      onKeyDown={(event) => {
        if (event.key === 'Escape') event.currentTarget.value = name
        if (event.key === 'Enter' || event.key === 'Escape') event.currentTarget.blur()
      }}
      onBlur={(event) => {
        const wanted = event.currentTarget.value.trim()
        if (wanted === '' || wanted === name) event.currentTarget.value = name
        else onRename(wanted)
      }}
    />
  )
}
