import type { Signal } from '@preact/signals'

/** A field whose words choose from a list; `label` says from which. */
export const SearchField = ({ label, words }: { label: string; words: Signal<string> }) => (
  <input
    type="search"
    placeholder="Search"
    aria-label={label}
    value={words.value}
    onInput={(event) => {
      words.value = event.currentTarget.value
    }}
  />
)
