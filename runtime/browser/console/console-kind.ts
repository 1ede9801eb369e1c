import type { LabNode } from '../../../src/client/patchbay.ts'

/** How the page shows the console of a node: as a terminal, or as a picture; undefined: it shows none. */
export function consoleKindOf({ console_type }: LabNode): 'text' | 'screen' | undefined {
  if (console_type === 'telnet') return 'text'
  return console_type === 'vnc' ? 'screen' : undefined
}
