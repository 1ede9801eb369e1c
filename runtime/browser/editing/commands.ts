import type { LabEdits } from '../../../src/client/patchbay.ts'
import { drawables } from '../drawings/shape.ts'
import { mayEdit } from '../state/session.ts'
import { aligned, distributed } from './align.ts'
import type { LabWindow } from './lab-window.ts'
import { focusOnShape, turnPane } from './panes.ts'
import { isReplaceable } from './replaceable.ts'

/** What a context menu is about: what is selected, or the map itself. */
export type MenuSubject = 'node' | 'link' | 'drawing' | 'map'

/** Something that a user does by a key, by a context menu, or by the command bar. */
export interface EditorCommand {
  readonly id: string
  readonly title: string
  /** Keys, such as `Ctrl+Z`; on a Mac Ctrl is Cmd. The first is shown. */
  readonly keys?: readonly string[]
  /** Its text in the context menus that have it, which say what they are about. */
  readonly menus?: Partial<Readonly<Record<MenuSubject, string>>>
  /** What it is about now, after its title. */
  readonly detail?: (window: LabWindow) => string | undefined
  /** Whether it changes the lab. */
  readonly isEdit?: boolean
  /** Whether the lab has what it is about: without, nothing speaks of it. Absent: always. */
  readonly isThere?: (window: LabWindow) => boolean
  /** Absent: always. */
  readonly isPossible?: (window: LabWindow) => boolean
  /** Whether a context menu offers it. Absent: always. Its key works all the same: the page may not know yet what the last key did. */
  readonly isOffered?: (window: LabWindow) => boolean
  readonly run: (window: LabWindow) => void
}

const hasNodes = ({ editor }: LabWindow) => editor.selectedNodes.length > 0
const hasOneNode = ({ editor }: LabWindow) => editor.selection.value.size === 1 && editor.selectedNodes.length === 1
const canMove = ({ editor }: LabWindow) => editor.movable.length > 0
const canRestack = ({ editor }: LabWindow) => editor.selectedDrawings.some((drawing) => !drawing.locked)
/** An edit that can be undone, such as `delete R1 (ada)`. */
const nameOfEdit = (edit: LabEdits['undo'] | undefined) =>
  edit ? `${edit.text}${edit.by === null ? '' : ` (${edit.by})`}` : undefined
/** A text that is selected on the page is what Ctrl+C copies. */
const hasNoText = () => document.getSelection()?.isCollapsed !== false
const selectedIds = ({ editor }: LabWindow) => editor.selectedNodes.map((node) => node.node_id)
/** Distance of one press of an arrow key, and with Shift, pixels. */
const [step, smallStep] = [20, 1]
const arrows = { Left: [-1, 0], Right: [1, 0], Up: [0, -1], Down: [0, 1] } as const

