import { signal } from '@preact/signals'
import { expect, test, vi } from 'vitest'
import {
  commandOf,
  commands,
  commandsInBar,
  isCharacterKey,
  isTaken,
  keyOf,
  type MenuSubject,
  menuOf,
} from '../../../runtime/browser/editing/commands.ts'
import type { LabWindow } from '../../../runtime/browser/editing/lab-window.ts'

const press = (key: string, held: 'ctrl' | 'meta' | 'shift' | 'ctrl shift' | '' = '') => ({
  ...{ key, altKey: false, ctrlKey: held.includes('ctrl'), metaKey: held === 'meta', shiftKey: held.includes('shift') },
})

test('no key has two commands', () => {
  const keys = commands.flatMap((it) => it.keys ?? [])
  expect(keys.length).toBe(new Set(keys).size)
})

test('keys are found as people press them', () => {
  expect(commandOf(press('z', 'ctrl'))?.id).toBe('undo')
  expect(commandOf(press('z', 'meta'))?.id).toBe('undo')
  expect(commandOf(press('Z', 'ctrl shift'))?.id).toBe('redo')
  expect(commandOf(press('s'))?.id).toBe('start')
  // A question mark needs Shift on most keyboards, and not on all.
  expect(commandOf(press('?', 'shift'))?.id).toBe('keys')
  expect(commandOf(press('ArrowLeft', 'shift'))?.id).toBe('nudge-Left')
  expect(commandOf(press('s', 'ctrl'))).toBe(undefined)
  expect(keyOf(press('Delete'))).toBe('Delete')
})

test('keys of one character are distinguished from keys that no text has', () => {
  expect(['s', 'S', '?', '+', '/', 'é'].map((key) => isCharacterKey(press(key)))).toEqual(Array(6).fill(true))
  expect(['Escape', 'F2', 'ArrowLeft', 'Delete'].map((key) => isCharacterKey(press(key)))).toEqual(Array(4).fill(false))
  expect(isCharacterKey(press('z', 'ctrl'))).toBe(false)
})

/** Whether a part of the page takes a key; `parts`: those around the focus. */
const takenIn = (parts: string, key: ReturnType<typeof press>) =>
  isTaken(key, (asked) => asked.split(', ').some((it) => parts.split(' ').includes(it)))

test('the table of packets has its own keys, and keys with Ctrl are commands', () => {
  expect(takenIn('.packets', press('z'))).toBe(true)
  expect(takenIn('.packets', press('ArrowDown'))).toBe(true)
  expect(takenIn('.packets', press('z', 'ctrl'))).toBe(false)
  expect(takenIn('.packets', press('z', 'meta'))).toBe(false)
  // The filter above the table is a field.
  expect(takenIn('.packets input', press('z', 'ctrl'))).toBe(true)
})

test('a console takes all keys, and F6 leaves a field', () => {
  expect(['F6', 'z'].map((key) => takenIn('.console textarea', press(key)))).toEqual([true, true])
  expect(['F6', 'z'].map((key) => takenIn('input', press(key)))).toEqual([false, true])
  expect(takenIn('', press('z'))).toBe(false)
})

test('a context menu has the commands for what is selected that are possible now', () => {
  const shown = (
    subject: MenuSubject,
    states: readonly string[],
    copied: readonly string[] = [],
    phases = new Map<string, string>(),
  ) => {
    const nodes = states.map((status, index) => ({ node_id: `${index}`, status }))
    const selection = signal(new Set(nodes.map(({ node_id }) => node_id)))
    const editor = {
      selection,
      selectedNodes: nodes,
      selectedDrawings: [],
      selectedLinks: [],
      store: { phases: signal(phases) },
    }
    return menuOf(subject, { editor, copied: signal(copied) } as unknown as LabWindow).map(({ id }) => id)
  }
  vi.stubGlobal('document', { getSelection: () => null })
  expect(shown('node', ['stopped'])).toEqual(
    expect.arrayContaining(['start', 'console', 'connect', 'duplicate', 'rename', 'symbol', 'pane', 'delete']),
  )
  // One link needs one node, and one name, too.
  expect(shown('node', ['stopped', 'started'])).not.toContain('connect')
  expect(shown('node', ['stopped', 'started'])).not.toContain('rename')
  // What a node does already is not offered; a start that is under way can be stopped.
  const runs = (states: readonly string[], phases?: Map<string, string>) =>
    shown('node', states, [], phases).filter((id) => id === 'start' || id === 'stop')
  expect(runs(['stopped'])).toEqual(['start'])
  expect(runs(['started'])).toEqual(['stop'])
  expect(runs(['suspended'])).toEqual(['start', 'stop'])
  expect(runs(['stopped', 'started'])).toEqual(['start', 'stop'])
  expect(runs(['stopped'], new Map([['0', 'starting']]))).toEqual(['start', 'stop'])
  expect(shown('map', [])).not.toContain('paste')
  expect(shown('map', [], ['1'])).toContain('paste')
  vi.unstubAllGlobals()
})

test('the command bar has all commands, those that are not possible now at the end, and tasks only in a lab with tasks', () => {
  vi.stubGlobal('document', { getSelection: () => null })
  const inBar = (hasTasks: boolean) => {
    const editor = {
      selection: signal(new Set()),
      ...{
        selectedNodes: [],
        selectedDrawings: [],
        selectedLinks: [],
        movable: [],
        history: { edits: signal(undefined) },
      },
      edits: signal(undefined),
    }
    const window = { editor, copied: signal([]), hasTasks: signal(hasTasks) } as unknown as LabWindow
    return commandsInBar(window).map(({ command: { id }, isPossible }) => [id, isPossible] as const)
  }
  const idsOf = (list: readonly (readonly [string, boolean])[]) => list.map(([id]) => id).toSorted()
  const all = commands.map(({ id }) => id).filter((id) => id !== 'find' && id !== 'escape')
  expect(idsOf(inBar(true))).toEqual(all.toSorted())
  expect(idsOf(inBar(false))).toEqual(all.filter((id) => id !== 'tasks').toSorted())
  const possible = inBar(false).map(([, isPossible]) => isPossible)
  expect(possible).toEqual(possible.toSorted((a, b) => Number(b) - Number(a)))
  expect(inBar(false)).toContainEqual(['stop', false])
  vi.unstubAllGlobals()
})
