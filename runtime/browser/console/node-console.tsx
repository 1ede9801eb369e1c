import type { LabNode } from '../../../src/client/patchbay.ts'
import { consoleKindOf } from './console-kind.ts'
import { ConsoleView } from './console-view.tsx'
import type { Dock } from './dock.ts'
import { ScreenView } from './screen-view.tsx'

export interface NodeConsoleProps {
  readonly node: LabNode
  readonly dock: Dock
  /** Which one of a node with several; undefined: the first. */
  readonly console: string | undefined
  /** Whether its tab is shown. */
  readonly isShown: boolean
}

/** The console of a node, as its type is. */
export const NodeConsole = (props: NodeConsoleProps) =>
  consoleKindOf(props.node) === 'screen' ? <ScreenView {...props} /> : <ConsoleView {...props} />
