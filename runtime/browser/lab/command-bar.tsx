import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { commandsInBar } from '../editing/commands.ts'
import { type Findable, foundBy } from '../editing/found-by.ts'
import type { LabWindow } from '../editing/lab-window.ts'
import { focusOnShape } from '../editing/panes.ts'
import { byName } from '../parts/by-name.ts'
import { Dialog } from '../parts/dialog.tsx'
import { stateWord } from '../state/node-phase.ts'
import { mayEdit } from '../state/session.ts'

interface Entry extends Findable {
  readonly id: string
  /** Undefined: it is not possible now. */
  readonly run: (() => void) | undefined
}

const maxEntries = 50
/** Why a command is grey: most are about what is selected. */
const notNow = 'not for what is selected'

/** Finds nodes, commands and templates by words. */
export function CommandBar({ window: lab }: { window: LabWindow }) {
  const words = useSignal('')
  const at = useSignal(0)
  const list = useRef<HTMLDivElement>(null)
  const close = () => {
    lab.dialog.value = undefined
  }
  const found = foundBy(words.value, entriesOf(lab)).slice(0, maxEntries)
  const index = Math.min(at.value, found.length - 1)
  useEffect(() => {
    list.current?.children[index]?.scrollIntoView({ block: 'nearest' })
  }, [index])
  const run = (entry: Entry | undefined) => {
    if (entry?.run === undefined) return
    close()
    entry.run()
  }
  return (
    <Dialog title="Find a node or a command" isPlain onClose={close}>
      <input
        class="bar-input"
        type="text"
        role="combobox"
        aria-expanded="true"
        aria-controls="bar-list"
        aria-activedescendant={found[index] && `bar-${found[index].id}`}
        aria-label="Find a node or a command"
        placeholder="Node, command or node type"
        value={words.value}
        onInput={(event) => {
          words.value = event.currentTarget.value
          at.value = 0
        }}
        onKeyDown={(event) => {
          const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
          if (step !== undefined) {
            event.preventDefault()
            at.value = (index + step + found.length) % Math.max(1, found.length)
          } else if (event.key === 'Enter') {
            event.preventDefault()
            run(found[index])
          }
        }}
      />
      <div class="bar-list" id="bar-list" role="listbox" aria-label="Found" ref={list}>
        {found.map((entry, number) => (
          // The field above has the focus, and takes the keys for the options.
          // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: see above
          <div
            key={entry.id}
            id={`bar-${entry.id}`}
            role="option"
            aria-selected={number === index}
            aria-disabled={entry.run === undefined}
            class={entry.run === undefined ? 'muted' : undefined}
            onClick={() => run(entry)}
            onPointerMove={() => {
              at.value = number
            }}
          >
            <bdi>{entry.title}</bdi>
            <span class="muted">{entry.hint}</span>
          </div>
        ))}
      </div>
      {found.length === 0 && <p class="muted bar-none">No node, command or node type matches.</p>}
    </Dialog>
  )
}

function entriesOf(lab: LabWindow): Entry[] {
  const { editor } = lab
  const nodes = editor.store.nodes
    .values()
    .toSorted(byName)
    .map(
      ({ node_id, name, node_type, status }): Entry => ({
        id: node_id,
        title: name,
        hint: `${node_type}, ${stateWord(status)}`,
        run() {
          lab.goTo(node_id)
          focusOnShape(node_id)
        },
      }),
    )
  const known = commandsInBar(lab).map(
    ({ command: { id, title, keys, run }, isPossible }): Entry => ({
      id,
      title,
      hint: isPossible ? (keys?.[0] ?? '') : notNow,
      run: isPossible ? () => run(lab) : undefined,
    }),
  )
  const templates = mayEdit()
    ? editor.templates.value.map(
        (template): Entry => ({
          id: template.template_id,
          title: `Add ${template.name}`,
          hint: 'node type',
          run: () => void lab.addInMiddle(template),
        }),
      )
    : []
  const [possible, others] = [known.filter((it) => it.run !== undefined), known.filter((it) => it.run === undefined)]
  return [...nodes, ...possible, ...templates, ...others]
}
