import { useEffect, useMemo, useRef } from 'preact/hooks'
import { FieldDraft } from '../parts/draft.ts'

interface NameProps {
  readonly name: string
  readonly label: string
  readonly isDisabled: boolean
  /** Whether the field takes the focus. */
  readonly isWanted?: boolean
  readonly onFocused?: () => void
  /** Resolves when the name was taken or refused. */
  readonly onRename: (name: string) => Promise<unknown>
}

/** A title that is edited in place: Enter takes the new name, Escape the old one. */
export function EditableName({ name, label, isDisabled, isWanted = false, onFocused, onRename }: NameProps) {
  const input = useRef<HTMLInputElement>(null)
  const typed = useMemo(() => new FieldDraft<string>(), [])
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
      value={typed.value ?? name}
      dir="auto"
      maxLength={255}
      spellcheck={false}
      autocomplete="off"
      readOnly={isDisabled}
      onInput={(event) => {
        typed.value = event.currentTarget.value
      }}
      onKeyDown={(event) => {
        if (event.key === 'Escape') typed.value = undefined
        if (event.key === 'Enter' || event.key === 'Escape') event.currentTarget.blur()
      }}
      onBlur={() => {
        const wanted = typed.value?.trim() ?? ''
        if (wanted === '' || wanted === name) typed.value = undefined
        else void typed.submit(wanted, () => onRename(wanted))
      }}
    />
  )
}
