import type { ComponentChildren } from 'preact'

interface RadioGroupProps<T extends string> {
  /** What is chosen. */
  readonly label: string
  readonly value: T
  readonly options: readonly (readonly [value: T, shown: ComponentChildren])[]
  readonly onChange: (value: T) => void
}

/** A choice of one among a few, side by side. */
export const RadioGroup = <T extends string>({ label, value, options, onChange }: RadioGroupProps<T>) => (
  <div class="radio-group" role="radiogroup" aria-label={label}>
    {options.map(([it, shown]) => (
      <label key={it} class={it === value ? 'is-active' : ''}>
        <input type="radio" name={label} checked={it === value} onChange={() => onChange(it)} />
        {shown}
      </label>
    ))}
  </div>
)