/** Every command of a lab, in the order of the command bar. */
export const commands: readonly EditorCommand[] = [
  {
    id: 'start',
    title: 'Start selected nodes',
    keys: ['S'],
    isEdit: true,
    isPossible: hasNodes,
    menus: { node: 'Start' },
    isOffered: ({ editor }) => editor.selectedNodes.some(({ status }) => status !== 'started'),
    run: (window) => void window.editor.jobs.act('start', selectedIds(window)),
  },
  {
    id: 'stop',
    title: 'Stop selected nodes',
    keys: ['X'],
    isEdit: true,
    isPossible: hasNodes,
    menus: { node: 'Stop' },
    isOffered: ({ editor }) =>
      editor.selectedNodes.some((node) => node.status !== 'stopped' || editor.store.phases.value.has(node.node_id)),
    run: (window) => void window.editor.jobs.act('stop', selectedIds(window)),
  },
  {
    id: 'start-all',
    title: 'Start all nodes',
    keys: ['Ctrl+Enter'],
    isEdit: true,
    menus: { map: 'Start all' },
    run: ({ editor }) => void editor.jobs.act('start'),
  },
  {
    id: 'stop-all',
    title: 'Stop all nodes',
    isEdit: true,
    menus: { map: 'Stop all' },
    run: ({ editor }) => void editor.jobs.act('stop'),
  },
  {
    id: 'console',
    title: 'Open console',
    keys: ['Enter', 'O'],
    isEdit: true,
    isPossible: hasNodes,
    menus: { node: 'Console' },
    run: (window) => window.openConsoles(selectedIds(window)),
  },
  {
    id: 'packets',
    title: 'Watch the packets of the link',
    keys: ['P'],
    isEdit: true,
    menus: { link: 'Packets' },
    isPossible: ({ editor }) => editor.selectedLinks.length > 0,
    run({ editor, dock }) {
      for (const id of editor.selectedLinks) dock.open(id)
    },
  },
  {
    ...{ id: 'tasks', title: 'Show or hide the tasks', keys: ['K'], isThere: ({ hasTasks }) => hasTasks.value },
    run: (window) => window.showTasks(!window.isShowingTasks.value),
  },
  {
    id: 'connect',
    title: 'Draw a link from the node',
    keys: ['C'],
    isEdit: true,
    isPossible: hasOneNode,
    menus: { node: 'Connect' },
    run(window) {
      const [id] = selectedIds(window)
      window.connectFrom(id)
      focusOnShape(id)
    },
  },
  {
    id: 'link-many',
    title: 'Link nodes by their names',
    keys: ['Shift+C'],
    isEdit: true,
    run: (window) => {
      window.dialog.value = 'links'
    },
  },
  {
    id: 'duplicate',
    title: 'Duplicate selected nodes',
    keys: ['Ctrl+D'],
    isEdit: true,
    isPossible: hasNodes,
    menus: { node: 'Duplicate' },
    run: (window) => void window.duplicate(selectedIds(window)),
  },
  {
    id: 'copy',
    title: 'Copy selected nodes, and the links between them',
    keys: ['Ctrl+C'],
    isEdit: true,
    menus: { node: 'Copy' },
    isPossible: (window) => hasNodes(window) && hasNoText(),
    run(window) {
      window.copied.value = selectedIds(window)
    },
  },
  {
    id: 'paste',
    title: 'Paste the copied nodes',
    keys: ['Ctrl+V'],
    isEdit: true,
    menus: { map: 'Paste' },
    isPossible: ({ copied }) => copied.value.length > 0,
    run: (window) => void window.duplicate(window.copied.value, window.menu.value?.on),
  },
  {
    id: 'symbol',
    title: 'Change the symbol of selected nodes',
    isEdit: true,
    isPossible: hasNodes,
    menus: { node: 'Symbol …' },
    run: (window) => {
      window.dialog.value = 'symbol'
    },
  },
  {
    id: 'replace',
    title: 'Replace the node by one of another type',
    isEdit: true,
    menus: { node: 'Replace by …' },
    isPossible: (window) => hasOneNode(window) && window.editor.selectedNodes.every(isReplaceable),
    run: (window) => {
      window.dialog.value = 'replace'
    },
  },
  {
    id: 'arrange',
    title: 'Arrange selected nodes, or all, by their links',
    keys: ['A'],
    isEdit: true,
    menus: { map: 'Arrange' },
    run: (window) => void window.editor.arrange().then(() => window.fit()),
  },
  {
    id: 'row',
    title: 'Align selected nodes in a row',
    keys: ['H'],
    isEdit: true,
    isPossible: hasNodes,
    run: ({ editor }) => void editor.moveTo(aligned(editor.positions, 'y')),
  },
  {
    id: 'column',
    title: 'Align selected nodes in a column',
    keys: ['V'],
    isEdit: true,
    isPossible: hasNodes,
    run: ({ editor }) => void editor.moveTo(aligned(editor.positions, 'x')),
  },
  {
    id: 'distribute',
    title: 'Put equal space between selected nodes',
    keys: ['D'],
    isEdit: true,
    isPossible: hasNodes,
    run: ({ editor }) => void editor.moveTo(distributed(editor.positions)),
  },
  ...drawables.map(
    ({ kind, noun, key }): EditorCommand => ({
      id: `draw-${kind}`,
      title: `Draw: ${noun.toLowerCase()}`,
      keys: [key],
      isEdit: true,
      run: (window) => void window.draw(kind),
    }),
  ),
  {
    id: 'front',
    title: 'Bring selected drawings to the front',
    keys: ['Shift+F'],
    isEdit: true,
    menus: { drawing: 'To the front' },
    isPossible: canRestack,
    run: ({ editor }) => void editor.restack('front'),
  },
  {
    id: 'back',
    title: 'Send selected drawings to the back',
    keys: ['Shift+B'],
    isEdit: true,
    menus: { drawing: 'To the back' },
    isPossible: canRestack,
    run: ({ editor }) => void editor.restack('back'),
  },
  {
    id: 'rename',
    title: 'Rename the node, or edit the text',
    keys: ['F2'],
    isEdit: true,
    menus: { node: 'Rename', drawing: 'Edit the text' },
    isPossible: (window) => hasOneNode(window) || window.editor.selectedDrawings.length === 1,
    run: (window) => window.focusOn(hasOneNode(window) ? 'node-name' : 'drawing-text'),
  },
  {
    id: 'pane',
    title: 'Go to the settings of what is selected, and back',
    keys: ['F6'],
    menus: { node: 'Settings', link: 'Settings', drawing: 'Settings' },
    run: ({ editor }) => turnPane([...editor.selection.value][0]),
  },
  {
    id: 'delete',
    title: 'Delete selected',
    keys: ['Delete', 'Backspace'],
    isEdit: true,
    menus: { node: 'Delete', link: 'Delete', drawing: 'Delete' },
    isPossible: ({ editor }) => editor.selection.value.size > 0,
    run: (window) => window.remove(),
  },
  {
    id: 'undo',
    title: 'Undo',
    keys: ['Ctrl+Z'],
    isEdit: true,
    isPossible: ({ editor }) => editor.history.edits.value?.undo !== null,
    detail: ({ editor }) => nameOfEdit(editor.history.edits.value?.undo),
    run: ({ editor }) => void editor.back('undo'),
  },
  {
    id: 'redo',
    title: 'Redo',
    keys: ['Ctrl+Shift+Z', 'Ctrl+Y'],
    isEdit: true,
    isPossible: ({ editor }) => editor.history.edits.value?.redo !== null,
    detail: ({ editor }) => nameOfEdit(editor.history.edits.value?.redo),
    run: ({ editor }) => void editor.back('redo'),
  },
  {
    id: 'select-all',
    title: 'Select all nodes',
    keys: ['Ctrl+A'],
    menus: { map: 'Select all' },
    run: ({ editor }) => editor.select(editor.store.nodes.ids.value),
  },
  {
    id: 'export',
    title: 'Export the lab',
    isEdit: true,
    run: (window) => {
      window.dialog.value = 'export'
    },
  },
  {
    id: 'fit',
    title: 'Show the whole lab',
    keys: ['F'],
    menus: { map: 'Show the whole lab' },
    run: (window) => window.fit(),
  },
  { ...{ id: 'zoom-in', title: 'Zoom in', keys: ['+', '='] }, run: (window) => window.zoom(1.25) },
  { ...{ id: 'zoom-out', title: 'Zoom out', keys: ['-'] }, run: (window) => window.zoom(0.8) },
  {
    id: 'labels',
    title: 'Show or hide names of ports',
    keys: ['L'],
    run: (window) => {
      window.hasLabels.value = !window.hasLabels.value
    },
  },
  {
    id: 'vlans',
    title: 'Colour links by VLAN, or by their states',
    keys: ['Shift+V'],
    menus: { map: 'Colours by VLAN' },
    run: (window) => {
      window.hasVlanColours.value = !window.hasVlanColours.value
    },
  },
  {
    id: 'list',
    title: 'Show the lab as a list, or as a map',
    keys: ['T'],
    run: (window) => {
      window.isList.value = !window.isList.value
    },
  },
  {
    id: 'menu',
    title: 'Open the context menu',
    keys: ['Shift+F10', 'ContextMenu'],
    run: (window) => window.openMenuAtFocus(),
  },
  {
    id: 'find',
    title: 'Find a node or a command',
    keys: ['Ctrl+K', '/'],
    menus: { map: 'Add a node, or find …' },
    run: (window) => window.openBar(),
  },
  { ...{ id: 'keys', title: 'Show all keys', keys: ['?'] }, run: (window) => window.showKeys() },
  { ...{ id: 'escape', title: 'Cancel, select nothing', keys: ['Escape'] }, run: (window) => window.escape() },
  ...Object.entries(arrows).flatMap(([arrow, [x, y]]): EditorCommand[] => [
    {
      ...{
        id: `move-${arrow}`,
        title: `Move selected nodes and drawings (${arrow})`,
        keys: [`Arrow${arrow}`],
        isEdit: true,
      },
      isPossible: canMove,
      run: ({ editor }) => editor.moves.nudge(editor.movable, x * step, y * step),
    },
    {
      id: `nudge-${arrow}`,
      title: `Move by a pixel (${arrow})`,
      keys: [`Shift+Arrow${arrow}`],
      isEdit: true,
      isPossible: canMove,
      run: ({ editor }) => editor.moves.nudge(editor.movable, x * smallStep, y * smallStep),
    },
  ]),
]

