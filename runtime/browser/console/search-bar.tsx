import { useSignal } from '@preact/signals'
import type { Dock } from './dock.ts'

/** Finds a text in the console that is active. */
export function SearchBar({ dock }: { dock: Dock }) {
  const words = useSignal('')
  const isFound = useSignal(true)
  const find = (isBack: boolean) => {
    isFound.value = words.value === '' || dock.console(dock.active.value)?.terminal?.find(words.value, isBack) === true
  }
  const close = () => {
    dock.isSearching.value = false
    dock.console(dock.active.value)?.focus()
  }
  return (
    <div class="search-bar">
      <input
        type="search"
        autofocus
        ref={(input) => input?.focus()}
        aria-label="Search the console"
        placeholder="Search"
        spellcheck={false}
        aria-invalid={!isFound.value}
        onInput={(event) => {
          words.value = event.currentTarget.value
          find(true)
        }}
        onKeyDown={(event) => {
          event.stopPropagation()
          if (event.key === 'Escape') close()
          if (event.key === 'Enter') find(!event.shiftKey)
        }}
      />
      <button type="button" onClick={() => find(true)}>
        Previous
      </button>
      <button type="button" onClick={() => find(false)}>
        Next
      </button>
      <span class="muted" role="status">
        {isFound.value ? '' : 'Not found'}
      </span>
    </div>
  )
}
