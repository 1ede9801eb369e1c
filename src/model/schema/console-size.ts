import { type Static, Type } from '@sinclair/typebox'
import { closedSchema } from './fields.ts'
import { mostCells } from './most-cells.ts'

/** A name that a client gives the terminal of a further console when it opens it, to resize it. */
export const TerminalId = Type.String({
  ...{ pattern: '^[0-9A-Za-z_-]{1,64}$', expects: '1 to 64 letters, digits, - or _' },
  description:
    'Of a further console: a name for its terminal that the client chooses, by which `console/size` finds it',
})

/** Where kinds whose consoles have a size take it, below the path of a node. */
export const consoleSizePath = 'console/size'

const Cells = Type.Integer({ minimum: 1, maximum: mostCells })

/** The size of the terminal of a console. */
export type ConsoleSize = Static<typeof ConsoleSize>
export const ConsoleSize = closedSchema('ConsoleSize', 'The size of the terminal of a console, in characters', {
  columns: Cells,
  rows: Cells,
  terminal: Type.Optional(TerminalId),
})
export type TerminalSize = Pick<ConsoleSize, 'columns' | 'rows'>
