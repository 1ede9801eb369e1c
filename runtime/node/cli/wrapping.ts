import { stripVTControlCharacters } from 'node:util'
import truncatedWidth from 'fast-string-truncated-width'

/** A terminal with fewer columns gets whole lines. */
const fewestColumns = 20

/** The columns of the terminal that a stream writes to; undefined: it is not a terminal, or does not say. */
export function columnsOf(stream: { readonly isTTY?: boolean; readonly columns?: number }): number | undefined {
  return stream.isTTY === true && (stream.columns ?? 0) >= fewestColumns ? stream.columns : undefined
}

/**
 * A text whose longer lines are broken between words. What is broken goes on below the column that it is in, such as the meaning of a flag
 * below its beginning. A word that is longer than a line, such as a path, is not broken.
 */
export function wrapped(text: string, columns: number | undefined): string {
  if (columns === undefined) return text
  return text
    .split('\n')
    .map((line) => (widthOf(line) > columns ? broken(line, columns) : line))
    .join('\n')
}

function broken(line: string, columns: number): string {
  const indent = indentOf(stripVTControlCharacters(line), columns)
  const lines: string[] = []
  let current = ''
  for (const [word] of line.matchAll(/\s*\S+/g)) {
    const isFirst = current.trim() === ''
    if (isFirst || widthOf(current) + widthOf(word) <= columns) current += word
    else {
      lines.push(current)
      current = `${' '.repeat(indent)}${word.trimStart()}`
    }
  }
  return [...lines, current].join('\n')
}

/** Where a line goes on: its last column in the first half of the terminal, else where it begins. */
function indentOf(line: string, columns: number): number {
  const begin = line.length - line.trimStart().length
  const places = [...line.matchAll(/\S\s{2,}(?=\S)/g)].map((gap) => widthOf(line.slice(0, gap.index + gap[0].length)))
  return places.findLast((place) => place <= columns / 2) ?? Math.min(begin, columns / 2)
}

/** The columns that a text takes: none for colours, two for each Chinese character. */
const widthOf = (text: string): number => truncatedWidth(text).width
