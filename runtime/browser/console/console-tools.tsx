import { useSignal } from '@preact/signals'
import type { LabNode } from '../../../src/client/patchbay.ts'
import { saveFile } from '../parts/downloads.ts'
import { IconButton } from '../parts/icon-button.tsx'
import { consoleKindOf } from './console-kind.ts'
import type { Dock, OpenConsole } from './dock.ts'
import { PasteDialog } from './paste-dialog.tsx'

/** What can be done with the console of a node. */
export function ConsoleTools({ node, dock, tab }: { node: LabNode; dock: Dock; tab: string }) {
  const { isSearching } = dock
  const isPasting = useSignal(false)
  const { name } = node
  const console = dock.console(tab)
  return (
    <>
      {consoleKindOf(node) === 'screen' ? (
        <button
          type="button"
          class="is-quiet"
          title="Press Ctrl-Alt-Del in the guest"
          onClick={() => {
            console?.screen?.pressCtrlAltDel()
            console?.focus()
          }}
        >
          Ctrl-Alt-Del
        </button>
      ) : (
        <>
          <IconButton
            icon="search"
            title="Search the console"
            isOn={isSearching.value}
            onClick={() => {
              isSearching.value = !isSearching.value
            }}
          />
          <IconButton icon="download" title="Save what the console shows" onClick={() => save(console, node)} />
        </>
      )}
      <IconButton
        icon="paste"
        title="Paste a text"
        onClick={() => {
          isPasting.value = true
        }}
      />
      {isPasting.value && console !== undefined && (
        <PasteDialog
          name={name}
          console={console}
          onClose={() => {
            isPasting.value = false
            // The dialog gives the focus back to its button when it goes.
            setTimeout(console.focus)
          }}
        />
      )}
    </>
  )
}

function save(console: OpenConsole | undefined, { name }: LabNode): void {
  const text = console?.terminal?.text() ?? ''
  saveFile(`${name}.log`, new Blob([text, '\n'], { type: 'text/plain' }))
}