/** Whether the user may do a command now. */
export const isEnabled = (command: EditorCommand, window: LabWindow): boolean =>
  isListed(command, window) && (command.isPossible?.(window) ?? true)

/** Whether a user may do a command at a lab, perhaps when something else is selected. */
const isListed = ({ isEdit, isThere }: EditorCommand, window: LabWindow): boolean =>
  (isEdit !== true || mayEdit()) && (isThere?.(window) ?? true)

/** The commands of the command bar: those that are possible now, then the others. */
export function commandsInBar(window: LabWindow): { readonly command: EditorCommand; readonly isPossible: boolean }[] {
  const listed = commands
    .filter((command) => command.id !== 'find' && command.id !== 'escape' && isListed(command, window))
    .map((command) => ({ command, isPossible: isEnabled(command, window) }))
  return [...listed.filter((it) => it.isPossible), ...listed.filter((it) => !it.isPossible)]
}

/** The commands of a context menu that are possible now, in its order. */
export const menuOf = (subject: MenuSubject, window: LabWindow): EditorCommand[] =>
  commands.filter(
    (command) =>
      command.menus?.[subject] !== undefined && isEnabled(command, window) && (command.isOffered?.(window) ?? true),
  )

/** The part of a KeyboardEvent that names a key. */
export type KeyPress = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'shiftKey' | 'altKey'>

