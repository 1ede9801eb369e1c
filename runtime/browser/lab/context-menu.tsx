import { useRef } from 'preact/hooks'
import { type EditorCommand, menuOf } from '../editing/commands.ts'
import { keyText } from '../editing/key-list.tsx'
import type { LabWindow } from '../editing/lab-window.ts'
import { stepOf, useFloating } from '../parts/floating.ts'

interface MenuProps {
  readonly window: LabWindow
  readonly menu: NonNullable<LabWindow['menu']['value']>
}

/** The commands for what is selected, where the pointer or the focus is. */
export function ContextMenu({ window: lab, menu: { subject, at } }: MenuProps) {
  const element = useRef<HTMLDivElement>(null)
  const entries = menuOf(subject, lab)
  const close = () => {
    lab.menu.value = undefined
  }
  const goBack = useFloating(element, at, close)
  const run = (command: EditorCommand) => {
    // A command may move the focus.
    goBack()
    command.run(lab)
    close()
  }
  return (
    <div
      ref={element}
      class="context-menu"
      role="menu"
      aria-label={`Menu of the ${subject}`}
      onKeyDown={(event) => {
        event.stopPropagation()
        const items = [...event.currentTarget.querySelectorAll('button')]
        const now = items.indexOf(document.activeElement as HTMLButtonElement)
        const next = nextItem(event.key, now, entries)
        if (next === undefined && event.key !== 'Escape' && event.key !== 'Tab') return
        event.preventDefault()
        if (next !== undefined) return items.at(next % items.length)?.focus()
        goBack()
        close()
      }}
      onContextMenu={(event) => event.preventDefault()}
    >
      {entries.map((command) => (
        <button
          key={command.id}
          type="button"
          role="menuitem"
          class={command.id === 'delete' ? 'is-danger' : undefined}
          onClick={() => run(command)}
          onPointerMove={(event) => event.currentTarget.focus()}
        >
          <span>{command.menus?.[subject]}</span>
          {command.keys?.[0] !== undefined && <kbd>{keyText(command.keys[0])}</kbd>}
        </button>
      ))}
      {entries.length === 0 && <p class="muted">Nothing can be done here.</p>}
    </div>
  )

  /** The entry to which a key goes: beside the present one, the first, the last, or the next with that letter. */
  function nextItem(key: string, now: number, all: readonly EditorCommand[]): number | undefined {
    const step = stepOf(key, now)
    if (step !== undefined || key.length !== 1) return step
    const letter = key.toLowerCase()
    const matches = all.flatMap((it, index) => (it.menus?.[subject]?.toLowerCase().startsWith(letter) ? index : []))
    return matches.find((index) => index > now) ?? matches[0]
  }
}
