import type { Signal } from '@preact/signals'

interface TextFieldProps {
  readonly id: string
  readonly title: string
  readonly value: Signal<string>
  readonly placeholder?: string
  /** Whether it has the focus when it is shown. */
  readonly isFirst?: boolean
}

/** A line of text that a dialog needs, such as a name. */
export const TextField = ({ id, title, value, placeholder, isFirst = true }: TextFieldProps) => (
  <div class="field">
    <label for={id}>{title}</label>
    <input
      id={id}
      required
      maxLength={255}
      autocomplete="off"
      spellcheck={false}
      autofocus={isFirst}
      // What is there already is replaced by what is typed.
      onFocus={(event) => event.currentTarget.select()}
      placeholder={placeholder}
      value={value.value}
      onInput={(event) => {
        value.value = event.currentTarget.value
      }}
    />
  </div>
)