/** The name of a pressed key, as commands have it. Shift is named with keys that have no character of their own for it. */
export function keyOf({ key, ctrlKey, metaKey, shiftKey, altKey }: KeyPress): string {
  const isLetter = /^[a-z]$/i.test(key)
  const name = isLetter ? key.toUpperCase() : key
  const hasShift = shiftKey && (isLetter || key.length > 1)
  return `${altKey ? 'Alt+' : ''}${ctrlKey || metaKey ? 'Ctrl+' : ''}${hasShift ? 'Shift+' : ''}${name}`
}

/** Whether a key is a character without a modifier: dictated text, or text typed outside a field, would run such commands. */
export const isCharacterKey = ({ key, ctrlKey, metaKey, altKey }: KeyPress): boolean =>
  key.length === 1 && !ctrlKey && !metaKey && !altKey

/** The key that is a command in fields, too: it leaves them. */
const paneKey = 'F6'
const fields = 'input, textarea, select'

/** Whether the part of the page with the focus has its own use for a key. `isIn`: whether the focus is in a part, by its CSS selector. */
export function isTaken(press: KeyPress, isIn: (part: string) => boolean): boolean {
  if (isIn('.console')) return true
  // Packets have keys of their own, but none with Ctrl.
  return press.key !== paneKey && isIn(press.ctrlKey || press.metaKey ? fields : `${fields}, .packets`)
}

/** The command of a key. */
export function commandOf(press: KeyPress): EditorCommand | undefined {
  const key = keyOf(press)
  return commands.find(({ keys }) => keys?.includes(key))
}
