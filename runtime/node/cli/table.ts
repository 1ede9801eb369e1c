import Table from 'cli-table3'
import truncatedWidth from 'fast-string-truncated-width'
import { escapeUnsafe } from '../../../src/lib/text/escape.ts'
import { coloured, heading } from './colours.ts'
import { columnsOf } from './wrapping.ts'

export { escapeUnsafe as shown }

/** Columns between two columns of a table. */
const gap = 2

/**
 * Rows of text below a head, in columns as wide as they need to be. What is wider than the terminal has narrower columns, whose text is
 * broken between words.
 */
export function tableOf(
  head: readonly string[],
  rows: readonly (readonly (string | number)[])[],
  columns = columnsOf(process.stdout),
): string {
  const cells = rows.map((row) => row.map((cell) => escapeUnsafe(String(cell))))
  const widths = columns === undefined ? undefined : narrower([head, ...cells], columns)
  const table = new Table({
    head: head.map(heading),
    chars: Object.fromEntries(borders.map((border) => [border, ''])),
    style: { head: [], 'padding-left': 0, 'padding-right': gap },
    ...(widths !== undefined && { colWidths: widths.map((width) => width + gap), wordWrap: true }),
  })
  const state = head.indexOf('STATE')
  table.push(...cells.map((row) => row.map((cell, at) => (at === state ? coloured(cell) : cell))))
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}

/** The widths of columns that fit into a terminal, none less than its longest word; undefined: nothing is to be broken, or can be. */
function narrower(lines: readonly (readonly string[])[], columns: number): number[] | undefined {
  const widest = (texts: readonly string[]) => Math.max(...texts.map((text) => truncatedWidth(text).width))
  const column = (at: number) => lines.map((line) => line[at] ?? '')
  const count = lines[0]?.length ?? 0
  const widths = Array.from({ length: count }, (_, at) => widest(column(at)))
  const least = Array.from({ length: count }, (_, at) => widest(column(at).flatMap((text) => text.split(/\s+/))))
  const surplus = () => widths.reduce((sum, width) => sum + width + gap, -gap) - columns
  if (surplus() <= 0) return undefined
  while (surplus() > 0) {
    const spare = (at: number) => (widths[at] ?? 0) - (least[at] ?? 0)
    const [at] = [...widths.keys()]
      .filter((index) => spare(index) > 0)
      .sort((a, b) => (widths[b] ?? 0) - (widths[a] ?? 0))
    if (at === undefined) return undefined
    widths[at] = (widths[at] ?? 0) - 1
  }
  return widths
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
