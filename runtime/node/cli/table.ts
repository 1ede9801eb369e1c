import Table from 'cli-table3'
import truncatedWidth from 'fast-string-truncated-width'
import { escapeUnsafe } from '../../../src/lib/text/escape.ts'
import { colours } from './colours.ts'

export { escapeUnsafe as shown }

/** Rows of text below a head, in columns as wide as they need to be. */
export function tableOf(head: readonly string[], rows: readonly (readonly (string | number)[])[]): string {
  const table = new Table({
    head: head.map((it) => colours.dim(it)),
    chars: Object.fromEntries(borders.map((it) => [it, ''])),
    style: { head: [], 'padding-left': 0, 'padding-right': 2 },
  })
  table.push(...rows.map((row) => row.map((cell) => escapeUnsafe(String(cell)))))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

/** As much of a line as a terminal of `columns` shows in one row: Chinese characters and emoji take two columns each. */
export function fitted(line: string, columns: number): string {
  const { index, truncated } = truncatedWidth(line, { limit: columns })
  // What is cut off may be the end of a colour.
  return truncated ? `${line.slice(0, index)}${line.includes('\u001b') ? '\u001b[0m' : ''}` : line
}

const borders = [
  ...['top', 'top-mid', 'top-left', 'top-right', 'bottom', 'bottom-mid', 'bottom-left', 'bottom-right'],
  ...['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle'],
]
