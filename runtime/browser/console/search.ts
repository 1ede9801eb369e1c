import type { IBuffer, IBufferLine } from '@xterm/xterm'

/** A text in the buffer of a terminal: its first cell, and how many cells it takes. */
export interface SearchMatch {
  readonly row: number
  readonly column: number
  readonly size: number
}

/** The matches of a text, of capitals or not, from the top to the bottom. A line that the terminal has wrapped is searched as one. */
export function matchesOf(text: string, buffer: IBuffer, columns: number): SearchMatch[] {
  if (text === '') return []
  const pattern = new RegExp(text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'gi')
  const matches: SearchMatch[] = []
  for (let next = 0; next < buffer.length; ) {
    const [first, rows] = [next, [] as string[]]
    for (let line = buffer.getLine(next); line !== undefined; line = buffer.getLine(next)) {
      if (next > first && !line.isWrapped) break
      rows.push(line.translateToString())
      next++
    }
    /** The cell of a character of the line, counted from the beginning of its first row. */
    const cellOf = (index: number) => {
      let [row, left] = [0, index]
      for (; row < rows.length - 1 && left >= (rows[row] ?? '').length; row++) left -= (rows[row] ?? '').length
      return row * columns + columnOf(buffer.getLine(first + row), left)
    }
    for (const { index, 0: found } of rows.join('').matchAll(pattern)) {
      const cell = cellOf(index)
      const size = cellOf(index + found.length) - cell
      matches.push({ row: first + Math.floor(cell / columns), column: cell % columns, size })
    }
  }
  return matches
}

/** The next of the matches after the one that is selected, or the one before; from the other end when there is none. */
export function nextMatch(
  matches: readonly SearchMatch[],
  selected: Pick<SearchMatch, 'row' | 'column'> | undefined,
  isBack: boolean,
): SearchMatch | undefined {
  const order = (it: Pick<SearchMatch, 'row' | 'column'>) =>
    selected === undefined ? 0 : it.row - selected.row || it.column - selected.column
  return isBack
    ? (matches.findLast((it) => order(it) < 0) ?? matches.at(-1))
    : (matches.find((it) => order(it) > 0) ?? matches[0])
}

/** The column of a character of a row: a wide one takes two cells, and a cell may have several. */
function columnOf(line: IBufferLine | undefined, index: number): number {
  let column = 0
  for (let left = index; ; column++) {
    const cell = line?.getCell(column)
    if (cell === undefined) return column
    // The second cell of a wide character has no width, and nothing in it.
    if (cell.getWidth() > 0) left -= cell.getChars().length || 1
    if (left < 0) return column
  }
}
